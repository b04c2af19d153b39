/** Options and plugins of esbuild for the bundle: packages in files of their own, validators as chunks. */
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { type BuildOptions, build, type Plugin, transform } from 'esbuild'

export interface Bundled {
  distribution: string
  compiledSources: string
  /** The text of each validator, as CommonJS. */
  validators: readonly { name: string; text: string }[]
}

/** Packages that most commands never need, each a file of its own; used by its default export or by its named ones. */
const LATE_PACKAGES: Record<string, 'default' | 'named'> = {
  chalk: 'named',
  'cli-table3': 'default',
  'csv-parse': 'named',
  inquirer: 'default',
  'json-p3': 'named',
  nodemailer: 'named',
  pg: 'default',
  pgpass: 'default',
}

/** Installed with Coffer, and CommonJS, so that it can be loaded from where it is. It is used by its default export. */
export const INSTALLED = 'libsodium-wrappers'

/**
 * Parts of packages that are left out: the prompt that opens an editor brings tables of all character sets; servers and
 * databases are never named by a service or a string, and are reached without tokens of OAuth or a library of the machine.
 */
const UNUSED =
  /^(?:@inquirer\/editor|\.\.\/(?:well-known|xoauth2)\/index\.js|pg-connection-string|\.\/native)$/

/** The beginning of the name of a validator's chunk. */
export const VALIDATOR = 'validator-'

export const COMMON: BuildOptions = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  // Node prints the line of an error that nobody caught.
  lineLimit: 200,
  // ASCII alone, so that it can be read without being decoded.
  charset: 'ascii',
  logLevel: 'error',
}

export async function bundleLatePackages({ distribution, compiledSources }: Bundled): Promise<void> {
  for (const [name, exported] of Object.entries(LATE_PACKAGES)) {
    const picked = exported === 'default' ? 'all.default' : 'all'
    const contents = `import * as all from '${name}'\nmodule.exports = ${picked}\n`
    await build({
      ...COMMON,
      format: 'cjs',
      stdin: { contents, resolveDir: compiledSources },
      banner: { js: '"use strict";' },
      minifyIdentifiers: true,
      plugins: [leaveUnused],
      outfile: `${distribution}late/${name}.cjs`,
    })
  }
}

/** Whether it is a package that is used by its default export, which is all of it. */
export function isDefault(from: string): boolean {
  return from === INSTALLED || LATE_PACKAGES[basename(from, '.cjs')] === 'default'
}

/** Each validator as a chunk of its own, which is used when it is asked for. */
export function provideValidators({ compiledSources, validators }: Bundled): Plugin {
  const lines = validators.map(
    ({ name }, at) => `${JSON.stringify(name)}:()=>use$("${VALIDATOR}${at}").validate`,
  )
  return {
    name: 'provide-validators',
    setup(builder) {
      builder.onResolve({ filter: /^(?:validator|validator-text):|\/validators\.js$/ }, ({ path }) => ({
        path,
        namespace: 'validators',
      }))
      builder.onLoad({ filter: /.*/, namespace: 'validators' }, ({ path }) => {
        const [kind, at] = path.split(':')
        if (at === undefined) return { contents: `export default {${lines.join()}}` }
        const isText = kind === 'validator-text'
        const contents = isText
          ? validators[Number(at)]!.text
          : `export { default as validate } from "validator-text:${at}"`
        return { contents, resolveDir: compiledSources }
      })
    },
  }
}

export const loadLate: Plugin = {
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

/** Shortens names inside them; our own keep theirs, for what the stack of an error says. */
export const minifyPackages: Plugin = {
  name: 'minify-packages',
  setup(builder) {
    builder.onLoad({ filter: /\/node_modules\/(commander|@noble)\/.*\.js$/ }, async ({ path }) => {
      // Commander calls its errors by the names of their classes.
      const options = { minifyIdentifiers: true, minifySyntax: true, keepNames: path.includes('/commander/') }
      const { code } = await transform(await readFile(path, 'utf8'), { target: 'node20', ...options })
      return { contents: code }
    })
  },
}

/** Commander loads `node:child_process` (5 ms) for subcommands that are programs of their own; it has none here. */
export const spareChildProcess: Plugin = {
  name: 'spare-child-process',
  setup(builder) {
    builder.onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('/commander/') ? { path: 'none', namespace: 'nothing' } : null,
    )
    builder.onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: 'module.exports = {}' }))
  },
}
