/** Reactor code uses the newest client for Node as a linked package of a project. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startServer } from '../../src/index.js'

const CLIENT = '@basis-theory/node-sdk'
const modules = fileURLToPath(new URL('../../../node_modules', import.meta.url))
const { version } = JSON.parse(readFileSync(join(modules, CLIENT, 'package.json'), 'utf8')) as {
  version: string
}

const CODE = `const { BasisTheoryClient } = require('${CLIENT}')
module.exports = async ({ req, applicationOptions: { apiKey, baseUrl } }) => {
  const client = new BasisTheoryClient({ apiKey, environment: baseUrl })
  if (req.args.unknown) {
    const { statusCode } = await client.tokens.get(req.args.unknown).then(() => ({}), (error) => error)
    return { res: { body: { statusCode } } }
  }
  const { id } = await client.tokens.create({ type: 'token', data: req.args.data })
  return { res: { body: { id } } }
}`

t.test('a linked client creates tokens, and reports a token that does not exist', async (t) => {
  const project = mkdtempSync(join(tmpdir(), 'coffer-linked-'))
  t.teardown(() => rmSync(project, { recursive: true }))
  writeFileSync(join(project, 'package.json'), JSON.stringify({ dependencies: { [CLIENT]: version } }))
  symlinkSync(modules, join(project, 'node_modules'))
  await using server = await startServer({ prefix: 'bt', dependencies: [project] })
  const runtime = {
    image: 'node22',
    dependencies: { [CLIENT]: version },
    permissions: ['token:create', 'token:read'],
  }
  const made = await server.ask('reactor create', { name: 'r', code: CODE, runtime } as never)
  t.equal(made.state, 'active')
  const headers = { 'bt-api-key': server.keys.private, 'content-type': 'application/json' }
  const react = async (args: object) => {
    const init = { method: 'POST', headers, body: JSON.stringify({ args }) }
    return (await (await fetch(`${server.url}/reactors/${made.id}/react`, init)).json()) as Record<
      string,
      string
    >
  }
  const times: number[] = []
  for (let n = 0; n < 10; n++) {
    const begun = performance.now()
    const { id } = await react({ data: `secret ${n}` })
    times.push(performance.now() - begun)
    t.equal((await fetch(`${server.url}/tokens/${id}`, { headers })).status, 200)
  }
  times.sort((one, other) => one - other)
  t.ok(times[5]! < 500, `the median is ${times[5]} ms`)
  t.same(await react({ unknown: '6f4e1c52-0a3c-4c66-9f6e-6a2f7a0c1b11' }), { statusCode: 404 })
})
