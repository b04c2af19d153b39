import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'
import { VERSION } from '../src/version.js'

const root = new URL('../../', import.meta.url).pathname
const source = join(root, 'src')

/**
 * For each folder, the list of other folders that the folder may import. Every folder may also import its own files and
 * LEAVES. If an entry names a file, only this file of its folder may be imported.
 */
const ARROWS: Record<string, string> = {
  domain: '',
  crypto: '',
  storage: 'domain crypto/ports.ts',
  framework: 'domain storage/store.ts crypto/ports.ts',
  operations: 'framework domain storage/store.ts crypto/ports.ts',
  ipc: 'storage/files.ts crypto/ports.ts',
  http: 'framework operations domain config.ts assets.ts',
  reactor: 'framework domain ipc client/http-sender.ts',
  client: 'operations framework domain http/headers.ts',
  delivery: 'framework operations domain crypto/ports.ts storage/store.ts client/http-sender.ts',
  vault: 'ipc crypto storage reactor delivery operations framework domain',
  control: 'vault http operations framework domain crypto/ports.ts storage/store.ts version.ts',
  library: 'control client vault http operations framework domain',
  'index.ts': 'library client operations',
  'vitest.ts': 'index.ts',
  page: 'control operations framework domain/access/cell-text.ts domain/allow-net-advice.ts domain/text/spreadsheet.ts',
  // The code of `elements` runs in browsers, and in tests for Playwright.
  elements: 'domain/token/luhn.ts',
  'playwright.ts': '',
  cli: 'control client vault http operations framework domain config.ts global-flags.ts version.ts assets.ts',
  'config.ts': 'domain/omit-undefined.ts global-flags.ts',
  'global-flags.ts': '',
  'version.ts': '',
  'errors.ts': '',
  'bounded-map.ts': '',
  'assets.ts': '',
}

/** Every folder may import these files. These files import nothing. */
const LEAVES = ['errors.ts', 'bounded-map.ts']

/** For each fixture, the files that may import the fixture as a module. The bundle contains these fixtures. */
const FIXTURES: Record<string, string[]> = {
  '../fixtures/cards.json': ['domain/test-cards/table.ts'],
  '../fixtures/enrichment.json': ['domain/enrichment/published.ts'],
}

/** For each package, the files that may import the package. */
const IMPORTERS: Record<string, string[]> = {
  yaml: ['cli/input/yaml.ts'],
  commander: ['cli/program.ts', 'cli/command-tree.ts'],
  inquirer: ['cli/input/prompt.ts'],
  chalk: ['cli/output/output.ts'],
  'cli-table3': ['cli/output/table.ts'],
  'csv-parse': ['cli/bulk/csv.ts'],
  '@modelcontextprotocol/server': ['cli/commands/mcp/mcp.ts'],
  '@modelcontextprotocol/server/stdio': ['cli/commands/mcp/mcp.ts'],
  lowdb: ['storage/lsm/manifest.ts'],
  'libsodium-wrappers': ['crypto/sodium.ts'],
  '@noble/hashes': ['crypto/native.ts'],
  '@fastify/busboy': ['http/forms/read-form.ts'],
  ajv: ['framework/validate.ts', 'framework/validators.d.ts'],
  'json-p3': ['domain/expression/json-path.ts'],
  nodemailer: ['delivery/smtp.ts'],
  pg: ['storage/postgres/pool.ts'],
  pgpass: ['storage/postgres/pool.ts'],
  acorn: ['reactor/guest/source.ts'],
  ses: ['reactor/guest/realm.ts'],
  events: ['reactor/facades/events.ts', 'reactor/facades/internals.d.ts'],
  'readable-stream': ['reactor/facades/stream.ts'],
  // `coffer:internals` is not a package: the build does not change this import, and the guest provides the module.
  'coffer:internals': ['util', 'zlib', 'async-hooks', 'http-client'].map(
    (name) => `reactor/facades/${name}.ts`,
  ),
  vitest: ['vitest.ts'],
  // Any file of the dashboard may import `preact`.
  preact: ['page'],
}

