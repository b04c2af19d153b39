/** Code that requires paths below the packages that it declares. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { splitRequest, withSubpaths } from '../../../src/domain/reactor/dependencies.js'
import { openTestVault } from '../../../src/index.js'
import { createDirectory, createProject, write } from './project.js'

const PACKAGES = {
  free: {
    files: {
      'index.js': 'exports.n = 0',
      'merge.js': "module.exports = require('./lib/deep').n + 1",
      'lib/deep.js': 'exports.n = 1',
    },
  },
  '@acme/kit': {
    manifest: {
      exports: {
        '.': './main.js',
        './sub': { require: './sub.cjs', import: './sub.mjs' },
        './all/*': './all/*.js',
      },
    },
    files: {
      'main.js': '',
      'sub.cjs': "module.exports = 'required'",
      'sub.mjs': "export default 'imported'",
      'all/a.js': "module.exports = 'a'",
      'secret.js': "module.exports = 's3cret'",
    },
  },
  other: "module.exports = 's3cret'",
}
const DECLARED = { free: '1.0.0', '@acme/kit': '1.0.0' }

type Vault = Awaited<ReturnType<typeof openTestVault>>

/** Runs code that answers with the value of `expression`, and returns the text of the answer. */
async function run(
  vault: Vault,
  expression: string,
  runtime: object = { image: 'node22', dependencies: DECLARED },
) {
  const code = `module.exports = async () => ({ res: { body: { is: ${expression} } } })`
  const { id, state } = await vault.ask('reactor create', { name: 'r', code, runtime: runtime as never })
  t.equal(state, 'active')
  const headers = { 'svc-api-key': vault.keys.private!, 'content-type': 'application/json' }
  const answer = await vault.fetch(`/reactors/${id}/react`, { method: 'POST', headers, body: '{}' })
  return answer.text()
}

t.test('a path below a declared package is resolved by the exports of the package and linked', async (t) => {
  const project = createProject(t, PACKAGES)
  await using vault = await openTestVault({ dependencies: [project] })
  const all =
    "[require('free').n, require('free/merge'), require('free/lib/deep.js').n, require('@acme/kit/sub'), require('@acme/kit/all/a')]"
  t.same(JSON.parse(await run(vault, all)), { is: [0, 2, 1, 'required', 'a'] })
})

t.test(
  'a path below a package cannot lead out of the package, and a path that the exports of the package do not list is refused',
  async (t) => {
    const project = createProject(t, PACKAGES)
    const elsewhere = createDirectory(t)
    write(join(elsewhere, 'file.js'), "module.exports = 's3cret'")
    symlinkSync(join(elsewhere, 'file.js'), join(project, 'node_modules/free/link.js'))
    write(join(project, 'node_modules/free/node_modules/inner/index.js'), "module.exports = 's3cret'")
    await using vault = await openTestVault({ dependencies: [project] })
    for (const path of [
      '@acme/kit/secret.js',
      '@acme/kit/secret',
      'free/link',
      'free/link.js',
      'free/../other',
      'free/lib/../../other',
      'free/node_modules/inner',
      'free/./merge',
      'free//merge',
      'free/%2e%2e/other',
      'free/nothing',
      'other/index.js',
      'other',
    ]) {
      const text = await run(vault, `require('${path}')`)
      t.notMatch(text, 's3cret', path)
      t.match(text, /Cannot find module/, path)
    }
  },
)

t.test('the bundle of a path below a package is found in a directory of --modules', async (t) => {
  const directory = createDirectory(t)
  const files = {
    'free.js': 'exports.n = 0',
    'free/merge.js': 'module.exports = 7',
    'chart.js/auto.js': 'module.exports = 8',
    'free/.hidden/x.js': '',
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  await using vault = await openTestVault({ modulesDirectory: directory })
  t.same(
    JSON.parse(await run(vault, "[require('free/merge'), require('chart.js/auto')]", { image: 'node22' })),
    { is: [7, 8] },
  )
})

t.test('the argument of require is divided into the name of the package and the path below it', async (t) => {
  for (const [request, name, subpath] of [
    ['a', 'a', ''],
    ['a/b', 'a', '/b'],
    ['@s/a/b/c.js', '@s/a', '/b/c.js'],
  ])
    t.same(splitRequest(request!), { name, subpath })
  for (const request of [
    '',
    '/a',
    './a',
    '../a',
    '@s',
    'a/',
    'a/..',
    'a/.b',
    'a//b',
    'a/b\\c',
    'a/\0',
    '@s/../a',
    `a/${'x'.repeat(214)}`,
  ])
    t.equal(splitRequest(request), undefined, request)
  const code = "require('a/b'); require ( \"c/d\" ); 'a/e'; require('a'); require('__proto__/x')"
  t.same(withSubpaths({ a: '1.0.0' }, code), { a: '1.0.0', 'a/b': '1.0.0' })
  const many = Array.from({ length: 300 }, (_, n) => `require('a/${n}')`).join(';')
  t.equal(Object.keys(withSubpaths({ a: '1.0.0' }, many)).length, 101)
})
