/**
 * Connections to a store over TLS. A client checks the certificate chain and the name of the server, unless the address
 * requests fewer checks.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { identifyVault } from '../../src/vault/open.js'
import { CERTIFICATE, PRIVATE_KEY } from '../http/certificate.js'
import { type OwnServer, startOwnPostgres } from './postgres-server.js'

const place = mkdtempSync(join(tmpdir(), 'coffer-tls-'))
const authority = join(place, 'ca.pem')
writeFileSync(authority, CERTIFICATE)
t.teardown(() => rmSync(place, { recursive: true, force: true }))

async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/**
 * Starts a server. The function tries several ports, because another process may take a free port before the server
 * listens on it.
 */
async function start(left = 5): Promise<{ server: OwnServer; port: number }> {
  const port = await findPort()
  try {
    return { server: await startOwnPostgres({ port, certificate: CERTIFICATE, key: PRIVATE_KEY }), port }
  } catch (error) {
    if (left === 0) throw error
    return start(left - 1)
  }
}

t.test('a TLS connection to a store is refused unless all checks of its mode succeed', async (t) => {
  const { server, port } = await start()
  t.teardown(() => server.stop())
  const [database] = /\/coffer_\w+/.exec(await server.createDatabase())!
  const reach = async (host: string, parameters: string) => {
    const directory = `postgres://test@${host}:${port}${database}?${parameters}`
    const location = { directory, pid: process.pid, notice: () => {} }
    return identifyVault(location).catch(({ code, message }) => ({ code, message }))
  }
  const reached = { code: 'vault_missing' }
  const root = `sslrootcert=${encodeURIComponent(authority)}`
  t.match(
    await reach('localhost', root),
    reached,
    'verify-full succeeds if the address names the certificate authorities',
  )
  t.match(await reach('localhost', `sslmode=verify-full&${root}`), reached)
  t.match(await reach('127.0.0.1', `sslmode=verify-full&${root}`), {
    code: 'unavailable',
    message: /ERR_TLS_CERT_ALTNAME_INVALID/,
  })
  t.match(
    await reach('127.0.0.1', `sslmode=verify-ca&${root}`),
    reached,
    'verify-ca accepts any server name with a certificate of a known authority',
  )
  for (const mode of ['verify-full', 'verify-ca'])
    t.match(
      await reach('localhost', `sslmode=${mode}`),
      { code: 'unavailable', message: /SELF_SIGNED/ },
      `${mode} refuses a certificate of an unknown authority`,
    )
  t.match(await reach('127.0.0.1', 'sslmode=require'), reached, 'require accepts any certificate')
  t.match(await reach('127.0.0.1', 'sslmode=disable'), reached)
})

t.test('a store without TLS is refused if its address requires TLS', async (t) => {
  // A PostgreSQL server without TLS answers `N` to a request for TLS.
  const server = createServer((socket) => socket.once('data', () => socket.write('N'))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const directory = `postgres://test@127.0.0.1:${port}/v?sslmode=require`
  await t.rejects(identifyVault({ directory, pid: process.pid, notice: () => {} }), { code: 'unavailable' })
})
