/**
 * Runs after the compiler. Writes ajv's code for the input of every operation into `validators.js`. Bundles
 * the command line and the library, because the start is faster if Node loads few files.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync } from 'node:zlib'
import { Ajv2020 } from 'ajv/dist/2020.js'
import standalone from 'ajv/dist/standalone/index.js'
import formats from 'ajv-formats'
import { build, type Plugin, transform } from 'esbuild'
import { type Bundled, bundleCommandLine } from './bundle.js'
import { PACKED_CASES, readCases } from './src/cli/commands/conform/read-cases.js'
import { describeManual } from './src/cli/commands/help/help.js'
import { findTerminalCommand, listCommands } from './src/cli/program.js'
import { toJsonSchema } from './src/framework/schema.js'
import { registry } from './src/operations/all.js'

const distribution = fileURLToPath(new URL('.', import.meta.url))
const compiledSources = `${distribution}src/`
const sources = fileURLToPath(new URL('../src/', import.meta.url))

const AJV_OPTIONS = {
  strict: true,
  // This is safe, because the body is limited, and because the registry requires a limit for every array and
  // map of the schemas.
  allErrors: true,
  // Without this option, every object would have the required property `toString`.
  ownProperties: true,
  // `describeFailures` writes the messages by keyword.
  messages: false,
  coerceTypes: false,
  removeAdditional: false,
} as const

async function compileValidators(): Promise<Bundled['validators']> {
  const compiled = registry.operations.map(async ({ name, input }) => {
    const ajv = new Ajv2020({ ...AJV_OPTIONS, code: { source: true, lines: false } })
    formats.default(ajv, ['uuid'])
    const code = standalone.default(ajv, ajv.compile(JSON.parse(plainText(toJsonSchema(input)))))
    const { code: text } = await transform(shorten(code), { minify: true, format: 'cjs' })
    return { name, text }
  })
  return Promise.all(compiled)
}

/**
 * Replaces the code that lists a failure with a call, and leaves out `schemaPath`, which is not used. This
 * halves the text.
 */
function shorten(code: string): string {
  const listed =
    /const (err\d+) = \{instancePath(?::([^;]*?))?,schemaPath:"[^"]*",keyword:("\w+"),params:([^;]*?)\};if\(vErrors === null\)\{vErrors = \[\1\];\}else \{vErrors\.push\(\1\);\}/g
  const short = code.replaceAll(
    listed,
    (_, _error, path = 'instancePath', keyword, params) =>
      `vErrors = fail(vErrors, ${path}, ${keyword}, ${params});`,
  )
  if (short.includes('schemaPath'))
    throw new Error('ajv lists failures in a way that the build does not know.')
  return `${short}${FAIL}`
}

const FAIL =
  'function fail(list, instancePath, keyword, params) { (list ??= []).push({ instancePath, keyword, params }); return list }'

/** Removes descriptions, which validators do not need. */
function plainText(schema: object): string {
  const isSaid = (key: string, value: unknown) => key === 'description' && typeof value === 'string'
  return JSON.stringify(schema, (key, value) => (isSaid(key, value) ? undefined : value))
}

