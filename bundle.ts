/**
 * The command line and the library as CommonJS that starts soon. esbuild splits the modules into chunks; each becomes a
 * function here, which V8 compiles when the chunk is used. Chunks that the same commands use are in one file (a part), with
 * what V8 compiled of it beside: start-up is a matter of what is read and compiled. One chunk has each module, so that
 * there is one `CofferError`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import Module, { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
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

/**
 * The parts, by what they are for: a chunk is in the first one of whose commands one uses it. `coffer` is always loaded.
 * What V8 compiled is kept of these commands; what is compiled for others would only have to be read.
 */
const PARTS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  coffer: [
    ['token', 'create'],
    ['token', 'get', 'build'],
  ],
  'coffer-nouns': [
    ['--help'],
    ['completion', 'words', '--', 'token', 'get', ''],
    ...['app', 'formula', 'invite', 'log', 'member', 'proxy', 'reactor', 'tenant', 'token'].map((noun) => [
      noun,
      'list',
    ]),
  ],
  'coffer-server': [['serve', '--ephemeral', '--port', '0']],
}
const OTHERS = 'coffer-others'
/** One operation needs one of them, and all are as large as the rest together. */
const VALIDATORS = 'coffer-validators'

export async function bundleCommandLine(places: Bundled): Promise<void> {
  await bundleLatePackages(places)
  const chunks = (await splitCommandLine(places)).map(toChunk)
  // In one part at first, to see which chunks the commands use.
  const everything = new Map([['coffer', chunks]])
  writeParts(places, everything)
  const used = await useParts(places, everything)
  const parts = new Map<string, Chunk[]>()
  for (const chunk of chunks) {
    const part =
      Object.keys(PARTS).find((name) => used.get(name)!.has(chunk.name)) ??
      (chunk.name.startsWith(VALIDATOR) ? VALIDATORS : OTHERS)
    parts.set(part, [...(parts.get(part) ?? []), chunk])
  }
  writeParts(places, parts)
  await useParts(places, parts)
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

/** `places`: by chunk, the part that it is in. `ready`: what the chunks that were used export; the build looks at it. */
const RUNTIME = `const bundleUrl=require("node:url").pathToFileURL(__filename).href;
const ready=Object.create(null);
const find=(name)=>chunks[name]??Object.assign(chunks,require(places[name]))[name];
const use=(name)=>ready[name]??=find(name)(use,require,bundleUrl);
exports.main=(process)=>use("main").main(process);
exports.library=()=>use("library");
exports.ready=ready;
`

function writeParts({ distribution }: Bundled, parts: ReadonlyMap<string, readonly Chunk[]>): void {
  const places: Record<string, string> = {}
  for (const [part, chunks] of parts)
    for (const { name } of part === 'coffer' ? [] : chunks) places[name] = `./${part}.cjs`
  for (const [part, chunks] of parts) {
    const table = `{${chunks.map(({ name, text }) => `\n"${name}":${text}`).join()}\n}`
    const text =
      part === 'coffer'
        ? `"use strict";const chunks=${table};\nconst places=${JSON.stringify(places)};\n${RUNTIME}`
        : `"use strict";module.exports=${table};\n`
    writeFileSync(`${distribution}${part}.cjs`, text)
  }
}

interface Bundle {
  main(process: object): Promise<number>
  ready: object
}

/**
 * Runs the commands of each part, and keeps beside it what V8 compiled for them, where `bin/coffer.js` looks for it. It is
 * of use to this version of Node alone. @returns the chunks that were used, by part
 */
async function useParts(
  { distribution }: Bundled,
  parts: ReadonlyMap<string, unknown>,
): Promise<Map<string, Set<string>>> {
  const scripts = new Map<string, Script>()
  const loadPart = (file: string): unknown => {
    const filename = join(distribution, file)
    const near = createRequire(filename)
    const script = new Script(Module.wrap(readFileSync(filename, 'latin1')), { filename })
    scripts.set(basename(file, '.cjs'), script)
    const loaded = { exports: {} }
    const find = (name: string) => (parts.has(basename(name, '.cjs')) ? loadPart(name) : near(name))
    script.runInThisContext()(loaded.exports, find, loaded, filename, dirname(filename))
    return loaded.exports
  }
  const bundle = loadPart('coffer.cjs') as Bundle
  const keepCompiled = (part: string) => {
    if (!parts.has(part)) return
    if (!scripts.has(part)) loadPart(`${part}.cjs`)
    writeFileSync(join(distribution, `${part}.cjs.cache`), scripts.get(part)!.createCachedData())
  }
  const place = mkdtempSync(join(tmpdir(), 'coffer-build-'))
  const used = new Map<string, Set<string>>()
  try {
    const other = createRequire(distribution)('./coffer.cjs') as Bundle
    await runCommand(other, place, ['init'])
    for (const [part, commands] of Object.entries(PARTS)) {
      for (const words of commands) await runCommand(bundle, place, words)
      used.set(part, new Set(Object.keys(bundle.ready)))
      // As a server sets it. What is compiled under other flags is refused.
      setFlagsFromString('--allocation-site-pretenuring')
      keepCompiled(part)
    }
    for (const part of parts.keys()) if (!Object.hasOwn(PARTS, part)) keepCompiled(part)
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
  return used
}

const CARD = '{"id":"build","type":"card","data":{"number":"4242424242424242"}}'

/** A server is stopped as soon as it says that it is ready. */
async function runCommand({ main }: Bundle, place: string, words: readonly string[]): Promise<void> {
  const stops: (() => void)[] = []
  const stdout = new PassThrough()
  stdout.once('data', () => words[0] === 'serve' && stops[0]!()).resume()
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
}
