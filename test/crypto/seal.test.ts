import fc from 'fast-check'
import t from 'tap'
import { nativePrimitives } from '../../src/crypto/native.js'
import {
  createCipher,
  createMac,
  deriveKey,
  isEqualDigest,
  type Primitives,
  SEAL_BYTES,
  upgradeCrypto,
} from '../../src/crypto/primitives.js'
import { createRandom, createUuid } from '../../src/crypto/random.js'
import { loadSodium } from '../../src/crypto/sodium.js'

const hex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'))
const toHex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const count = (from: number, length: number) => Uint8Array.from({ length }, (_, index) => from + index)
const utf8 = new TextEncoder()
const sodium = await loadSodium()
/**
 * The calls alternate between the two libraries, so that each library must accept the keys and encrypted texts of the
 * other library.
 */
let calls = 0
const either = new Proxy(sodium, {
  get: (_, name: keyof Primitives) => (calls++ % 2 === 0 ? sodium : nativePrimitives)[name],
})
const libraries: Record<string, Primitives> = { libsodium: sodium, native: nativePrimitives, either }

for (const [name, primitives] of Object.entries(libraries)) {
  t.test(
    `${name}: encryption gives the ciphertext and tag of draft-irtf-cfrg-xchacha-03, A.3.1`,
    async (t) => {
      const plain = utf8.encode(
        "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
      )
      const nonce = count(0x40, 24)
      const cipher = createCipher(primitives, { bytes: () => nonce }, count(0x80, 32))
      const associated = hex('50515253c0c1c2c3c4c5c6c7')
      const sealed = cipher.seal(plain, associated)
      t.equal(
        toHex(sealed),
        `${toHex(nonce)}bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49`,
      )
      t.equal(toHex(cipher.open(sealed, associated)!), toHex(plain))
    },
  )

  t.test(
    `${name}: a text is decrypted only with the same key, unchanged bytes and the same associated data`,
    async (t) => {
      const random = createRandom()
      const cipher = createCipher(primitives, random, random.bytes(32))
      const other = createCipher(primitives, random, random.bytes(32))
      fc.assert(
        fc.property(
          fc.uint8Array({ maxLength: 300 }),
          fc.uint8Array({ maxLength: 40 }),
          fc.nat(),
          (plain, associated, at) => {
            const sealed = cipher.seal(plain, associated)
            const changed = Uint8Array.from(sealed)
            changed[at % changed.length]! ^= 1
            return (
              sealed.length === plain.length + SEAL_BYTES &&
              Buffer.compare(cipher.open(sealed, associated)!, plain) === 0 &&
              cipher.open(changed, associated) === undefined &&
              cipher.open(sealed, Uint8Array.of(...associated, 0)) === undefined &&
              other.open(sealed, associated) === undefined
            )
          },
        ),
      )
      t.equal(cipher.open(new Uint8Array(SEAL_BYTES - 1), new Uint8Array()), undefined, 'too short')
    },
  )

  t.test(`${name}: keyed BLAKE2b gives the published test vectors`, async (t) => {
    const keyed = (message: Uint8Array) => toHex(primitives.blake2b(64, message, count(0, 64)))
    t.equal(
      keyed(new Uint8Array()),
      '10ebb67700b1868efb4417987acf4690ae9d972fb7a590c2f02871799aaa4786b5e996e8f0f4eb981fc214b005f42d2ff4233499391653df7aefcbc13fc51568',
    )
    t.equal(
      keyed(Uint8Array.of(0)),
      '961f6dd1e4dd30f63901690c512e78e4b45e4742ed197c3c5e45c549fd25f2e4187b0bc9fe30492b16b0d0bc4ef9b0f34c7003fac09a5ef1532e69430234cebd',
    )
  })

  t.test(`${name}: derived keys always have the same bytes, and differ by purpose and root`, async (t) => {
    const root = count(0, 32)
    const derive = (purpose: string, from = root) => toHex(deriveKey(primitives, from, purpose))
    // HKDF-Expand (RFC 5869) with the info `coffer/1/journal` and a final byte of 32. Another program computed the
    // expected value.
    t.equal(derive('journal'), 'c5be8326540aa0d888cff37a63a12fd13bbeb8a03e2e1707108445e5eeaba0e4')
    t.not(derive('state'), derive('journal'))
    t.not(derive('journal', count(1, 32)), derive('journal'))
    const mac = createMac(primitives, root)
    t.same([mac(root, 16).length, mac(root, 32).length], [16, 32])
    t.not(
      toHex(mac(root, 16)),
      toHex(mac(root, 32).subarray(0, 16)),
      'a shorter digest is not the beginning of a longer digest',
    )
  })
}