interface Import {
  file: string
  target: string
}

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) =>
  /\.tsx?$/.test(name),
)
const imports: Import[] = files.flatMap((file) => {
  // Import statements inside template texts do not count. For example, build.ts contains this kind of text.
  const text = readFileSync(join(source, file), 'utf8').replaceAll(/^.*\$\{.*$/gm, '')
  const found = [
    ...text.matchAll(/(?:\sfrom|import\()\s*'([^']+)'/g),
    ...text.matchAll(/^import '([^']+)'/gm),
  ]
  return found.map((match) => ({ file, target: match[1]! }))
})

/** Returns the target of a relative import as a path below `src`. */
function resolveTarget({ file, target }: Import): string {
  const path = relative(source, join(source, dirname(file), target)).replace(/\.js$/, '.ts')
  return files.includes(path) || path.endsWith('.json') ? path : `${path}x`
}

const folderOf = (path: string) => path.split('/')[0]!

t.test('imports follow the directions of the architecture', async (t) => {
  t.ok(imports.length > 50, 'the test has found imports')
  for (const each of imports.filter(({ target }) => target.startsWith('.'))) {
    const target = resolveTarget(each)
    const folder = folderOf(each.file)
    const allowed = [folder, ...LEAVES, ...(ARROWS[folder]?.split(' ') ?? [])]
    t.ok(
      allowed.includes(target) ||
        allowed.includes(folderOf(target)) ||
        FIXTURES[target]?.includes(each.file) === true,
      `${each.file} must not import ${target}`,
    )
  }
})

t.test('no command and no server loads a fixture before it is used', async (t) => {
  const loadedBy = (file: string): string[] => {
    const text = readFileSync(join(source, file), 'utf8')
    const found = text.matchAll(/^(?:import|export)(?! type\b)[^'\n]*(?:\n[^'\n]*)*? from '(\.[^']+)'/gm)
    return [...found].map(([, target]) => resolveTarget({ file, target: target! }))
  }
  const loaded = new Set(['cli/main.ts', 'cli/run.ts', 'index.ts', 'http/service.ts', 'operations/all.ts'])
  for (const file of loaded) if (files.includes(file)) for (const target of loadedBy(file)) loaded.add(target)
  t.ok(loaded.has('operations/updater/update-card.ts'), 'it follows imports')
  t.strictSame(
    [...loaded].filter((file) => file.endsWith('.json')),
    [],
  )
})

t.test('no files import each other in a circle, not even for their types', async (t) => {
  const targets = new Map<string, string[]>(files.map((file) => [file, []]))
  for (const each of imports.filter(({ target }) => target.startsWith('.')))
    if (!each.target.endsWith('.json')) targets.get(each.file)!.push(resolveTarget(each))
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file)
    if (at !== -1) t.fail(`a circle: ${[...path.slice(at), file].join(' → ')}`)
    if (at !== -1 || done.has(file)) return
    for (const target of targets.get(file) ?? []) visit(target, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  t.ok(done.size >= files.length)
})

t.test('each package is imported only by the files that are listed for it', async (t) => {
  // An import of types loads no code.
  const isTypeOnly = ({ file, target }: Import) =>
    new RegExp(`^import type [^\n]*'${target}'`, 'm').test(readFileSync(join(source, file), 'utf8'))
  for (const { file, target } of imports.filter(({ target }) => !/^(\.|node:|compiled$)/.test(target))) {
    const name = target.startsWith('@') ? target.split('/').slice(0, 2).join('/') : target.split('/')[0]!
    const isImporter = IMPORTERS[name]?.some((each) => file === each || folderOf(file) === each)
    t.ok(isImporter || isTypeOnly({ file, target }), `${file} must not import ${target}`)
  }
  // Each of these packages must be imported by all files that are listed for it.
  for (const name of 'commander inquirer chalk lowdb libsodium-wrappers ajv cli-table3 ses'.split(' '))
    for (const file of IMPORTERS[name] ?? ['none'])
      t.ok(
        imports.some((each) => each.file === file && each.target.startsWith(name)),
        `${file} must import ${name}`,
      )
})

