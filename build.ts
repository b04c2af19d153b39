/**
 * Runs after the compiler: writes ajv's code for the input of every operation into `validators.js`, and bundles the
 * command line and the library, because start-up is a matter of how many files are loaded. It
 * never runs in the product.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import standalone from 'ajv/dist/standalone/index.js'
import formats from 'ajv-formats'
import { build, type Plugin, transform } from 'esbuild'
import { type Bundled, bundleCommandLine } from './bundle.js'
import { describeManual } from './src/cli/commands/help/help.js'
import { findTerminalCommand, listCommands } from './src/cli/program.js'
import { toJsonSchema } from './src/framework/schema.js'
import { registry } from './src/operations/all.js'

const distribution = fileURLToPath(new URL('.', import.meta.url))
const compiledSources = `${distribution}src/`
const sources = fileURLToPath(new URL('../src/', import.meta.url))

const AJV_OPTIONS = {
  strict: true,
  // Safe because every array and map of our schemas is bounded (the registry sees to it) and so is the body.
  allErrors: true,
  // Otherwise `required: ['toString']` would hold of any object.
  ownProperties: true,
  // Failures are told by their keyword (`describeFailures`).
  messages: false,
  coerceTypes: false,
  removeAdditional: false,
} as const

/** ajv's code for the input of each operation, as CommonJS. */
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

/** A call for each failure instead of the code to list it, and no `schemaPath`, which nobody reads: half of the text. */
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

/** Without what a schema says to people, which is no part of a validator. */
function plainText(schema: object): string {
  const isSaid = (key: string, value: unknown) => key === 'description' && typeof value === 'string'
  return JSON.stringify(schema, (key, value) => (isSaid(key, value) ? undefined : value))
}

/** Those that our own tests use; a bundle has each as a chunk. */
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

/** Lets the bundle import texts that are in no file, as `compiled:` and their number. */
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

/** The door to the library. Its names are spelled out, so that Node finds them for modules that import them. */
async function writeLibrary(): Promise<void> {
  const names = Object.keys(await import('./src/index.js')).sort()
  const lines = names.map((name) => `exports.${name} = library.${name}`)
  const text = `"use strict"\nconst library = require('./coffer.cjs')(require, __filename).library()\n${lines.join('\n')}\n`
  writeFileSync(`${distribution}index.cjs`, text)
}

/** A type that is written more than twice gets a name: schemas of operations repeat most of what they hold. */
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

/** The declarations that the library's lead to, as those of CommonJS, which is what they declare. */
function writeTypes(): void {
  const target = `${distribution}types/`
  const known = new Set<string>()
  const copy = (path: string) => {
    if (known.has(path)) return
    known.add(path)
    const text = readFileSync(`${compiledSources}${path}`, 'utf8')
    mkdirSync(dirname(`${target}${path}`), { recursive: true })
    // Indentation is half of what the compiler writes; what schemas say to people is in no type that follows.
    const short = text
      .replaceAll(/^\s*readonly (?:description: (?:['"]|string;)|examples: readonly \[).*\n/gm, '')
      .replaceAll(/^(?: {4})+/gm, '')
    writeFileSync(`${target}${path}`, nameRepeated(short))
    for (const [, imported = ''] of text.matchAll(/(?:from |import\()["'](\.[^"']+)\.js["']/g))
      copy(join(dirname(path), `${imported}.d.ts`))
  }
  copy('index.d.ts')
  writeFileSync(`${target}package.json`, '{"type":"commonjs"}\n')
  writeFileSync(`${target}vitest.d.mts`, readFileSync(`${compiledSources}vitest.d.ts`))
}

/** An ES module, as vitest is, over the library. */
function writeVitest(): void {
  const text = readFileSync(`${compiledSources}vitest.js`, 'utf8')
  const short = text.replace("'./index.js'", "'./index.cjs'").replace(/^\/\/# sourceMappingURL.*\n?/m, '')
  writeFileSync(`${distribution}vitest.mjs`, short)
}

/**
 * The program of reactors' children: one file, the only one that they may read. It runs as a script instead of a module,
 * because what is evaluated in a script can import nothing. It is given functions of Node's one by one and keeps them,
 * whatever becomes of the modules they are from.
 */
async function bundleGuest(): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: [`${compiledSources}reactor/guest/guest.js`],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    minify: true,
    // The lockdown's `Date` and `Error` stay what they are called, as do the functions in the stack of an error.
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

/** The script and the style of the page at `/`; what is put into HTML must not end there. */
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
    writeFileSync(`${distribution}page${path.endsWith('.css') ? '.css' : '.js'}`, text.trim())
  }
}

/** The pages of `man`: of the program, and of each noun and command without a noun. */
async function writeManuals(): Promise<void> {
  const directory = `${distribution}man/`
  mkdirSync(directory)
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
await bundleGuest()
await bundlePage()
await bundleCommandLine({ distribution, compiledSources, validators })
await writeLibrary()
writeVitest()
await writeManuals()
writeTypes()
// `npm test` builds again only if a source is newer than this file.
writeFileSync(`${distribution}built`, '')
