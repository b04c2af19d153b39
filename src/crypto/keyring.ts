/**
 * The key hierarchy. The keys of the engine and of the vault's own records are derived from the root key. Each tenant
 * has random keys.
 */
import type { EngineKeys, RandomSource, RecordKeys, TenantKeys } from './ports.js'
import type { Primitives } from './primitives.js'
import { createCipher, createMac, createTextMac, deriveKey, KEY_BYTES } from './primitives.js'

/**
 * The cache of each tenant has at most this many entries. A digest takes about 150 bytes, a list of row keys up to 5
 * KiB.
 */
const CACHED_DIGESTS = 8192
const FINGERPRINT_BYTES = 32

export type Keyring = ReturnType<typeof createKeyring>

/** The caller may wipe `root` when this function has returned. */
export function createKeyring(primitives: Primitives, random: RandomSource, root: Uint8Array) {
  const derived: Uint8Array[] = []
  const derive = (purpose: string) => {
    const key = deriveKey(primitives, root, purpose)
    derived.push(key)
    return key
  }
  const cipher = (purpose: string) => createCipher(primitives, random, derive(purpose))
  const openKeys = (data: Uint8Array, index: Uint8Array, fingerprint: Uint8Array): RecordKeys => ({
    data: createCipher(primitives, random, data),
    index: createTextMac(primitives, index, CACHED_DIGESTS),
    logChain: createMac(primitives, fingerprint),
    fingerprint: (text) => primitives.blake2b(FINGERPRINT_BYTES, Buffer.from(text), fingerprint),
  })
  const newKey = () => Buffer.from(random.bytes(KEY_BYTES)).toString('base64')
  const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'base64'))
  return {
    engine: {
      wal: cipher('journal'),
      head: cipher('head'),
      state: cipher('state'),
      sstable: cipher('segment'),
      chain: createMac(primitives, derive('chain')),
    } satisfies EngineKeys,
    header: createMac(primitives, derive('header')),
    /** Proves to another process that this process has the vault's key (`ipc/vault-socket.ts`). */
    socketProof: createMac(primitives, derive('handover')),
    vault: openKeys(derive('vault/data'), derive('vault/index'), derive('vault/fingerprint')),
    generateTenant: (): TenantKeys => ({ data: newKey(), index: newKey(), fingerprint: newKey() }),
    openTenant: ({ data, index, fingerprint }: TenantKeys) =>
      openKeys(bytesOf(data), bytesOf(index), bytesOf(fingerprint)),
    /** Overwrites the vault's raw keys with zeros, as far as JavaScript permits. */
    wipe: (): void => {
      for (const key of derived) primitives.wipe(key)
    },
  }
}
