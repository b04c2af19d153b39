/** The key hierarchy: the root key gives the keys of the engine and of the vault itself; each tenant has random ones. */
import type { EngineKeys, RandomSource, RecordKeys, TenantKeys } from './ports.js'
import type { Primitives } from './primitives.js'
import { createCipher, createMac, createTextMac, deriveKey, KEY_BYTES } from './primitives.js'

/** Digests of names that are cached for each tenant, about 150 bytes each, the keys that tokens share up to 5 KiB. */
const CACHED_DIGESTS = 8192
const FINGERPRINT_BYTES = 32

export type Keyring = ReturnType<typeof createKeyring>

/** The caller may wipe `root` afterwards. */
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
    /** Authenticates the vault's header; see `isSealedHeader`. */
    header: createMac(primitives, derive('header')),
    /** Proves to another process that this one holds the vault's key; see `ipc/vault-socket.ts`. */
    socketProof: createMac(primitives, derive('handover')),
    vault: openKeys(derive('vault/data'), derive('vault/index'), derive('vault/fingerprint')),
    generateTenant: (): TenantKeys => ({ data: newKey(), index: newKey(), fingerprint: newKey() }),
    openTenant: ({ data, index, fingerprint }: TenantKeys) =>
      openKeys(bytesOf(data), bytesOf(index), bytesOf(fingerprint)),
    /** Zeroes the vault's raw keys, as far as the language allows. */
    wipe: (): void => {
      for (const key of derived) primitives.wipe(key)
    },
  }
}
