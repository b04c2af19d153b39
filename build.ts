/**
 * What `npm run build` does after the compiler: ajv's code for every operation's input into `validators.js`, and the
 * command line and the library bundled into one file, because start-up is a matter of how many files are loaded. It
 * never runs in the product.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import Module, { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'
import { Ajv2020 } from 'ajv/dist/2020.js'
import standalone from 'ajv/dist/standalone/index.js'
import formats from 'ajv-formats'
import { type BuildOptions, build, type Plugin } from 'esbuild'
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
  coerceTypes: false,
  removeAdditional: false,
} as const

async function writeValidators(): Promise<void> {
  const ajv = new Ajv2020({ ...AJV_OPTIONS, code: { source: true, esm: true, lines: false } })
  formats.default(ajv, ['uuid'])
  const references: Record<string, string> = {}
  const { operations } = registry
  operations.forEach((definition, index) => {
    ajv.addSchema(toJsonSchema(definition.input), `v${index}`)
    references[`v${index}`] = `v${index}`
  })
  const names = operations.map(({ name }, index) => `  ${JSON.stringify(name)}: v${index},`)
  const imports = `import { ${Object.keys(references).join(', ')} } from 'compiled'`
  await build({
    stdin: {
      contents: `${imports}\nexport default {\n${names.join('\n')}\n}\n`,
      resolveDir: compiledSources,
    },
    plugins: [provide('compiled', standalone.default(ajv, references))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    minify: true,
    outfile: `${compiledSources}framework/validators.js`,
  })
}

/** Lets the bundle import text that is in no file. */
function provide(name: string, contents: string): Plugin {
  return {
    name: 'provide',
    setup(builder) {
      builder.onResolve({ filter: new RegExp(`^${name}$`) }, () => ({ path: name, namespace: 'provided' }))
      builder.onLoad({ filter: /.*/, namespace: 'provided' }, () => ({
        contents,
        resolveDir: compiledSources,
      }))
    },
  }
}

/**
 * Packages that most commands never need, each a file of its own beside the command line: what is not loaded does not
 * have to be parsed either. Our own code stays in one file, so that there is one `CofferError`. Each is used by its
 * default export or by its named ones; a bundle of CommonJS can offer one of the two.
 */
const LATE_PACKAGES: Record<string, 'default' | 'named'> = {
  chalk: 'named',
  'cli-table3': 'default',
  'csv-parse': 'named',
  inquirer: 'default',
  'json-p3': 'named',
  liquidjs: 'named',
  nodemailer: 'named',
  pg: 'default',
}

/** Installed with Coffer, and CommonJS, so that it can be loaded from where it is. */
const INSTALLED = ['libsodium-wrappers']

/**
 * Of packages that we use otherwise: the prompt that opens an editor brings tables of all character sets; servers and
 * databases are never named by a service or a string, and are reached without tokens of OAuth or a library of the machine.
 */
const UNUSED =
  /^(?:@inquirer\/editor|\.\.\/(?:well-known|xoauth2)\/index\.js|pg-connection-string|\.\/native)$/

/** CommonJS, because Node loads one such file 7 ms faster than the same as ES modules. */
const commandLineOptions: BuildOptions = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  // Node prints the line of an error that nobody caught.
  lineLimit: 200,
  // ASCII alone, so that it can be read without being decoded.
  charset: 'ascii',
  // Otherwise Node would look through each late package for its export names, which takes longer than running it.
  supported: { 'dynamic-import': false },
  // Packages that look for their own files find them from here.
  define: { 'import.meta.url': 'bundleUrl' },
  banner: { js: '"use strict";const bundleUrl=require("node:url").pathToFileURL(__filename).href;' },
}

async function bundleCommandLine(): Promise<void> {
  for (const [name, exported] of Object.entries(LATE_PACKAGES)) {
    const picked = exported === 'default' ? 'all.default' : 'all'
    const contents = `import * as all from '${name}'\nmodule.exports = ${picked}\n`
    const stdin = { contents, resolveDir: compiledSources }
    await build({
      ...commandLineOptions,
      stdin,
      minifyIdentifiers: true,
      plugins: [leaveUnused],
      outfile: `${distribution}late/${name}.cjs`,
      logLevel: 'error',
    })
  }
  // The library in the same file, as there is one `CofferError`; a command does not load it.
  const contents = `export { main } from './cli/main.js'\nexport const library = () => require('./index.js')\n`
  await build({
    ...commandLineOptions,
    stdin: { contents, resolveDir: compiledSources },
    external: INSTALLED,
    plugins: [loadLate, spareChildProcess],
    outfile: `${distribution}coffer.cjs`,
  })
}

