import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'
import { VERSION } from '../src/version.js'

const root = new URL('../../', import.meta.url).pathname
const source = join(root, 'src')

/** Which rooms each room may look into, besides itself; `errors.ts` is open to all. Ports are single files. */
const ARROWS: Record<string, string[]> = {
  domain: [],
  store: ['domain'],
  crypto: ['store/store.ts'],
  operations: ['domain', 'store/store.ts'],
  http: ['operations', 'domain', 'config.ts'],
  reactor: ['operations', 'domain', 'store/store.ts'],
  mail: ['operations', 'domain', 'store/store.ts'],
  'app.ts': [
    'upkeep.ts',
    'vault.ts',
    'vault-commands.ts',
    'crypto',
    'store',
    'reactor',
    'mail',
    'operations',
    'domain',
    'validate.ts',
  ],
  'opening.ts': ['app.ts', 'vault.ts', 'crypto', 'store', 'domain'],
  'upkeep.ts': ['crypto', 'store'],
  'keeping.ts': ['app.ts', 'opening.ts', 'upkeep.ts', 'vault.ts', 'crypto', 'store', 'domain'],
  'key-slots.ts': ['opening.ts', 'crypto', 'store', 'domain'],
  cli: [
    'app.ts',
    'opening.ts',
    'keeping.ts',
    'key-slots.ts',
    'vault.ts',
    'http',
    'operations',
    'domain',
    'config.ts',
    'version.ts',
  ],
  'index.ts': ['app.ts', 'opening.ts', 'version.ts', 'http', 'operations', 'domain'],
  'build.ts': ['operations', 'ajv-options.ts'],
  'vault.ts': ['operations', 'store/handover.ts'],
  'vault-commands.ts': ['app.ts', 'store', 'operations', 'domain'],
  'validate.ts': ['domain', 'validators.js'],
  'validators.d.ts': [],
  'ajv-options.ts': [],
  'config.ts': [],
  'version.ts': [],
  'errors.ts': [],
}

/** Each package has one door. */
const DOORS: Record<string, string[]> = {
  commander: ['cli/program.ts', 'cli/options.ts'],
  inquirer: ['cli/prompt.ts'],
  chalk: ['cli/output.ts'],
  'cli-table3': ['cli/output.ts'],
  lowdb: ['store/vault-file.ts'],
  'libsodium-wrappers': ['crypto/sodium.ts'],
  '@noble/ciphers': ['crypto/native.ts'],
  '@noble/hashes': ['crypto/native.ts'],
  ajv: ['validate.ts', 'build.ts', 'validators.d.ts'],
  'ajv-formats': ['build.ts'],
  esbuild: ['build.ts'],
  liquidjs: ['domain/expression.ts', 'domain/expression-syntax.ts', 'domain/standard-filters.ts'],
  'json-p3': ['domain/json-path.ts'],
  nodemailer: ['mail/smtp.ts'],
  acorn: ['reactor/source.ts', 'reactor/usage.ts'],
  ses: ['reactor/realm.ts'],
}

interface Import {
  file: string
  target: string
}

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
)
const imports: Import[] = files.flatMap((file) => {
  // What is only written by a program, such as an import in a text of build.ts, is no import.
  const text = readFileSync(join(source, file), 'utf8').replaceAll(/^.*\$\{.*$/gm, '')
  const found = [
    ...text.matchAll(/(?:\sfrom|import\()\s*'([^']+)'/g),
    ...text.matchAll(/^import '([^']+)'/gm),
  ]
  return found.map((match) => ({ file, target: match[1]! }))
})

/** Where a relative import leads, as a path under `src`. */
function resolveTarget({ file, target }: Import): string {
  return relative(source, join(source, dirname(file), target)).replace(/\.js$/, '.ts')
}

const roomOf = (path: string) => path.split('/')[0]!

t.test('imports point only where the architecture lets them', async (t) => {
  t.ok(imports.length > 50, 'imports were found')
  for (const each of imports.filter(({ target }) => target.startsWith('.'))) {
    const target = resolveTarget(each)
    const room = roomOf(each.file)
    const allowed = ARROWS[room]
    if (allowed === undefined) {
      t.fail(`${room} has no entry in the map of arrows`)
      continue
    }
    const isOwn = roomOf(target) === room
    const isAllowed = allowed.some(
      (arrow) => target === arrow || roomOf(target) === arrow || target === arrow.replace('.js', '.ts'),
    )
    t.ok(isOwn || target === 'errors.ts' || isAllowed, `${each.file} → ${target}`)
  }
})

t.test('each package is imported at its door and nowhere else', async (t) => {
  // A type is no code: naming one loads nothing.
  const isTypeOnly = ({ file, target }: Import) =>
    new RegExp(`^import type [^\n]*'${target}'`, 'm').test(readFileSync(join(source, file), 'utf8'))
  for (const { file, target } of imports.filter(({ target }) => !/^(\.|node:|compiled$)/.test(target))) {
    const name = target.startsWith('@') ? target.split('/').slice(0, 2).join('/') : target.split('/')[0]!
    t.ok(DOORS[name]?.includes(file) || isTypeOnly({ file, target }), `${file} imports ${target}`)
  }
})

t.test('the pure rooms import no effect', async (t) => {
  for (const { file, target } of imports.filter(({ target }) => target.startsWith('node:'))) {
    t.notOk(['domain', 'operations'].includes(roomOf(file)), `${file} imports ${target}`)
  }
  const effects = /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval)\b|\bconsole\.[a-z]/
  for (const file of files.filter((name) => ['domain', 'operations'].includes(roomOf(name)))) {
    const code = stripComments(readFileSync(join(source, file), 'utf8'))
    t.notMatch(code, effects, `${file} reads no clock, draws no randomness and prints nothing`)
  }
})

t.test('the global process is named in bin alone', async (t) => {
  // A parameter called process hides the global one, so files that take one are those that take a ProcessLike.
  const global = /from 'node:process'|globalThis\.process|\bprocess\.[a-z]/
  for (const file of files) {
    const code = stripComments(readFileSync(join(source, file), 'utf8'))
    // The build never runs in the product. The guest is a program of its own; to start it one has to know which Node this is.
    const isExcepted = ['build.ts', 'reactor/guest.ts', 'reactor/this-node.ts'].includes(file)
    if (!code.includes('ProcessLike') && !isExcepted) t.notMatch(code, global, file)
  }
})

t.test('no file grows beyond what one can read at once, tables aside', async (t) => {
  const tables = ['domain/token-types.ts', 'domain/filters.ts', 'domain/standard-filters.ts']
  for (const file of files.filter((name) => !tables.includes(name))) {
    const lines = readFileSync(join(source, file), 'utf8').split('\n').length
    t.ok(lines <= 350, `${file} has ${lines} lines`)
  }
})

t.test('the version is that of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  t.equal(VERSION, version)
})

function stripComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
}
