/** Axios, a package of the registry for Node, works in reactor code with its adapter for `http`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'esbuild'
import t from 'tap'
import { confineThisNode } from '../../src/reactor/confinement.js'
import { createReactorPool } from '../../src/reactor/start.js'

t.setTimeout(120_000)

/** Axios requires these modules for files, HTTP/2 and colors, which the tests do not use. */
const UNUSED: Plugin = {
  name: 'unused',
  setup(builder) {
    builder.onResolve({ filter: /^(?:node:)?(?:fs|http2|tty|net|tls)$/ }, ({ path }) => ({
      path,
      namespace: 'unused',
    }))
    builder.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({
      contents: 'exports.isatty = () => false',
    }))
  },
}

t.test('axios sends requests with the module http of reactor code', async (t) => {
  const modulesDirectory = mkdtempSync(join(tmpdir(), 'packages-'))
  t.teardown(() => rmSync(modulesDirectory, { recursive: true }))
  await build({
    stdin: {
      contents: 'module.exports = require("axios")',
      resolveDir: fileURLToPath(new URL('.', import.meta.url)),
    },
    ...{ bundle: true, platform: 'node', format: 'cjs', minify: true, plugins: [UNUSED] },
    outfile: join(modulesDirectory, 'axios.js'),
  })
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { method, url, headers } = request
    if (url === '/moved') response.writeHead(302, { location: '/next' }).end()
    else if (url === '/gone') response.writeHead(410).end('{"why":"gone"}')
    else {
      const answer = JSON.stringify({ method, url, body, type: headers['content-type'], x: headers['x-a'] })
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      response.end(gzipSync(answer))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const pool = createReactorPool({
    confinement: await confineThisNode(modulesDirectory),
    modulesDirectory,
    allowNet: [base.slice('http://'.length)],
  })
  t.teardown(async () => {
    await pool.close()
    server.closeAllConnections()
    server.close()
  })
  const code = `const axios = require('axios')
    const calls = {
      adapter: async () => [axios.defaults.adapter, axios.getAdapter(['http']) !== undefined],
      json: async () => (await axios.post('${base}/p', { a: 1 }, { headers: { 'x-a': 'b' }, params: { q: 1 }, adapter: 'http' })).data,
      moved: async () => (await axios.get('${base}/moved', { adapter: 'http' })).data.url,
      gone: () => axios.get('${base}/gone', { adapter: 'http' }).catch((error) => [error.response.status, error.response.data]),
      late: () => axios.get('${base}/x', { adapter: 'http', signal: AbortSignal.abort() }).catch((error) => error.code),
      other: () => axios.get('http://127.0.0.1:1/', { adapter: 'http' }).catch((error) => error.message),
    }
    module.exports = async ({ args }) => ({ raw: await calls[args.call]() })`
  const call = async (name: string) => {
    const { outcome } = await pool.run({
      ...{ tenant: 1, reactor: 'r', code, args: { call: name }, configuration: {}, client: null },
    })
    return outcome.kind === 'failure' ? outcome.error.errors : outcome.raw
  }
  t.same(await call('json'), {
    ...{ method: 'POST', url: '/p?q=1', body: '{"a":1}', type: 'application/json', x: 'b' },
  })
  t.same(await call('moved'), '/next')
  t.same(await call('gone'), [410, { why: 'gone' }])
  t.same(await call('late'), 'ERR_CANCELED')
  t.match(await call('other'), /fetch failed: .*127\.0\.0\.1/)
})
