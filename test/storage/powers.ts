/**
 * Keys, random bytes and clocks for engines under test. The engines use the product's ciphers with fixed keys, so each
 * run is the same.
 */
import sodium from 'libsodium-wrappers'
import { createKeyring } from '../../src/crypto/keyring.js'
import { nativePrimitives } from '../../src/crypto/native.js'
import type { Clock, EngineKeys, RandomSource } from '../../src/crypto/ports.js'
import type { Header } from '../../src/storage/vault-file.js'

await sodium.ready

/** Returns bytes that look random but are the same in every run: BLAKE2b of a counter and `seed`. */
export function repeatableRandom(seed = 'random'): RandomSource {
  let counter = 0
  return {
    bytes: (count) => {
      const bytes = new Uint8Array(Math.ceil(count / 64) * 64)
      for (let at = 0; at < count; at += 64)
        bytes.set(sodium.crypto_generichash(64, `${seed}/${counter++}`, null), at)
      return bytes.slice(0, count)
    },
  }
}

/** Returns the keys of a vault. Two calls with the same `vault` return the same keys. */
export function engineKeys(random: RandomSource = repeatableRandom(), vault = 'vault'): EngineKeys {
  return createKeyring(nativePrimitives, random, sodium.crypto_generichash(32, `key/${vault}`, null)).engine
}

/**
 * Returns a vault header with the shape of the header that a keyring makes. Engines do not check the MAC of the header.
 */
export function testHeader(note = ''): Header {
  return {
    format: 1,
    vault: '000102030405060708090a0b0c0d0e0f',
    created: '2030-01-01T00:00:00.000+00:00',
    cipher: 'xchacha20-poly1305',
    slots: [{ note }],
    mac: 'mac',
  }
}

/** Creates a clock that the test sets. */
export function createClock(start = 1_000): Clock & { set(time: number): void } {
  let time = start
  return Object.assign(() => time, {
    set: (next: number) => {
      time = next
    },
  })
}

/** Returns a digest of `text` with 16 bytes, the length of an id, or 8 bytes, the length of a key. */
export function digest(text: string, length: 8 | 16): Uint8Array {
  return sodium.crypto_generichash(16, text, null).slice(0, length)
}
