import { createPrivateKey, createPublicKey, diffieHellman, randomBytes } from 'node:crypto'
import t from 'tap'
import { clientEncryption } from '../../src/crypto/client-encryption.js'
import { formatPublicKey } from '../../src/domain/encryption/client-key.js'
import { readJwe } from '../../src/domain/encryption/jwe.js'
import { encryptLikePhones, encryptWithJose, type PublicKey, rawKeyOf, seal } from '../support/encrypt.js'

const hex = (text: string) => Buffer.from(text, 'hex')
const textOf = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString()

/** The private key of Bob in RFC 7748, 6.1. RFC 8037, A.6 uses the key pair of Bob too. */
const BOB = hex('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb')
const BOBS_PUBLIC_KEY = '3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08'
const EPHEMERAL = 'hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo'
const SHARED = hex('4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742')
const HEADER = `{"alg":"ECDH-ES","enc":"A256GCM","epk":{"kty":"OKP","crv":"X25519","x":"${EPHEMERAL}"}}`

/**
 * Points of low order (RFC 7748, 7, also in encodings that are not reduced). A key agreement with one of these points
 * always gives a shared secret of zeros.
 */
const LOW_ORDER = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000080',
].map(hex)

function open(jwe: string, privateKey: Uint8Array): string | undefined {
  const read = readJwe(jwe)
  return read && textOf(clientEncryption.open(read.parts, clientEncryption.pairOf(privateKey)))
}

function makeKey() {
  const privateKey = randomBytes(32)
  const key: PublicKey = {
    key_id: 'k',
    public_key_pem: formatPublicKey(Buffer.from(clientEncryption.pairOf(privateKey).public_key, 'base64url')),
  }
  return { privateKey, key }
}

t.test('the key agreement computes the shared secret of the example in RFC 8037', async (t) => {
  const { public_key, private_key } = clientEncryption.pairOf(BOB)
  t.same([public_key, private_key], [BOBS_PUBLIC_KEY, BOB.toString('base64url')])
  t.equal(open(seal('{"a":1}', SHARED, HEADER), BOB), '{"a":1}')
  t.equal(open(seal('{"a":1}', Buffer.from(SHARED).reverse(), HEADER), BOB), undefined)
})

t.test('data that two independent programs encrypt can be decrypted by the vault', async (t) => {
  const { privateKey, key } = makeKey()
  t.match(key.public_key_pem, /^-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/]{43}=\n-----END PUBLIC KEY-----$/)
  t.equal(Buffer.from(rawKeyOf(key), 'base64').length, 32)
  for (const data of [{ number: '4242424242424242' }, '', null, ['ü', 1.5], 'x'.repeat(70_000)]) {
    t.equal(open(encryptLikePhones(data, key), privateKey), JSON.stringify(data))
    t.equal(open(await encryptWithJose(data, key), privateKey), JSON.stringify(data))
    const parties = { apu: Buffer.from('Alice'), apv: Buffer.from('Bob') }
    t.equal(open(await encryptWithJose(data, key, { parties }), privateKey), JSON.stringify(data))
  }
})

t.test('data that was encrypted for another key, or was changed, is not decrypted', async (t) => {
  const { privateKey, key } = makeKey()
  const jwe = encryptLikePhones({ a: 'b' }, key)
  t.equal(open(jwe, makeKey().privateKey), undefined)
  const { parts } = readJwe(jwe)!
  const pair = clientEncryption.pairOf(privateKey)
  for (const name of Object.keys(parts) as (keyof typeof parts)[]) {
    // The test changes a part of variable length by adding a byte, because the part can be empty.
    const isSized = ['ephemeral', 'nonce', 'tag'].includes(name)
    const changed = isSized ? Uint8Array.from(parts[name]) : Uint8Array.from([...parts[name], 0])
    if (isSized) changed[0]! ^= 1
    t.equal(clientEncryption.open({ ...parts, [name]: changed }, pair), undefined, name)
  }
  t.equal(textOf(clientEncryption.open(parts, pair)), '{"a":"b"}')
})

t.test('an ephemeral key of low order is refused, because everybody knows its shared secret', async (t) => {
  const { privateKey } = makeKey()
  for (const point of LOW_ORDER) {
    const header = HEADER.replace(EPHEMERAL, point.toString('base64url'))
    const jwe = seal('{"a":1}', Buffer.alloc(32), header)
    t.ok(readJwe(jwe), 'only the decryption can refuse it')
    t.equal(open(jwe, privateKey), undefined, point.toString('hex'))
  }
})

t.test('the highest bit of an ephemeral key is ignored, as RFC 7748 requires', async (t) => {
  const { privateKey, key } = makeKey()
  const header = JSON.parse(Buffer.from(encryptLikePhones(1, key).split('.')[0]!, 'base64url').toString())
  const point = Buffer.from(header.epk.x, 'base64url')
  point[31]! |= 0x80
  const publicKey = createPublicKey({ key: { ...header.epk, x: point.toString('base64url') }, format: 'jwk' })
  const der = Buffer.concat([hex('302e020100300506032b656e04220420'), privateKey])
  const secret = diffieHellman({
    privateKey: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }),
    publicKey,
  })
  const epk = { ...header.epk, x: point.toString('base64url') }
  t.equal(open(seal('1', secret, JSON.stringify({ ...header, epk })), privateKey), '1')
})
