/**
 * The command line and the library as CommonJS that starts soon. esbuild splits the modules into chunks; each becomes a
 * function, which V8 compiles when the chunk is used. The chunks are in files by what needs them, because a command pays
 * for each byte that is read. The code that V8 compiled for the usual commands is kept beside them.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { build, type OutputFile, type Plugin, transform } from 'esbuild'

export interface Bundled {
  distribution: string
  compiledSources: string
  /** The text of each validator, as CommonJS. */
  validators: readonly { name: string; text: string }[]
}

/** Installed with Coffer, and CommonJS, so that it can be loaded from where it is. It is used by its default export. */
const INSTALLED = 'libsodium-wrappers'

/**
 * Modules that are left out: the prompt that opens an editor brings tables of all character sets; servers and databases are
 * never named by a service or a string, and are reached without tokens of OAuth or a library of the machine; `coffer mcp` has
 * no schema that the SDK validates. Commander loads
 * `node:child_process` (5 ms) for subcommands that are programs of their own; it has none here.
 */
const UNUSED =
  /^(?:@inquirer\/editor|\.\.\/(?:well-known|xoauth2|(?:json|sendmail|ses|smtp|stream)-transport)\/index\.js|\.{1,2}\/(?:mime-funcs\/)?mime-types\.js|pg-connection-string|\.\/native|\.\/ajvProvider-[\w-]+\.mjs|node:child_process)$/

/** The beginning of the name of a validator's chunk. */
const VALIDATOR = 'validator-'

/** Always loaded: the chunks of commands of tokens; those that frequent commands need too, and requests; all others. */
const MAIN = 'coffer.cjs'
const MORE = 'coffer-more.cjs'
const SERVER = 'coffer-server.cjs'
const REST = 'coffer-rest.cjs'
/** The chunk of `coffer mcp`, which is large. */
const AGENT = 'coffer-mcp.cjs'
const OTHERS = [MORE, SERVER, REST, AGENT]
/** In characters. */
const SHORT = 250
const isForAgents = (name: string) => name.startsWith('mcp-')
/** A vault whose tokens are in a table, as those of most vaults are. */
const FIRST = [['init'], ['token', 'create', '--type', 'token', '--data', 'Ada'], ['vault', 'compact']]
const USUAL = [
  ['token', 'create'],
  ['token', 'get', 'build'],
  ['token', 'list'],
  ['token', 'create', '--help'],
]
const FREQUENT = [
  ['mcp'],
  ['app', 'list'],
  ['token', 'list', '-o', 'table'],
  ['log', 'list'],
  ['serve', '--ephemeral', '--port', '0'],
]
/** It is sent `REQUESTS` when it is ready. */
const SERVED = [['serve', '--ephemeral', '--port', '0', '-o', 'json']]

