/** Reactor code uses the unmodified newest client for Node with the key of its run. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BasisTheoryEnvironment } from '@basis-theory/node-sdk'
import { build } from 'esbuild'
import t, { type Test } from 'tap'
import { startServer } from '../../src/index.js'

const CLIENT = '@basis-theory/node-sdk'

type Json = Record<string, unknown>

/** Creates a directory that contains the client as a single file, as `docs/reactors.md` describes. */
async function bundleClient(t: Test): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'coffer-client-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  mkdirSync(join(directory, '@basis-theory'))
  await build({
    stdin: { contents: `module.exports = require('${CLIENT}')`, resolveDir: import.meta.dirname },
    bundle: true,
    platform: 'browser',
    format: 'cjs',
    minify: true,
    legalComments: 'none',
    outfile: join(directory, `${CLIENT}.js`),
    logLevel: 'error',
  })
  return directory
}

t.test('the client creates, reads, searches and detokenizes tokens inside of a reactor', async (t) => {
  const modulesDirectory = await bundleClient(t)
  const ownHosts = ['api.example.test', new URL(BasisTheoryEnvironment.Default).hostname]
  await using server = await startServer({ prefix: 'bt', modulesDirectory, ownHosts })
  const run = async (open: string, body: string, rights: object, args = {}): Promise<Json> => {
    const code = `const { BasisTheoryClient } = require('${CLIENT}')
      module.exports = async ({ req: { args }, applicationOptions: { apiKey, baseUrl, environment } }) => {
        const client = new BasisTheoryClient(${open})
        ${body}
      }`
    const { id } = await server.ask('reactor create', { name: 'r', code, ...rights })
    const answer = await fetch(`${server.url}/reactors/${id}/react`, {
      method: 'POST',
      headers: { 'BT-API-KEY': server.keys.private, 'content-type': 'application/json' },
      body: JSON.stringify({ args }),
    })
    return (await answer.json()) as Json
  }
  const bound = await server.ask('app whoami', {}, { key: server.keys.private })
  const work = `const token = await client.tokens.create({ type: 'token', data: 'secret', metadata: { team: 'blue' } })
    const { metadata } = await client.tokens.get(token.id)
    const found = []
    for await (const { id } of await client.tokens.searchV2({ query: 'metadata.team:blue' })) found.push(id)
    const listed = []
    for await (const { id } of await client.tokens.listV2({ id: token.id })) listed.push(id)
    const plain = await client.tokens.detokenize({ whole: '{{ ' + token.id + ' }}' })
    const tokenized = await client.tokens.tokenize({ a: 'x' })
    await client.tokens.update(token.id, { metadata: { team: 'red' } })
    await client.tokens.delete(token.id)
    const gone = await client.tokens.get(token.id).then(() => 'there', ({ statusCode }) => statusCode)
    return { res: { body: { id: token.id, metadata, found, listed, plain, tokenized, gone } } }`
  const done = await run('{ apiKey, baseUrl }', work, { application: { id: bound.id } })
  t.match(done, {
    metadata: { team: 'blue' },
    found: [done.id],
    listed: [done.id],
    plain: { whole: 'secret' },
    tokenized: { a: /^[0-9a-f-]{36}$/ },
    gone: 404,
  })

  const create = `const { id } = await client.tokens.create({ type: 'token', data: args.at })
    const read = await client.tokens.get(id).then(() => 'read', ({ statusCode }) => statusCode)
    return { res: { body: { id, read } } }`
  const runtime = { image: 'node24', permissions: ['token:create'] }
  const ways = [
    '{ apiKey, environment }',
    "{ apiKey, environment: 'https://api.example.test' }",
    '{ apiKey }',
  ]
  for (const open of ways) {
    const { id, read } = await run(open, create, { runtime }, { at: open })
    t.equal(read, 403, open)
    t.match(await server.ask('token get', { id }), { type: 'token' }, open)
  }
})
