/**
 * Measures encrypting, decrypting and digesting with each of the two cryptographic libraries, and compares the times
 * with those of Node's ciphers. The times include the creation of nonces. The arguments are the number of rounds and
 * the bytes of a record.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { nativePrimitives } from '../src/crypto/native.js'
import { createCipher, createMac, KEY_BYTES, type Primitives } from '../src/crypto/primitives.js'
import { createRandom } from '../src/crypto/random.js'
import { loadSodium } from '../src/crypto/sodium.js'
import { type Contender, measureInTurn, printTimes, timeCpu } from './figures.js'

const RUNS = 3000
const DIGEST_BYTES = 16
const [rounds = '15', bytes = '1024'] = process.argv.slice(2)
const random = createRandom()
const key = randomBytes(KEY_BYTES)
const plain = randomBytes(Number(bytes))
/** A name that is digested for a look-up usually has this length. */
const name = randomBytes(48)
const associated = randomBytes(24)

const libraries: [string, Primitives][] = [
  ['native (commands)', nativePrimitives],
  ['libsodium (servers)', await loadSodium()],
]
const AES = 'node:crypto aes-256-gcm'

const gcm = sealWithGcm()
await compare(`Seal ${bytes} bytes`, [
  { name: AES, measure: () => timeCpu(RUNS, sealWithGcm) },
  ...libraries.map(([library, primitives]) => {
    const cipher = createCipher(primitives, random, key)
    return { name: library, measure: () => timeCpu(RUNS, () => cipher.seal(plain, associated)) }
  }),
])
await compare(`Open ${bytes} bytes`, [
  { name: AES, measure: () => timeCpu(RUNS, () => openWithGcm(gcm)) },
  ...libraries.map(([library, primitives]) => {
    const cipher = createCipher(primitives, random, key)
    const sealed = cipher.seal(plain, associated)
    return { name: library, measure: () => timeCpu(RUNS, () => cipher.open(sealed, associated)) }
  }),
])
await compare(`Keyed digest of ${name.length} bytes`, [
  {
    name: 'node:crypto hmac sha256',
    measure: () => timeCpu(RUNS, () => createHmac('sha256', key).update(name).digest()),
  },
  ...libraries.map(([library, primitives]) => {
    const mac = createMac(primitives, key)
    return { name: library, measure: () => timeCpu(RUNS, () => mac(name, DIGEST_BYTES)) }
  }),
])

async function compare(title: string, contenders: readonly Contender[]): Promise<void> {
  printTimes(title, 'CPU µs', await measureInTurn(Number(rounds), contenders))
}

interface Gcm {
  nonce: Uint8Array
  body: Uint8Array
  tag: Uint8Array
}

function sealWithGcm(): Gcm {
  const nonce = random.bytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(associated)
  const body = cipher.update(plain)
  cipher.final()
  return { nonce, body, tag: cipher.getAuthTag() }
}

function openWithGcm({ nonce, body, tag }: Gcm): Uint8Array {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce)
  decipher.setAAD(associated)
  decipher.setAuthTag(tag)
  const opened = decipher.update(body)
  decipher.final()
  return opened
}