export async function bundleCommandLine(places: Bundled): Promise<void> {
  const { distribution } = places
  const chunks = (await splitCommandLine(places)).map(toChunk)
  writeBundle(distribution, chunks, [])
  const place = mkdtempSync(join(tmpdir(), 'coffer-build-'))
  const runAll = async (bundle: Bundle, at: string, commands: readonly string[][]) => {
    let used: string[] = []
    for (const words of commands) used = await runCommand(bundle, join(place, at), words)
    return used
  }
  try {
    const { bundle: whole } = openBundle(distribution)
    for (const at of ['1', '2']) await runAll(whole, at, FIRST)
    const { bundle: first } = openBundle(distribution)
    const used = []
    for (const commands of [USUAL, FREQUENT, SERVED]) used.push(await runAll(first, '1', commands))
    writeBundle(distribution, chunks, used)
    const { bundle, scripts } = openBundle(distribution)
    // What V8 compiled is of use to this version of Node alone.
    const keep = (part: string) =>
      writeFileSync(join(distribution, `${part}.cache`), scripts.get(part)!.createCachedData())
    await runAll(bundle, '2', USUAL)
    keep(MAIN)
    await runAll(bundle, '2', FREQUENT)
    for (const part of [MORE, AGENT]) keep(part)
    await runAll(bundle, '2', SERVED)
    keep(SERVER)
    await runAll(bundle, '2', [['--help']])
    keep(REST)
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** `used`: the names of the chunks of MAIN, of MORE, of SERVER, each with those before; without them, MAIN has all. */
function writeBundle(directory: string, chunks: readonly Chunk[], used: readonly string[][]): void {
  const partOf = ({ name, text }: Chunk) => {
    if (isForAgents(name)) return used.length === 0 ? MAIN : AGENT
    // No second file is loaded for a chunk that only passes on what is in the first.
    if (used.length === 0 || text.length < SHORT) return MAIN
    return [MAIN, MORE, SERVER][used.findIndex((names) => names.includes(name))] ?? REST
  }
  const tableOf = (part: string) =>
    `{${chunks
      .filter((chunk) => partOf(chunk) === part)
      .map(({ name, text }) => `\n"${name}":${text}`)
      .join()}\n}`
  const others = chunks
    .map((chunk) => [chunk.name, OTHERS.indexOf(partOf(chunk))])
    .filter(([, at]) => at !== -1)
  const places = JSON.stringify(Object.fromEntries(others))
  const main = `(function(require,__filename){const chunks=${tableOf(MAIN)},others=${places};\n${RUNTIME}})`
  writeFileSync(join(directory, MAIN), `${RESULT}${main};\n`)
  for (const part of OTHERS) writeFileSync(join(directory, part), `${RESULT}${tableOf(part)};\n`)
}

async function splitCommandLine(places: Bundled): Promise<OutputFile[]> {
  const { distribution, compiledSources, validators } = places
  const each = validators.map(({ name }, at) => [
    `${VALIDATOR}${name.replaceAll(' ', '-')}`,
    `validator:${at}`,
  ])
  const { outputFiles } = await build({
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    mainFields: ['module', 'main'],
    minifySyntax: true,
    minifyWhitespace: true,
    minifyIdentifiers: true,
    legalComments: 'none',
    // Node prints the line of an error that nobody caught.
    lineLimit: 200,
    // ASCII alone, so that it can be read without being decoded.
    charset: 'ascii',
    logLevel: 'error',
    entryPoints: {
      main: `${compiledSources}cli/main.js`,
      library: `${compiledSources}index.js`,
      ...Object.fromEntries(each),
    },
    // Files that are found from here.
    define: { 'import.meta.url': 'bundle.url' },
    external: [INSTALLED],
    plugins: [leaveUnused, adaptPackages, provideValidators(places)],
    outdir: distribution,
    write: false,
  })
  return outputFiles
}

const leaveUnused: Plugin = {
  name: 'leave-unused',
  setup(builder) {
    builder.onResolve({ filter: UNUSED }, ({ path, importer }) =>
      path.startsWith('node:') && !importer.includes('/commander/')
        ? null
        : // By its name it would be an ECMAScript module.
          { path: path.replace('.mjs', ''), namespace: 'unused' },
    )
    builder.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({ contents: 'module.exports = {}' }))
  },
}

/** Adapts packages to the bundle. */
const adaptPackages: Plugin = {
  name: 'adapt-packages',
  setup(builder) {
    builder.onLoad({ filter: /\/node_modules\/.*\.m?js$/ }, async ({ path }) => {
      // Commander calls its errors by the names of their classes.
      const keepNames = path.includes('/commander/')
      // A session of `coffer mcp` reads too few messages for parsers that zod compiles.
      const text = (await readFile(path, 'utf8')).replace('!core.globalConfig.jitless', 'false')
      const { code } = await transform(text, { target: 'node20', keepNames })
      return { contents: code }
    })
  },
}

/** Each validator as a chunk of its own, which is used when it is asked for. */
function provideValidators({ compiledSources, validators }: Bundled): Plugin {
  const find = `export default (name)=>use$("${VALIDATOR}"+name.replaceAll(" ","-")).validate`
  return {
    name: 'provide-validators',
    setup(builder) {
      builder.onResolve({ filter: /^(?:validator|validator-text):|\/validators\.js$/ }, ({ path }) => ({
        path,
        namespace: 'validators',
      }))
      builder.onLoad({ filter: /.*/, namespace: 'validators' }, ({ path }) => {
        const [kind, at] = path.split(':')
        if (at === undefined) return { contents: find }
        const isText = kind === 'validator-text'
        const contents = isText
          ? validators[Number(at)]!.text
          : `export { default as validate } from "validator-text:${at}"`
        return { contents, resolveDir: compiledSources }
      })
    },
  }
}

/** As esbuild writes it: a default import, names, or all. */
const IMPORT =
  /(?<=^|[;}\n])import(?: ([\w$]+))?,?(?:\{([^}]*)\}|\*as ([\w$]+))?(?: ?from)?"((?:\.\/|node:)?[\w./-]+)";/g
/** A list of names, or the exports of a CommonJS module. */
const EXPORT = /\bexport(?:\s*\{([^}]*)\}|\s+default\s+([\w$]+\(\)));?\s*$/
const DYNAMIC_IMPORT = /\bimport\("((?:\.\/|node:)[^"]+|libsodium-wrappers)"\)/g

interface Chunk {
  name: string
  text: string
}

/**
 * A module that esbuild wrote, as the text of a function that takes `use$`, `require` and `bundle`, and returns its
 * exports. These are read once, when it has run: none is assigned later, because no module has mutable state, and chunks do
 * not import each other in a circle. An import without names is left out, because no module of ours does anything when it is
 * loaded.
 */
