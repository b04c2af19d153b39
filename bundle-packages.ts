/** What the bundle does to the packages that it holds. */
import { readFile } from 'node:fs/promises'
import { type Plugin, transform } from 'esbuild'

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
