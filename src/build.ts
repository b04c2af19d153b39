/**
 * What `npm run build` does after the compiler: ajv's code for every operation's input into `validators.js`, and the
 * command line bundled into one file, because start-up is a matter of how many files are loaded. It never runs in
 * the product.
 */

import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import standalone from 'ajv/dist/standalone/index.js'
import formats from 'ajv-formats'
import { build } from 'esbuild'
import { AJV_OPTIONS } from './ajv-options.js'
import { operations } from './operations/all.js'
import { toJsonSchema } from './operations/schema.js'

const compiledSources = fileURLToPath(new URL('.', import.meta.url))
const distribution = fileURLToPath(new URL('..', import.meta.url))

await writeValidators()
await bundleCommandLine()

async function writeValidators(): Promise<void> {
  const ajv = new Ajv2020({ ...AJV_OPTIONS, code: { source: true, esm: true, lines: false } })
  formats.default(ajv, ['uuid'])
  const references: Record<string, string> = {}
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
    outfile: `${compiledSources}validators.js`,
  })
}

/** Lets the bundle import text that is in no file. */
function provide(name: string, contents: string): import('esbuild').Plugin {
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

/** CommonJS, because Node loads one such file 7 ms faster than the same as ES modules. */
async function bundleCommandLine(): Promise<void> {
  await build({
    entryPoints: [`${compiledSources}cli/main.js`],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    minifySyntax: true,
    legalComments: 'none',
    // Packages that look for their own files find them from here.
    define: { 'import.meta.url': 'bundleUrl' },
    banner: { js: '"use strict";const bundleUrl=require("node:url").pathToFileURL(__filename).href;' },
    outfile: `${distribution}coffer.cjs`,
  })
}
