/**
 * The source of random bytes for keys, nonces and ids. Reads 4 KiB at a time from the generator of the system. With
 * libsodium's source, which reads 4 bytes at a time, sealing was 15 times slower.
 */
import { randomFillSync } from 'node:crypto'
import type { RandomSource } from './ports.js'

const POOL_BYTES = 4096
const LARGEST_POOLED = 64

/** Requires: the function uses the cryptographic generator of the system. */
type Fill = (target: Uint8Array) => void

/** Returned bytes are erased from the pool. */
export function createRandom(fill: Fill = randomFillSync): RandomSource {
  const pool = new Uint8Array(POOL_BYTES)
  let used = POOL_BYTES
  return {
    bytes(count) {
      if (count > LARGEST_POOLED) {
        const large = new Uint8Array(count)
        fill(large)
        return large
      }
      if (used + count > POOL_BYTES) {
        fill(pool)
        used = 0
      }
      const bytes = pool.slice(used, used + count)
      pool.fill(0, used, used + count)
      used += count
      return bytes
    },
  }
}

/** UUID version 4 (RFC 9562, 5.4), lower case. */
export function createUuid(random: RandomSource): string {
  const bytes = random.bytes(16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = Buffer.from(bytes).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