/**
 * Handlers that behave differently in no-reveal mode, each with the difference. For all other handlers, the framework
 * changes the answer (`framework/no-reveal.ts`).
 */
const READS_NO_REVEAL: Record<string, string> = {
  'operations/network-token/attributes.ts': 'shows the number masked, also with the permission to reveal',
  'operations/proxy/proxy-relay.ts': 'redacts the answer of another server',
  'operations/proxy/proxy-values.ts': 'creates tokens for another caller in the mode of the first',
  'operations/reactor/react-async.ts': 'keeps results of the mode apart',
  'operations/reactor/react.ts': 'redacts the answer of code',
  'operations/reactor/run-access.ts': 'gives the mode to the key of a run',
  'operations/token/check-token.ts': 'refuses expressions on data that the caller did not give',
  'operations/token/detokenize.ts': 'refuses expressions that show parts of a value',
  'operations/token/duplicates.ts': 'reports no duplicate',
  'operations/token/search.ts': 'refuses terms that confirm guesses',
  'operations/updater/jobs.ts': 'keeps the mode of the caller with the job',
  'operations/updater/process-job.ts': 'works in the mode of the caller that created the job',
}

t.test('only the listed handlers read whether the caller is in no-reveal mode', async (t) => {
  const readers = files.filter((file) => {
    const code = stripComments(readFileSync(join(source, file), 'utf8'))
    return folderOf(file) === 'operations' && /\bisNoReveal\b/.test(code)
  })
  t.strictSame(readers.sort(), Object.keys(READS_NO_REVEAL).sort())
})

t.test('the pure folders import no code with side effects', async (t) => {
  for (const { file, target } of imports.filter(({ target }) => target.startsWith('node:'))) {
    t.notOk(
      ['domain', 'framework', 'operations'].includes(folderOf(file)),
      `${file} must not import ${target}`,
    )
  }
  const effects = /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval)\b|\bconsole\.[a-z]/
  for (const file of files.filter((name) => ['domain', 'framework', 'operations'].includes(folderOf(name)))) {
    const code = stripComments(readFileSync(join(source, file), 'utf8'))
    t.notMatch(code, effects, `${file} reads no clock, uses no randomness and prints nothing`)
  }
})

t.test('only bin and the listed files use the global process', async (t) => {
  // A parameter with the name `process` hides the global variable. Files with a parameter `process` receive a
  // ProcessLike.
  const global = /from 'node:process'|globalThis\.process|\bprocess\.[a-z]/
  for (const file of files) {
    const code = stripComments(readFileSync(join(source, file), 'utf8'))
    // Some files may use the global `process`. Samples are only text. The guest is a separate program. The facades of
    // the guest use the `process` of reactor code. The code that starts the guest needs the version of Node. The
    // library runs in the process of the program that imports it.
    const isExcepted =
      /^(page\/samples|reactor\/guest\/(guest|late|process|run)|reactor\/facades\/[\w-]+|reactor\/confinement|library\/open)\.ts$/.test(
        file,
      )
    if (!code.includes('ProcessLike') && !isExcepted) t.notMatch(code, global, file)
  }
})

t.test('the SQL uses only features that all databases with the protocol of PostgreSQL support', async (t) => {
  const own = files.filter((file) => file.startsWith('storage/postgres/'))
  const unportable =
    /\b(plpgsql|listen|notify|\w*advisory\w*|serial|bigserial|truncate|lock table|create (or replace )?(function|trigger|extension|type)|pg_\w+|ctid|xmin|copy \w+ (from|to)|merge into)\b|generated .* as identity|\bdo \$\$/
  for (const file of own) {
    const code = stripComments(readFileSync(join(source, file), 'utf8'))
    for (const [text] of code.matchAll(/'[^'\n]*'|`[^`]*`/g)) {
      if (/^.(\.|node:|pg.)/.test(text)) continue
      t.notMatch(text.toLowerCase(), unportable, file)
    }
  }
  t.ok(own.length > 10)
})

t.test('the version in the code is equal to the version in package.json', async (t) => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  t.equal(VERSION, version)
})

function stripComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
}