function toChunk({ path, text }: OutputFile): Chunk {
  const [exported = '', exports = '', common] = EXPORT.exec(text) ?? []
  const pairs = exports.split(',').map((each) => each.trim().split(/\s+as\s+/))
  const named = pairs.map(([inner, outer = inner]) => (inner === '' ? '' : `${outer}:${inner}`)).join()
  const result = common === undefined ? named : `...${common},default:${common}`
  const body = text
    .slice(0, text.length - exported.length)
    .replaceAll(IMPORT, (_, whole, names, all, from) =>
      [
        whole && `const ${whole}=${load(from)}${from === INSTALLED ? '.default' : ''};`,
        names && `const{${names.replaceAll(' as ', ':')}}=${load(from)};`,
        all && `const ${all}=${load(from)};`,
      ].join(''),
    )
    .replaceAll(DYNAMIC_IMPORT, (_, from) => `Promise.resolve().then(()=>${load(from)})`)
  if (/(?:^|[;}\n])(?:import[\s{*"]|export[\s{])|\bimport\("/.test(body))
    throw new Error(`${path} imports in a way that the build does not know.`)
  return { name: basename(path, '.js'), text: `(use$,require,bundle)=>{${body}\nreturn{${result}}}` }
}

function load(from: string): string {
  if (from.startsWith('./')) return `use$("${basename(from, '.js')}")`
  return from === INSTALLED ? `({default:require("${from}")})` : `require("${from}")`
}

/** A file is a module of Node, or a script whose result it is: text around it would be a second copy of all of it. */
const RESULT = '"use strict";(typeof module==="object"?module:{}).exports='

const RUNTIME = `const bundle={get url(){return require("node:url").pathToFileURL(__filename).href}};
const ready=Object.create(null);
const files=${JSON.stringify(OTHERS.map((part) => `./${part}`))};
const find=(name)=>{if(!(name in chunks))Object.assign(chunks,require(files[others[name]]));return chunks[name]};
const use=(name)=>ready[name]??=find(name)(use,require,bundle);
return{main:(process)=>use("main").main(process),library:()=>use("library"),ready};`

interface Bundle {
  main(process: object): Promise<number>
  /** The exports of the chunks that were used. */
  ready: object
}

/** A bundle of which nothing is loaded. */
function openBundle(directory: string) {
  const scripts = new Map<string, Script>()
  const loadPart = (part: string) => {
    const filename = join(directory, part)
    const script = new Script(readFileSync(filename, 'latin1'), { filename })
    scripts.set(part, script)
    return script.runInThisContext()
  }
  const near = createRequire(join(directory, MAIN))
  const find = (name: string) => (/^\.\/coffer-/.test(name) ? loadPart(name.slice(2)) : near(name))
  return { bundle: loadPart(MAIN)(find, join(directory, MAIN)) as Bundle, scripts }
}

/** What a client of `coffer mcp` says first. It is answered before the key is tried, so this one opens nothing. */
const GREETING = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"build","version":"1"}}}\n`
const CARD = '{"id":"build","type":"card","data":{"number":"4242424242424242"}}'

/**
 * Runs a command on the vault in `place`; a server until it says that it is ready. Resolves to the names of all chunks
 * that were used until then.
 */
async function runCommand(
  { main, ready }: Bundle,
  place: string,
  words: readonly string[],
): Promise<string[]> {
  const stops: (() => void)[] = []
  let used: string[] | undefined
  const stdout = new PassThrough().resume()
  stdout.once('data', async (line: Buffer) => {
    if (words[0] !== 'serve') return
    if (words.includes('json')) await sendRequests(JSON.parse(line.toString('utf8')))
    used = Object.keys(ready)
    stops[0]!()
  })
  const isAgent = words[0] === 'mcp'
  const env = { COFFER_VAULT: join(place, 'vault'), XDG_CONFIG_HOME: place, COFFER_QUIET: '1' }
  const code = await main({
    argv: ['node', 'coffer', ...words],
    env: isAgent ? { ...env, COFFER_API_KEY: 'none' } : env,
    stdin: Readable.from([Buffer.from(isAgent ? GREETING : CARD)]),
    stdout,
    stderr: new PassThrough().resume(),
    pid: process.pid,
    cwd: () => place,
    on: (_: string, stop: () => void) => stops.push(stop),
    off: () => undefined,
  })
  if (code !== (isAgent ? 4 : 0))
    throw new Error(`coffer ${words.join(' ')} failed while it was being built.`)
  // A server sets flags of V8, under which compiled code would be refused.
  setFlagsFromString('--allocation-site-pretenuring')
  return used ?? Object.keys(ready)
}

/** Sends what test suites send, so often that V8 has compiled what answers it. */
async function sendRequests({
  url,
  applications,
}: {
  url: string
  applications: Record<string, { key: string }>
}) {
  const send = async (method: string, path: string, body?: object) => {
    const headers = {
      'svc-api-key': applications.private!.key,
      'content-type': `application/${method === 'PATCH' ? 'merge-patch+' : ''}json`,
    }
    const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) ?? null })
    if (!response.ok) throw new Error(`${method} ${path} gave ${response.status} while it was being built.`)
    return response.status === 204 ? { id: '' } : ((await response.json()) as { id: string })
  }
  for (let round = 0; round < 20; round++) {
    const { id } = await send('POST', '/tokens', { type: 'token', data: 'Ada', metadata: { n: `${round}` } })
    await send('GET', `/tokens/${id}`)
    await send('PATCH', `/tokens/${id}`, { metadata: { n: 'x' } })
    await send('GET', '/tokens?metadata.n=x')
    await send('POST', '/tokenize', { name: 'Ada', type: 'token' })
    await send('POST', '/detokenize', { name: `{{ ${id} }}` })
    await send('DELETE', `/tokens/${id}`)
  }
}
