/** The key hierarchy: the root key gives the keys of the engine and of the vault itself; each tenant has random ones. */
import { createMac, createTextMac, deriveKey } from './mac.js'
import type { EngineKeys, RandomSource, RecordKeys } from './ports.js'
import type { Primitives } from './primitives.js'
import { createCipher, KEY_BYTES } from './seal.js'

/** Digests of names that are cached for each tenant, about 150 bytes each. */
const CACHED_DIGESTS = 8192
const FINGERPRINT_BYTES = 32

/** The keys of one tenant's records (the vault itself is tenant 0). */
export interface TenantKeys extends RecordKeys {
  /** Zeroes the raw keys; afterwards nothing sealed with them opens. */
  wipe(): void
}

/** Raw keys of a tenant, 32 bytes each, random. */
type RawTenantKeys = Record<'data' | 'index' | 'fingerprint', Uint8Array>

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
  const openTenant = (raw: RawTenantKeys): TenantKeys => ({
    data: createCipher(primitives, random, raw.data),
    index: createTextMac(primitives, raw.index, CACHED_DIGESTS),
    logChain: createMac(primitives, raw.fingerprint),
    fingerprint: (text) => primitives.blake2b(FINGERPRINT_BYTES, Buffer.from(text), raw.fingerprint),
    wipe: () => {
      for (const key of [raw.data, raw.index, raw.fingerprint]) primitives.wipe(key)
    },
  })
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
    vault: openTenant({
      data: derive('vault/data'),
      index: derive('vault/index'),
      fingerprint: derive('vault/fingerprint'),
    }),
    generateTenant: (): RawTenantKeys => ({
      data: random.bytes(KEY_BYTES),
      index: random.bytes(KEY_BYTES),
      fingerprint: random.bytes(KEY_BYTES),
    }),
    openTenant,
    /** Zeroes the vault's raw keys, as far as the language allows. */
    wipe: (): void => {
      for (const key of derived) primitives.wipe(key)
    },
  }
}