/** Writes the validators for the tests. In the bundle, each validator is a chunk. */
async function writeValidators(validators: Bundled['validators']): Promise<void> {
  const lines = validators.map(({ name }, at) => `${JSON.stringify(name)}: () => require('compiled:${at}'),`)
  const contents = `const all = {\n${lines.join('\n')}\n}\nexport default (name) => all[name]?.()\n`
  await build({
    stdin: { contents, resolveDir: compiledSources },
    plugins: [provide(validators.map(({ text }) => text))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: `${compiledSources}framework/validators.js`,
  })
}

/** The bundle can then import each text by the name `compiled:` and its index. */
function provide(texts: readonly string[]): Plugin {
  return {
    name: 'provide',
    setup(builder) {
      builder.onResolve({ filter: /^compiled:/ }, ({ path }) => ({ path, namespace: 'provided' }))
      builder.onLoad({ filter: /.*/, namespace: 'provided' }, ({ path }) => ({
        contents: texts[Number(path.split(':')[1])]!,
        resolveDir: compiledSources,
      }))
    },
  }
}

/** Writes the entry of the library. It names each export, so that Node finds the names for ES modules. */
async function writeLibrary(): Promise<void> {
  const names = Object.keys(await import('./src/index.js')).sort()
  const lines = names.map((name) => `exports.${name} = library.${name}`)
  const text = `"use strict"\nconst library = require('./coffer.cjs')(require, __filename).library()\n${lines.join('\n')}\n`
  writeFileSync(`${distribution}index.cjs`, text)
}

/**
 * Gives a name to each type that occurs more than twice, because the schemas of operations repeat most of
 * their types.
 */
function nameRepeated(text: string): string {
  const blocks = text.match(/\{[^{}]*:[^{}]*\}/g) ?? []
  const counts = new Map<string, number>()
  for (const block of blocks) counts.set(block, (counts.get(block) ?? 0) + 1)
  const repeated = [...counts.keys()].filter((block) => block.length > 20 && counts.get(block)! > 2)
  if (repeated.length === 0) return text
  const at = text.match(/^type Repeated/gm)?.length ?? 0
  const named = repeated.map((block, index) => `type Repeated${at + index} = ${block};\n`)
  const shorter = repeated.reduce((all, block, index) => all.replaceAll(block, `Repeated${at + index}`), text)
  return nameRepeated(`${shorter}${named.join('')}`)
}

/** Copies the declarations that the library needs. They describe CommonJS modules. */
function writeTypes(): void {
  const target = `${distribution}types/`
  const known = new Set<string>()
  const copy = (path: string) => {
    if (known.has(path)) return
    known.add(path)
    const text = readFileSync(`${compiledSources}${path}`, 'utf8')
    mkdirSync(dirname(`${target}${path}`), { recursive: true })
    // Half of the text is indentation. No type depends on the descriptions and examples of schemas.
    const short = text
      .replaceAll(/^\s*readonly (?:description: (?:['"]|string;)|examples: readonly \[).*\n/gm, '')
      .replaceAll(/^(?: {4})+/gm, '')
    writeFileSync(`${target}${path}`, nameRepeated(short))
    for (const [, imported = ''] of text.matchAll(/(?:from |import\()["'](\.[^"']+)\.js["']/g))
      copy(join(dirname(path), `${imported}.d.ts`))
  }
  copy('index.d.ts')
  copy('playwright.d.ts')
  writeFileSync(`${target}package.json`, '{"type":"commonjs"}\n')
  writeFileSync(`${target}vitest.d.mts`, readFileSync(`${compiledSources}vitest.d.ts`))
}

/** Writes `coffer/vitest` as an ES module, because vitest is an ES module. */
function writeVitest(): void {
  const text = readFileSync(`${compiledSources}vitest.js`, 'utf8')
  const short = text.replace("'./index.js'", "'./index.cjs'").replace(/^\/\/# sourceMappingURL.*\n?/m, '')
  writeFileSync(`${distribution}vitest.mjs`, short)
}

/** The file in `reactor/facades/` of each built-in module of reactor code that is a text. */
const FACADES: Readonly<Record<string, string>> = {
  assert: 'assert',
  'assert/strict': 'assert-strict',
  async_hooks: 'async-hooks',
  events: 'events',
  http: 'http',
  https: 'https',
  os: 'os',
  perf_hooks: 'perf-hooks',
  stream: 'stream',
  'stream/consumers': 'stream-consumers',
  'stream/promises': 'stream-promises',
  timers: 'timers',
  'timers/promises': 'timers-promises',
  util: 'util',
  zlib: 'zlib',
}

/** What `readable-stream` requires from the registry, as the modules that reactor code has. */
const PARTS_OF_STREAMS: Readonly<Record<string, string>> = {
  buffer: 'node:buffer',
  events: 'node:events',
  'process/': 'node:process',
  'string_decoder/': 'node:string_decoder',
}

/** The facades require each other at run time. `readable-stream` uses the globals instead of other packages. */
const FACADE_IMPORTS: Plugin = {
  name: 'facade-imports',
  setup(builder) {
    builder.onResolve({ filter: /^(?:buffer|events|process\/|string_decoder\/)$/ }, ({ path }) => ({
      path: PARTS_OF_STREAMS[path]!,
      external: true,
    }))
    builder.onResolve({ filter: /^(?:node:|coffer:)/ }, ({ path }) => ({ path, external: true }))
    builder.onResolve({ filter: /^abort-controller$/ }, ({ path }) => ({ path, namespace: 'globals' }))
    builder.onLoad({ filter: /.*/, namespace: 'globals' }, () => ({
      contents: 'module.exports = { AbortController, AbortSignal }',
    }))
  },
}

/**
 * Writes the texts of the modules that children evaluate as reactor code, as CommonJS. A text exports the default of
 * its file.
 */
async function writeFacades(): Promise<void> {
  const texts: Record<string, string> = {}
  for (const [name, file] of Object.entries(FACADES)) {
    const { outputFiles } = await build({
      entryPoints: [`${compiledSources}reactor/facades/${file}.js`],
      plugins: [FACADE_IMPORTS],
      bundle: true,
      platform: 'neutral',
      target: 'node20',
      format: 'cjs',
      minify: true,
      keepNames: true,
      legalComments: 'none',
      charset: 'ascii',
      footer: { js: 'module.exports=module.exports.default' },
      write: false,
    })
    const text = outputFiles[0]!.text
    // The lockdown refuses such texts. Code of users is rewritten, but these texts are evaluated as they are.
    if (/\bimport\s*(?:\(|\/[/*])|\beval\s*\(|<!--|-->/.test(text))
      throw new Error(`The facade ${name} contains text that the lockdown refuses.`)
    texts[name] = text
  }
  const file = `${compiledSources}reactor/guest/facade-texts.js`
  writeFileSync(file, `export default ${JSON.stringify(texts)}\n`)
}

/**
 * Bundles the program of reactor children into one file, which is the only file that they may read. It runs
 * as a script and not as a module, because code that a script evaluates cannot import anything. At its start
 * it reads functions of Node and keeps them, so later changes of Node's modules do not affect it.
 */
async function bundleGuest(): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: [`${compiledSources}reactor/guest/guest.js`],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    minify: true,
    // Keeps the names of `Date` and `Error` of the lockdown, and the names of functions in stacks.
    keepNames: true,
    legalComments: 'none',
    write: false,
  })
  const program = outputFiles[0]!.text.replaceAll(
    /\bimport(?:\{([^}]*)\}|\*as ([\w$]+) )from("node:\w+");/g,
    (_, names: string | undefined, all: string, name) =>
      `const ${names === undefined ? all : `{${names.replaceAll(' as ', ':')}}`}=fromNode$(${name});`,
  )
  if (/(?:^|;)import(?:[{*"]|\s+\w)/.test(program))
    throw new Error('The guest imports in a way that the build does not know.')
  const script = JSON.stringify(`(function(fromNode$){"use strict";${program}})`)
  writeFileSync(
    `${distribution}guest.mjs`,
    `import{Script}from"node:vm";new Script(${script},{filename:"guest.mjs"}).runInThisContext()(process.getBuiltinModule)\n`,
  )
}

/** Bundles the program that links packages. It finds esbuild itself, in the project that it links. */
async function bundleLinker(): Promise<void> {
  await build({
    entryPoints: [`${compiledSources}reactor/dependencies/program/program.js`],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    minify: true,
    legalComments: 'none',
    outfile: `${distribution}linker.mjs`,
  })
}

/**
 * Bundles the script and the style of the page at `/`. They must not contain text that ends their HTML
 * element.
 */
async function bundlePage(): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: { page: `${sources}page/main.tsx`, style: `${sources}page/page.css` },
    bundle: true,
    format: 'esm',
    target: 'es2023',
    minify: true,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    charset: 'ascii',
    write: false,
    outdir: distribution,
  })
  for (const { path, text } of outputFiles) {
    if (/<\/(script|style)|<!--/i.test(text))
      throw new Error('The page ends the element that it is put into.')
    const name = `page${path.endsWith('.css') ? '.css' : '.js'}`
    writeFileSync(`${distribution}${name}.br`, brotliCompressSync(text.trim()))
  }
}

/**
 * Bundles the card fields as an expression: a function of the server's address, which the server calls. No name of the
 * bundle is global in the page.
 */
async function bundleElements(): Promise<void> {
  await build({
    entryPoints: [`${sources}elements/main.ts`],
    bundle: true,
    format: 'iife',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    charset: 'ascii',
    banner: { js: '((COFFER)=>{' },
    footer: { js: '})' },
    outfile: `${distribution}elements.js`,
  })
}

/** Bundles `coffer/playwright`, which has no dependencies. The annotation of esbuild names its exports for ES modules. */
async function bundlePlaywright(): Promise<void> {
  await build({
    entryPoints: [`${compiledSources}playwright.js`],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    outfile: `${distribution}playwright.cjs`,
  })
}

async function writeManuals(): Promise<void> {
  const directory = `${distribution}man/`
  mkdirSync(directory, { recursive: true })
  const words = ['', ...listCommands(registry).commands.map((command) => command.name())]
  for (const word of words) {
    const text = await describeManual(
      { registry, findTerminalCommand, listCommands: () => listCommands(registry) },
      [word],
    )
    writeFileSync(`${directory}coffer${word && `-${word}`}.1`, text)
  }
}

const validators = await compileValidators()
await writeValidators(validators)
await writeFacades()
await bundleGuest()
await bundleLinker()
await bundlePage()
await bundleElements()
await bundlePlaywright()
await bundleCommandLine({ distribution, compiledSources, validators })
await writeLibrary()
writeVitest()
writeFileSync(`${distribution}${PACKED_CASES}`, brotliCompressSync(JSON.stringify(readCases())))
await writeManuals()
writeTypes()
// `npm test` builds again only if a source file is newer than this file.
writeFileSync(`${distribution}built`, '')
