/**
 * Bundles the command line and the library as CommonJS that starts fast. esbuild splits the modules into
 * chunks. Each chunk becomes a function, and V8 compiles the function when the chunk is used. A file has the
 * chunks that the same commands need, because reading files takes time. V8's compiled code for frequent
 * commands is stored beside these files.
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
  validators: readonly { name: string; text: string }[]
}

/** A CommonJS package that is installed with Coffer and not bundled. Only its default export is used. */
const INSTALLED = 'libsodium-wrappers'

/**
 * Modules that are left out because Coffer does not use their features: the editor prompt with its character
 * tables, well-known mail services, OAuth and other transports of mail, connection strings and the native
 * client of PostgreSQL, and the validator of the MCP SDK. Commander loads `node:child_process` (5 ms) for
 * subcommands that are programs, and Coffer has no such subcommands.
 */
const UNUSED =
  /^(?:@inquirer\/editor|\.\.\/(?:well-known|xoauth2|(?:json|sendmail|ses|smtp|stream)-transport)\/index\.js|\.{1,2}\/(?:mime-funcs\/)?mime-types\.js|pg-connection-string|\.\/native|\.\/ajvProvider-[\w-]+\.mjs|node:child_process)$/

const VALIDATOR = 'validator-'

/**
 * MAIN is always loaded, and has the chunks of token commands. MORE has those of other frequent commands, and
 * SERVER those of requests.
 */
const MAIN = 'coffer.cjs'
const MORE = 'coffer-more.cjs'
const SERVER = 'coffer-server.cjs'
const REST = 'coffer-rest.cjs'
/** The chunk of `coffer mcp`, which is large. */
const AGENT = 'coffer-mcp.cjs'
const OTHERS = [MORE, SERVER, REST, AGENT]
/** Chunks with fewer characters are always in MAIN. */
const SHORT = 250
const isForAgents = (name: string) => name.startsWith('mcp-')
/** Creates a vault whose tokens are in a table, as in most vaults. */
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
/** When this server is ready, `sendRequests` sends requests to it. */
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
    // Only this version of Node can use the compiled code.
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

/**
 * `used`: the names of the chunks of MAIN, MORE and SERVER. Each list includes the lists before it. If `used`
 * is empty, MAIN has all chunks.
 */
function writeBundle(directory: string, chunks: readonly Chunk[], used: readonly string[][]): void {
  const partOf = ({ name, text }: Chunk) => {
    if (isForAgents(name)) return used.length === 0 ? MAIN : AGENT
    // A chunk that only exports from MAIN again must not need a second file.
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
    // Node prints the line of an uncaught error, so lines must be short.
    lineLimit: 200,
    // The file has only ASCII, so that Node can read it without decoding.
    charset: 'ascii',
    logLevel: 'error',
    entryPoints: {
      main: `${compiledSources}cli/main.js`,
      library: `${compiledSources}index.js`,
      ...Object.fromEntries(each),
    },
    // Some modules find files relative to their own place.
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
        : // With the extension .mjs it would be an ECMAScript module.
          { path: path.replace('.mjs', ''), namespace: 'unused' },
    )
    builder.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({ contents: 'module.exports = {}' }))
  },
}

const adaptPackages: Plugin = {
  name: 'adapt-packages',
  setup(builder) {
    builder.onLoad({ filter: /\/node_modules\/.*\.m?js$/ }, async ({ path }) => {
      // Commander uses the names of its error classes.
      const keepNames = path.includes('/commander/')
      // Compiled zod parsers cost more than they save for the few messages of a `coffer mcp` session.
      const text = (await readFile(path, 'utf8')).replace('!core.globalConfig.jitless', 'false')
      const { code } = await transform(text, { target: 'node20', keepNames })
      return { contents: code }
    })
  },
}

/** Makes each validator a chunk, which is loaded when it is needed. */
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

/** An import as esbuild writes it: the default, some names, or all names. */
const IMPORT =
  /(?<=^|[;}\n])import(?: ([\w$]+))?,?(?:\{([^}]*)\}|\*as ([\w$]+))?(?: ?from)?"((?:\.\/|node:)?[\w./-]+)";/g
/** An export as esbuild writes it: a list of names, or the exports of a CommonJS module. */
const EXPORT = /\bexport(?:\s*\{([^}]*)\}|\s+default\s+([\w$]+\(\)));?\s*$/
const DYNAMIC_IMPORT = /\bimport\("((?:\.\/|node:)[^"]+|libsodium-wrappers)"\)/g

interface Chunk {
  name: string
  text: string
}

/**
 * Turns a module of esbuild into the text of a function, which takes `use$`, `require` and `bundle`, and
 * returns the exports. The exports are read once, after the function has run. This is enough, because no
 * module has mutable state, and chunks do not import each other in a circle. Imports without names are left
 * out, because loading one of our modules has no effects.
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

/**
 * Makes a file work as a module and as a script. The alternative, wrapping its text, would copy the whole
 * text.
 */
const RESULT = '"use strict";(typeof module==="object"?module:{}).exports='

const RUNTIME = `const bundle={get url(){return require("node:url").pathToFileURL(__filename).href}};
const ready=Object.create(null);
const files=${JSON.stringify(OTHERS.map((part) => `./${part}`))};
const find=(name)=>{if(!(name in chunks))Object.assign(chunks,require(files[others[name]]));return chunks[name]};
const use=(name)=>ready[name]??=find(name)(use,require,bundle);
return{main:(process)=>use("main").main(process),library:()=>use("library"),ready};`

interface Bundle {
  main(process: object): Promise<number>
  ready: object
}

/** Opens a bundle without loading any chunk. */
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

/** The first message of an MCP client. Coffer answers it before it uses the key, so this needs no open vault. */
const GREETING = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"build","version":"1"}}}\n`
const CARD = '{"id":"build","type":"card","data":{"number":"4242424242424242"}}'

/**
 * Runs a command on the vault in `place`, or a server until it is ready. Resolves to the names of all chunks
 * that were used so far.
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
  // Resets a flag of V8 that servers set, because V8 refuses compiled code if the flags differ.
  setFlagsFromString('--allocation-site-pretenuring')
  return used ?? Object.keys(ready)
}

/** Sends typical requests of test suites, so often that V8 compiles the code that answers them. */
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
