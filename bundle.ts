/**
 * The command line and the library as CommonJS that starts soon. esbuild splits the modules into chunks; each becomes a
 * function here, which V8 compiles when the chunk is used. Chunks that the same commands use are in one file (a part), with
 * what V8 compiled of it beside: start-up is a matter of what is read and compiled. One chunk has each module, so that
 * there is one `CofferError`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { build, type OutputFile } from 'esbuild'
import {
  type Bundled,
  bundleLatePackages,
  COMMON,
  INSTALLED,
  isDefault,
  loadLate,
  minifyPackages,
  provideValidators,
  spareChildProcess,
  VALIDATOR,
} from './bundle-packages.js'
import type { AnyOperation } from './src/framework/operation.js'
import { registry } from './src/operations/all.js'

/** A command and its words. */
type Line = readonly string[]

const TOKEN_GET: Line = ['token', 'get', 'build']

/**
 * Whose code a chunk is, by the commands that use it: each noun has a part, and so has a server until it says that it is
 * ready. What V8 compiled is kept of these commands; what is compiled for others would only have to be read.
 */
const USERS: ReadonlyMap<string, readonly Line[]> = new Map(
  registry.nouns.map(({ name, operations }) => [name, linesOf(name, operations)]),
)
/** What a server uses until it says that it is ready, and what it uses then. */
const SERVER = 'server'
const REQUESTS = 'requests'
/** Always loaded: what the commands of tokens use, which are the most usual, and what a server shares with other nouns. */
const COMMON_PART = 'coffer'
/** What several users need, but for tokens. */
const SHARED_PART = 'coffer-nouns'
const OTHERS = 'coffer-others'
/** One operation needs one of them, and all are as large as the rest together. */
const VALIDATORS = 'coffer-validators'

/** Commands of a noun that can be run without knowing more. */
function linesOf(noun: string, operations: readonly AnyOperation[]): Line[] {
  if (noun === 'token') return [['token', 'create'], TOKEN_GET]
  const [first] = operations
  const completed = ['completion', 'words', '--', ...first!.name.split(' '), '']
  return operations.some(({ name }) => name === `${noun} list`) ? [completed, [noun, 'list']] : [completed]
}

export async function bundleCommandLine(places: Bundled): Promise<void> {
  await bundleLatePackages(places)
  const chunks = (await splitCommandLine(places)).map(toChunk)
  // In one part at first, to see which chunks the commands use.
  const everything = new Map([[COMMON_PART, chunks]])
  writeParts(places, everything)
  const used = await findUsed(places)
  const parts = new Map<string, Chunk[]>()
  for (const chunk of chunks) {
    const part = partOf(chunk, used)
    parts.set(part, [...(parts.get(part) ?? []), chunk])
  }
  writeParts(places, parts)
  await keepCompiled(places, parts)
}

function partOf({ name }: Chunk, used: ReadonlyMap<string, ReadonlySet<string>>): string {
  const users = [...used.keys()].filter((user) => user !== REQUESTS && used.get(user)!.has(name))
  if (users.includes('token') || (users.length > 1 && users.includes(SERVER))) return COMMON_PART
  if (users.length > 1) return SHARED_PART
  if (users.length === 1) return `coffer-${users[0]}`
  if (used.get(REQUESTS)!.has(name)) return `coffer-${REQUESTS}`
  return name.startsWith(VALIDATOR) ? VALIDATORS : OTHERS
}

async function splitCommandLine(places: Bundled): Promise<OutputFile[]> {
  const { distribution, compiledSources, validators } = places
  const each = validators.map((_, at) => [`${VALIDATOR}${at}`, `validator:${at}`])
  const { outputFiles } = await build({
    ...COMMON,
    splitting: true,
    format: 'esm',
    entryPoints: {
      main: `${compiledSources}cli/main.js`,
      library: `${compiledSources}index.js`,
      ...Object.fromEntries(each),
    },
    // Files that are found from here.
    define: { 'import.meta.url': 'bundleUrl' },
    external: [INSTALLED],
    plugins: [loadLate, spareChildProcess, minifyPackages, provideValidators(places)],
    outdir: distribution,
    write: false,
  })
  return outputFiles
}

interface Chunk {
  name: string
  /** Of a function that takes `use$`, `require` and `bundleUrl`, and returns what the chunk exports. */
  text: string
}

