/**
 * The table in docs/reactors.md lists packages. This test links each listed package that is installed in this
 * repository, and calls it in the sandbox.
 */
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openTestVault } from '../../../src/index.js'
import { createDirectory, write } from './project.js'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const versionOf = (name: string) =>
  (JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')) as { version: string })
    .version

const SIGN = `(await new p.SignJWT({ a: 1 }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from('x'.repeat(32)))).split('.').length`
const VALIDATE = `new (p.default ?? p)({ code: { es5: true } }).compile`
const CALLS: Readonly<Record<string, readonly [expression: string, expected: unknown]>> = {
  '@basis-theory/node-sdk': ["typeof new p.BasisTheoryClient({ apiKey: 'x' }).tokens.create", 'function'],
  axios: ["p.getUri({ url: 'https://a.example', params: { b: 1 } })", 'https://a.example?b=1'],
  ajv: [`typeof ${VALIDATE}`, 'function'],
  jose: [SIGN, 3],
}

const table = readFileSync(join(root, 'docs/reactors.md'), 'utf8')
  .split('\n')
  .flatMap((line) => {
    const [, name, version, isTested] = /^\| `([^`]+)` \| (\d[\w.-]*) \| (yes)? ?\|$/.exec(line) ?? []
    return name === undefined ? [] : [{ name, version: version!, isTested: isTested !== undefined }]
  })

t.test('the table in docs/reactors.md lists the tested packages with their versions', async (t) => {
  t.ok(table.length > 10)
  const tested = table.filter(({ isTested }) => isTested).map(({ name }) => name)
  t.same(tested.sort(), Object.keys(CALLS).sort())
  for (const { name, version, isTested } of table) if (isTested) t.equal(version, versionOf(name), name)
})

t.test('each tested package is linked and works in the sandbox', async (t) => {
  const project = createDirectory(t)
  const dependencies = Object.fromEntries(Object.keys(CALLS).map((name) => [name, versionOf(name)]))
  write(join(project, 'package.json'), JSON.stringify({ dependencies }))
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'))
  // No host is allowed, so a package that sends a request fails.
  await using vault = await openTestVault({ dependencies: [project] })
  for (const [name, [expression, expected]] of Object.entries(CALLS)) {
    const code = `const p = require('${name}'); module.exports = async () => ({ raw: ${expression} })`
    const runtime = { image: 'node24', dependencies: { [name]: dependencies[name]! } } as const
    const made = await vault.ask('reactor create', { name, code, runtime })
    t.equal(made.state, 'active', `${name} ${JSON.stringify(made.requested)}`)
    t.same(await vault.ask('reactor react', { id: made.id }), { raw: expected }, name)
  }
})
