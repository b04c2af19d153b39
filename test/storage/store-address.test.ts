/** Addresses of stores: the settings in an address, and addresses that are refused. No message contains an address. */
import t from 'tap'
import { parseStoreAddress } from '../../src/storage/postgres/address.js'

t.test(
  'the address of a store configures the connection, and the password in the address is never shown',
  async (t) => {
    const address = parseStoreAddress('postgresql://bo%40b:p%40ss%3Aword@db.example:6543/vault?schema=team_1')
    t.match(address.connection, {
      host: 'db.example',
      port: 6543,
      database: 'vault',
      user: 'bo@b',
      password: 'p@ss:word',
      options: '-c search_path=team_1',
    })
    t.equal(address.text, 'postgresql://bo%40b@db.example:6543/vault?schema=team_1')
    t.equal(address.hasPassword, true)
    const socket = parseStoreAddress('postgres://bob@/vault?host=%2Frun%2Fpg')
    t.match(socket.connection, { host: '/run/pg', port: 5432, ssl: false })
    t.equal(socket.text, 'postgres://bob@/vault?host=%2Frun%2Fpg')
    t.equal(parseStoreAddress('postgres:///vault?host=/run/pg').connection.host, '/run/pg')
    t.equal(parseStoreAddress('postgres://bob@[::1]/vault').connection.host, '::1')
  },
)

t.test(
  'a store on another machine is reached over TLS with all checks, unless its address requests fewer checks',
  async (t) => {
    const tlsOf = (rest: string) => parseStoreAddress(`postgres://bob@${rest}`)
    for (const host of ['localhost', '127.0.0.1', '[::1]'])
      t.equal(tlsOf(`${host}/v`).connection.ssl, false, host)
    for (const host of ['db.example', '10.0.0.1', '127.0.0.1.example', 'localhost.example']) {
      const { connection, warning } = tlsOf(`${host}/v`)
      t.strictSame(connection.ssl, { host }, host)
      t.equal(warning, undefined)
    }
    t.strictSame(tlsOf('localhost/v?sslmode=verify-full').connection.ssl, { host: 'localhost' })
    t.match(tlsOf('localhost/v?sslrootcert=ca.pem'), {
      connection: { ssl: { host: 'localhost' } },
      caFile: 'ca.pem',
    })
    t.match(tlsOf('db/v?sslmode=verify-ca'), { connection: { ssl: Object }, warning: /name/ })
    t.match(tlsOf('db/v?sslmode=require'), {
      connection: { ssl: { rejectUnauthorized: false } },
      warning: /certificate/,
    })
    t.match(tlsOf('db/v?sslmode=disable'), { connection: { ssl: false }, warning: /not encrypted/ })
  },
)

t.test('an invalid address of a store is refused, and the error does not contain the address', async (t) => {
  const wrong = [
    'postgres://',
    'postgres://bob:topsecret@db',
    'postgres://bob:topsecret@db/a/b',
    'postgres://bob:topsecret@/vault',
    'postgres://bob:topsecret@db:99999/vault',
    'postgres://bob:topsecret@db/vault?host=/run/pg',
    'postgres://bob:topsecret@/vault?host=other',
    'postgres://bob:topsecret@db/vault?options=-c%20x',
    'postgres://bob:topsecret@db/vault?sslmode=require&sslmode=disable',
    'postgres://bob:topsecret@db/vault?sslmode=disable&sslrootcert=x',
    'postgres://bob:topsecret@db/vault?schema=Bad-One',
    'postgres://bob:topsecret@db/vault#x',
    'postgres://bob:top%secret@db/vault',
    'topsecret',
  ]
  for (const text of wrong) {
    const message = /^(?!.*secret)/s
    t.throws(() => parseStoreAddress(text), { code: 'usage', message }, text)
  }
})