/** As esbuild writes it: a default import, names, or all. */
const IMPORT =
  /(?<=^|[;}\n])import(?: ([\w$]+))?,?(?:\{([^}]*)\}|\*as ([\w$]+))?(?: ?from)?"((?:\.\/|node:)[^"]+|libsodium-wrappers)";/g
const EXPORT = /\bexport\s*\{([^}]*)\};?\s*$/
const DYNAMIC_IMPORT = /\bimport\("((?:\.\/|node:)[^"]+|libsodium-wrappers)"\)/g

/**
 * A module that esbuild wrote, as the text of a function. Its exports are read once, when it has run: none is assigned
 * later, as no module has mutable state, and chunks do not import each other in a circle. An import without names is left
 * out, because no module of ours does anything when it is loaded.
 */
function toChunk({ path, text }: OutputFile): Chunk {
  const [exported = '', exports = ''] = EXPORT.exec(text) ?? []
  const names = exports.split(',').filter((each) => each.trim() !== '')
  const pairs = names.map((each) => each.trim().split(/\s+as\s+/))
  const result = pairs.map(([inner, outer = inner]) => `${outer}:${inner}`).join()
  const body = text
    .slice(0, text.length - exported.length)
    .replaceAll(IMPORT, (_, whole, names, all, from) => declare(from, { whole, names, all }))
    .replaceAll(DYNAMIC_IMPORT, (_, from) => `Promise.resolve().then(()=>${load(from)})`)
  if (/(?:^|[;}\n])(?:import[\s{*"]|export[\s{])|\bimport\("/.test(body))
    throw new Error(`${path} imports in a way that the build does not know.`)
  return { name: basename(path, '.js'), text: `(use$,require,bundleUrl)=>{${body}\nreturn{${result}}}` }
}

interface Names {
  whole: string | undefined
  names: string | undefined
  all: string | undefined
}

function declare(from: string, { whole, names, all }: Names): string {
  return [
    whole && `const ${whole}=${load(from)}${isDefault(from) ? '.default' : ''};`,
    names && `const{${names.replaceAll(' as ', ':')}}=${load(from)};`,
    all && `const ${all}=${load(from)};`,
  ]
    .filter((each) => each !== undefined)
    .join('')
}

function load(from: string): string {
  if (isChunk(from)) return `use$("${basename(from, '.js')}")`
  return isDefault(from) ? `({default:require("${from}")})` : `require("${from}")`
}

function isChunk(from: string): boolean {
  return from.startsWith('./') && !from.startsWith('./late/')
}

/**
 * What a part is assigned to: a module of Node's, or, as a script that needs no text around it, which would be a second copy
 * of all of it, its result.
 */
const RESULT = '"use strict";(typeof module==="object"?module:{}).exports='

/** `places`: by chunk, the part that it is in. `ready`: what the chunks that were used export; the build looks at it. */
const RUNTIME = `const bundleUrl=require("node:url").pathToFileURL(__filename).href;
const ready=Object.create(null);
const find=(name)=>chunks[name]??Object.assign(chunks,require(places[name]))[name];
const use=(name)=>ready[name]??=find(name)(use,require,bundleUrl);
return{main:(process)=>use("main").main(process),library:()=>use("library"),ready};
`

function writeParts({ distribution }: Bundled, parts: ReadonlyMap<string, readonly Chunk[]>): void {
  const places: Record<string, string> = {}
  for (const [part, chunks] of parts)
    for (const { name } of part === 'coffer' ? [] : chunks) places[name] = `./${part}.cjs`
  for (const [part, chunks] of parts) {
    const table = `{${chunks.map(({ name, text }) => `\n"${name}":${text}`).join()}\n}`
    const text =
      part === 'coffer'
        ? `${RESULT}(function(require,__filename){const chunks=${table};\nconst places=${JSON.stringify(places)};\n${RUNTIME}});\n`
        : `${RESULT}${table};\n`
    writeFileSync(`${distribution}${part}.cjs`, text)
  }
}

interface Bundle {
  main(process: object): Promise<number>
  ready: object
}

const SERVE: Line = ['serve', '--ephemeral', '--port', '0']
/** Commands for which what V8 compiled of the common part is kept by itself: the others need more of it, or other code. */
const ALONE: Readonly<Record<string, Line>> = { 'token-get': TOKEN_GET, serve: SERVE }

/** The chunks that the commands of each user use, in a process of their own; last those of a server's requests. */
async function findUsed(places: Bundled): Promise<Map<string, ReadonlySet<string>>> {
  const used = new Map<string, ReadonlySet<string>>()
  await inScratch(places, async (place) => {
    for (const [user, lines] of USERS) {
      const { bundle } = openBundle(places)
      for (const words of lines) await runCommand(bundle, place, words)
      used.set(user, new Set(Object.keys(bundle.ready)))
    }
    const { bundle } = openBundle(places)
    used.set(SERVER, await runCommand(bundle, place, SERVE))
    used.set(REQUESTS, new Set(Object.keys(bundle.ready)))
  })
  return used
}

/**
 * Keeps beside each part what V8 compiled of it for the commands of its user, where `bin/coffer.js` looks for it. It is of
 * use to this version of Node alone.
 */
async function keepCompiled(places: Bundled, parts: ReadonlyMap<string, unknown>): Promise<void> {
  const { bundle, scripts, loadPart } = openBundle(places)
  const write = (name: string, script: Script) =>
    writeFileSync(join(places.distribution, `${name}.cache`), script.createCachedData())
  const keep = (part: string) => {
    if (!parts.has(part)) return
    if (!scripts.has(part)) loadPart(part)
    write(`${part}.cjs`, scripts.get(part)!)
  }
  await inScratch(places, async (place) => {
    for (const [user, lines] of USERS) {
      for (const words of lines) await runCommand(bundle, place, words)
      // What others use of it would only have to be read.
      if (user === 'token') keep(COMMON_PART)
      keep(`coffer-${user}`)
    }
    await runCommand(bundle, place, SERVE)
    for (const [name, words] of Object.entries(ALONE)) {
      // Else V8 would go on with what it has of the same text.
      setFlagsFromString('--no-compilation-cache')
      const { bundle: alone, scripts: own } = openBundle(places)
      setFlagsFromString('--compilation-cache')
      await runCommand(alone, place, words, () => write(`${COMMON_PART}.cjs.${name}`, own.get(COMMON_PART)!))
    }
    for (const part of parts.keys())
      if (part !== COMMON_PART && !USERS.has(part.slice('coffer-'.length))) keep(part)
  })
}

/** A bundle of which nothing is loaded. */
function openBundle({ distribution }: Bundled) {
  const scripts = new Map<string, Script>()
  const fileOf = (part: string) => join(distribution, `${part}.cjs`)
  const loadPart = (part: string): unknown => {
    const filename = fileOf(part)
    const script = new Script(readFileSync(filename, 'latin1'), { filename })
    scripts.set(part, script)
    return script.runInThisContext()
  }
  const near = createRequire(fileOf(COMMON_PART))
  const find = (name: string) =>
    name.startsWith('./coffer-') ? loadPart(basename(name, '.cjs')) : near(name)
  const make = loadPart(COMMON_PART) as (require: typeof find, filename: string) => Bundle
  return { bundle: make(find, fileOf(COMMON_PART)), scripts, loadPart }
}

/** `work` with the path of a directory that has a vault. */
async function inScratch(places: Bundled, work: (place: string) => Promise<void>): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'coffer-build-'))
  try {
    await runCommand(openBundle(places).bundle, place, ['init'])
    await work(place)
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

const CARD = '{"id":"build","type":"card","data":{"number":"4242424242424242"}}'

/** Runs a command; a server until it says that it is ready. @returns the chunks that were used at its first output */
async function runCommand(
  { main, ready }: Bundle,
  place: string,
  words: Line,
  note: () => void = () => {},
): Promise<Set<string>> {
  const stops: (() => void)[] = []
  const stdout = new PassThrough()
  let used = new Set<string>()
  stdout.once('data', () => {
    used = new Set(Object.keys(ready))
    note()
    if (words === SERVE) stops[0]!()
  })
  stdout.resume()
  const code = await main({
    argv: ['node', 'coffer', ...words],
    env: { COFFER_VAULT: join(place, 'vault'), XDG_CONFIG_HOME: place, COFFER_QUIET: '1' },
    stdin: Readable.from([CARD]),
    stdout,
    stderr: new PassThrough().resume(),
    pid: process.pid,
    cwd: () => place,
    on: (_: string, stop: () => void) => stops.push(stop),
    off: () => undefined,
  })
  if (code !== 0) throw new Error(`coffer ${words.join(' ')} failed while it was being built.`)
  // As it was before a server. What is compiled under other flags is refused.
  setFlagsFromString('--allocation-site-pretenuring')
  return used
}