t.test('digests are equal only if all their bytes are equal', async (t) => {
  t.ok(isEqualDigest(count(0, 16), count(0, 16)))
  t.notOk(isEqualDigest(count(0, 16), count(1, 16)))
  t.notOk(isEqualDigest(count(0, 16), count(0, 15)), 'comparing with a shorter digest does not throw')
})

t.test('a comparison of two digests does not end at the first byte that differs', (t) => {
  const [long, equal, other] = [0, 0, 1].map((first) => {
    const bytes = new Uint8Array(8 * 1024 * 1024)
    bytes[0] = first
    return bytes
  })
  const measure = (bytes: Uint8Array) => {
    const began = performance.now()
    isEqualDigest(long!, bytes)
    return performance.now() - began
  }
  // The measurements alternate and only the shortest times count, because other processes can interrupt a
  // measurement.
  let [whole, differing] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round < 30; round++) {
    whole = Math.min(whole, measure(equal!))
    differing = Math.min(differing, measure(other!))
  }
  t.ok(differing > whole / 4, `${differing} ms for different digests, ${whole} ms for equal digests`)
  t.end()
})

t.test(
  'both crypto libraries give the same bytes, and each decrypts texts that the other has encrypted',
  async (t) => {
    const { libsodium, native } = libraries as { libsodium: Primitives; native: Primitives }
    const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
    const message = fc.uint8Array({ maxLength: 2000 })
    fc.assert(
      fc.property(
        message,
        message,
        bytes(24),
        bytes(32),
        fc.integer({ min: 16, max: 64 }),
        (plain, associated, nonce, key, length) => {
          const body = libsodium.seal(plain, associated, nonce, key)
          const isSame = Buffer.compare(native.seal(plain, associated, nonce, key), body) === 0
          const isOpen = [libsodium, native].every(
            (each) => Buffer.compare(each.open(body, associated, key)!, plain) === 0,
          )
          const short = Math.min(length, 32)
          const digests = [libsodium, native].map(
            (each) => `${toHex(each.blake2b(length, plain, key))} ${toHex(each.digest(short, plain, key))}`,
          )
          return isSame && isOpen && digests[0] === digests[1]
        },
      ),
    )
    const [own, kept] = [6144, 16_384]
    const borders = [own - 40, own - 39, own, own + 1, kept - 40, kept - 39, kept, kept + 1]
    for (const length of [0, 1, 63, 64, 65, 2048, 2049, ...borders, 300_000]) {
      const plain = count(length, length)
      const [nonce, key] = [count(1, 24), count(2, 32)]
      const sealed = native.seal(plain, new Uint8Array(), nonce, key)
      t.equal(
        Buffer.compare(libsodium.seal(plain, new Uint8Array(), nonce, key), sealed),
        0,
        `${length} bytes`,
      )
      t.equal(Buffer.compare(libsodium.open(sealed, new Uint8Array(), key)!, plain), 0)
    }
  },
)

t.test('random bytes are drawn in batches, and no byte is returned twice', async (t) => {
  const batches: number[] = []
  let next = 0
  const random = createRandom((target) => {
    batches.push(target.length)
    for (let at = 0; at < target.length; at++) target[at] = next++ & 0xff
  })
  t.equal(toHex(random.bytes(3)), toHex(Uint8Array.of(0, 1, 2)))
  t.equal(toHex(random.bytes(2)), toHex(Uint8Array.of(3, 4)))
  t.equal(random.bytes(100).length, 100, 'large requests do not use the batch')
  for (let drawn = 0; drawn < 128; drawn++) random.bytes(32)
  t.same(batches, [4096, 100, 4096])
})

t.test('a UUID has version 4', async (t) => {
  t.equal(createUuid({ bytes: () => count(0xf0, 16) }), 'f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff')
  const uuids = new Set(Array.from({ length: 1000 }, () => createUuid(createRandom())))
  t.equal(uuids.size, 1000)
})

t.test(
  'the built-in crypto functions are used until libsodium is loaded, or always if it cannot be loaded',
  async (t) => {
    const ownDigest = () => Uint8Array.of(7)
    let change = (_: Primitives) => {}
    const later = new Promise<Primitives>((resolve) => {
      change = resolve
    })
    const primitives = upgradeCrypto(nativePrimitives, later)
    const key = count(1, 32)
    t.equal(toHex(primitives.digest(32, key, key)), toHex(nativePrimitives.digest(32, key, key)))
    change({ ...sodium, digest: ownDigest })
    await later
    t.equal(toHex(primitives.digest(32, key, key)), toHex(ownDigest()))
    const stays = upgradeCrypto(nativePrimitives, Promise.reject(new Error('not there')))
    await new Promise(setImmediate)
    t.equal(toHex(stays.digest(32, key, key)), toHex(nativePrimitives.digest(32, key, key)))
    const secret = count(1, 32)
    primitives.wipe(secret)
    t.equal(toHex(secret), toHex(new Uint8Array(32)))
  },
)
