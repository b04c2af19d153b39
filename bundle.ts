/**
 * The command line and the library as CommonJS that starts soon. esbuild splits the modules into chunks; each becomes a
 * function here, which V8 compiles when the chunk is used. The chunks are in three parts: what commands of tokens use,
 * what a server uses, and the rest. The code that V8 compiled for the usual commands is kept beside each part.
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
import { registry } from './src/operations/all.js'

/** Always loaded. */
const MAIN = 'coffer'
const SERVER = 'coffer-server'
const REST = 'coffer-rest'

type Line = readonly string[]

const SERVE: Line = ['serve', '--ephemeral', '--port', '0']
/** The commands whose code is kept in each part. */
const LINES: Readonly<Record<string, readonly Line[]>> = {
  [MAIN]: [
    ['token', 'create'],
    ['token', 'get', 'build'],
    ['token', 'list'],
  ],
  [SERVER]: [SERVE],
  [REST]: registry.nouns.flatMap(({ name, operations }) =>
    operations.some((operation) => operation.name === `${name} list`) ? [[name, 'list']] : [],
  ),
}

export async function bundleCommandLine(places: Bundled): Promise<void> {
  await bundleLatePackages(places)
  const chunks = (await splitCommandLine(places)).map(toChunk)
  // In one part at first, to see which chunks the commands use.
  writeParts(places, new Map([[MAIN, chunks]]))
  const users: [part: string, used: ReadonlySet<string>][] = []
  await inScratch(places, async (place) => {
    for (const part of [MAIN, SERVER]) {
      const { bundle } = openBundle(places)
      let used: string[] | undefined
      // What answers requests is loaded once a server says that it is ready.
      const note = () => {
        used = Object.keys(bundle.ready)
      }
      for (const words of LINES[part]!)
        await runCommand(bundle, place, words, words === SERVE ? note : undefined)
      users.push([part, new Set(used ?? Object.keys(bundle.ready))])
    }
  })
  const partOf = ({ name }: Chunk) => users.find(([, used]) => used.has(name))?.[0] ?? REST
  const parts = [MAIN, SERVER, REST].map(
    (part) => [part, chunks.filter((each) => partOf(each) === part)] as const,
  )
  writeParts(places, new Map(parts))
  await keepCompiled(places)
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
  /** The text of a function that takes `use$`, `require` and `bundleUrl`, and returns the exports of the chunk. */
  text: string
}

/** As esbuild writes it: a default import, names, or all. */
const IMPORT =
  /(?<=^|[;}\n])import(?: ([\w$]+))?,?(?:\{([^}]*)\}|\*as ([\w$]+))?(?: ?from)?"((?:\.\/|node:)[^"]+|libsodium-wrappers)";/g
const EXPORT = /\bexport\s*\{([^}]*)\};?\s*$/
const DYNAMIC_IMPORT = /\bimport\("((?:\.\/|node:)[^"]+|libsodium-wrappers)"\)/g

/**
 * A module that esbuild wrote, as the text of a function. Its exports are read once, when it has run: none is assigned
 * later, because no module has mutable state, and chunks do not import each other in a circle. An import without names is
 * left out, because no module of ours does anything when it is loaded.
 */
function toChunk({ path, text }: OutputFile): Chunk {
  const [exported = '', exports = ''] = EXPORT.exec(text) ?? []
  const pairs = exports.split(',').map((each) => each.trim().split(/\s+as\s+/))
  const result = pairs.map(([inner, outer = inner]) => (inner === '' ? '' : `${outer}:${inner}`)).join()
  const body = text
    .slice(0, text.length - exported.length)
    .replaceAll(IMPORT, (_, whole, names, all, from) =>
      [
        whole && `const ${whole}=${load(from)}${isDefault(from) ? '.default' : ''};`,
        names && `const{${names.replaceAll(' as ', ':')}}=${load(from)};`,
        all && `const ${all}=${load(from)};`,
      ].join(''),
    )
    .replaceAll(DYNAMIC_IMPORT, (_, from) => `Promise.resolve().then(()=>${load(from)})`)
  if (/(?:^|[;}\n])(?:import[\s{*"]|export[\s{])|\bimport\("/.test(body))
    throw new Error(`${path} imports in a way that the build does not know.`)
  return { name: basename(path, '.js'), text: `(use$,require,bundleUrl)=>{${body}\nreturn{${result}}}` }
}

function load(from: string): string {
  if (from.startsWith('./') && !from.startsWith('./late/')) return `use$("${basename(from, '.js')}")`
  return isDefault(from) ? `({default:require("${from}")})` : `require("${from}")`
}

/** A part is a module of Node, or a script whose result it is: text around it would be a second copy of all of it. */
const RESULT = '"use strict";(typeof module==="object"?module:{}).exports='

/** `places`: by chunk, the part that has it. `ready`: what the chunks that were used export; the build looks at it. */
const RUNTIME = `const bundleUrl=require("node:url").pathToFileURL(__filename).href;
const ready=Object.create(null);
const find=(name)=>chunks[name]??Object.assign(chunks,require(places[name]))[name];
const use=(name)=>ready[name]??=find(name)(use,require,bundleUrl);
return{main:(process)=>use("main").main(process),library:()=>use("library"),ready};
`

function writeParts({ distribution }: Bundled, parts: ReadonlyMap<string, readonly Chunk[]>): void {
  const places: Record<string, string> = {}
  for (const [part, chunks] of parts)
    for (const { name } of part === MAIN ? [] : chunks) places[name] = `./${part}.cjs`
  for (const [part, chunks] of parts) {
    const table = `{${chunks.map(({ name, text }) => `\n"${name}":${text}`).join()}\n}`
    const runtime = `const chunks=${table};\nconst places=${JSON.stringify(places)};\n${RUNTIME}`
    const text = part === MAIN ? `(function(require,__filename){${runtime}})` : table
    writeFileSync(`${distribution}${part}.cjs`, `${RESULT}${text};\n`)
  }
}

interface Bundle {
  main(process: object): Promise<number>
  ready: object
}

/** Keeps beside each part what V8 compiled of it for its commands: of use to this version of Node alone. */
async function keepCompiled(places: Bundled): Promise<void> {
  await inScratch(places, async (place) => {
    const { bundle, scripts } = openBundle(places)
    const keep = (part: string) =>
      writeFileSync(join(places.distribution, `${part}.cjs.cache`), scripts.get(part)!.createCachedData())
    for (const words of [...LINES[MAIN]!, ...LINES[SERVER]!]) await runCommand(bundle, place, words)
    keep(MAIN)
    keep(SERVER)
    for (const words of LINES[REST]!) await runCommand(bundle, place, words)
    keep(REST)
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
  const near = createRequire(fileOf(MAIN))
  const find = (name: string) =>
    name.startsWith('./coffer-') ? loadPart(basename(name, '.cjs')) : near(name)
  const make = loadPart(MAIN) as (require: typeof find, filename: string) => Bundle
  return { bundle: make(find, fileOf(MAIN)), scripts }
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

/** Runs a command; a server until it says that it is ready. `note` is called at its first output. */
async function runCommand({ main }: Bundle, place: string, words: Line, note?: () => void): Promise<void> {
  const stops: (() => void)[] = []
  const stdout = new PassThrough()
  stdout.once('data', () => {
    note?.()
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
  // A server sets flags of V8, under which compiled code would be refused.
  setFlagsFromString('--allocation-site-pretenuring')
}