/** The door to the library. Its names are spelled out, so that Node finds them for modules that import them. */
async function writeLibrary(): Promise<void> {
  const names = Object.keys(await import('./src/index.js')).sort()
  const lines = names.map((name) => `exports.${name} = library.${name}`)
  const text = `"use strict"\nconst library = require('./coffer.cjs').library()\n${lines.join('\n')}\n`
  writeFileSync(`${distribution}index.cjs`, text)
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
    // Indentation is half of what the compiler writes, and what schemas say to people is in no type that follows.
    const short = text
      .replaceAll(/^\s*readonly (?:description: ['"]|examples: readonly \[).*;\n/gm, '')
      .replaceAll(/^(?: {4})+/gm, (spaces) => ' '.repeat(spaces.length / 4))
    writeFileSync(`${target}${path}`, short)
    for (const [, imported = ''] of text.matchAll(/(?:from |import\()["'](\.[^"']+)\.js["']/g))
      copy(join(dirname(path), `${imported}.d.ts`))
  }
  copy('index.d.ts')
  writeFileSync(`${target}package.json`, '{"type":"commonjs"}\n')
}

const loadLate: Plugin = {
  name: 'load-late',
  setup(builder) {
    const filter = new RegExp(`^(${Object.keys(LATE_PACKAGES).join('|')})$`)
    builder.onResolve({ filter }, ({ path }) => ({ path: `./late/${path}.cjs`, external: true }))
  },
}

const leaveUnused: Plugin = {
  name: 'leave-unused',
  setup(builder) {
    builder.onResolve({ filter: UNUSED }, () => ({ path: 'none', namespace: 'unused' }))
    builder.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({ contents: 'export default undefined' }))
  },
}

/** Commander loads `node:child_process` (5 ms) for subcommands that are programs of their own; it has none here. */
const spareChildProcess: Plugin = {
  name: 'spare-child-process',
  setup(builder) {
    builder.onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('/commander/') ? { path: 'none', namespace: 'nothing' } : null,
    )
    builder.onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: 'module.exports = {}' }))
  },
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
    minifyWhitespace: true,
    // The lockdown's `Date` and `Error` stay what they are called.
    keepNames: true,
    legalComments: 'none',
    write: false,
  })
  const program = outputFiles[0]!.text.replaceAll(
    /\bimport(?:\{([^}]*)\}|\*as (\w+) )from("node:\w+");/g,
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

interface Bundle {
  main(process: object): Promise<number>
}

/**
 * Runs the usual commands once and keeps what V8 compiled for them beside the bundle, where `bin/coffer.js` looks for
 * it. What is compiled for others would only have to be read. It is of use to this version of Node alone.
 */
async function keepCompiled(): Promise<void> {
  const filename = `${distribution}coffer.cjs`
  const script = new Script(Module.wrap(readFileSync(filename, 'latin1')), { filename })
  const watched = { exports: {} as Bundle }
  script.runInThisContext()(watched.exports, createRequire(filename), watched, filename, distribution)
  const other = createRequire(filename)(filename) as Bundle
  const place = mkdtempSync(join(tmpdir(), 'coffer-build-'))
  try {
    await runCommand(other, place, ['init'])
    const card = '{"id":"build","type":"card","data":{"number":"4242424242424242"}}'
    await runCommand(other, place, ['token', 'create'], card)
    await runCommand(watched.exports, place, ['token', 'get', 'build'])
    await runCommand(watched.exports, place, ['--help'])
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
  writeFileSync(`${filename}.cache`, script.createCachedData())
}

async function runCommand(
  { main }: Bundle,
  place: string,
  words: readonly string[],
  stdin = '',
): Promise<void> {
  const code = await main({
    argv: ['node', 'coffer', ...words],
    env: { COFFER_VAULT: join(place, 'vault'), XDG_CONFIG_HOME: place, COFFER_QUIET: '1' },
    stdin: Readable.from([stdin]),
    stdout: new PassThrough().resume(),
    stderr: new PassThrough().resume(),
    pid: process.pid,
    cwd: () => place,
    on: () => undefined,
    off: () => undefined,
  })
  if (code !== 0) throw new Error(`coffer ${words.join(' ')} failed while it was being built.`)
}

await writeValidators()
await bundleGuest()
await bundlePage()
await bundleCommandLine()
await writeLibrary()
writeTypes()
await keepCompiled()
