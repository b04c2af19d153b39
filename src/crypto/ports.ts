/** Ports of cryptography, time and randomness for storage and operations: interfaces only. */

/** XChaCha20-Poly1305 under one bound key. Sealed bytes are nonce 24 | ciphertext | tag 16. */
export interface Cipher {
  seal(plain: Uint8Array, associated: Uint8Array): Uint8Array
  /** Undefined when it does not authenticate. */
  open(sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined
}

/** A keyed digest under one bound key; `length` 16 to 32 bytes. */
export type Mac = (message: Uint8Array, length: number) => Uint8Array

/** The keys of an engine's files, derived from the vault's root key. */
export interface EngineKeys {
  wal: Cipher
  head: Cipher
  state: Cipher
  sstable: Cipher
  /** Digests of the header and of a backup's header. */
  chain: Mac
}

/** A keyed digest of text (UTF-8) under one bound key: 16 bytes. Contract: callers do not change it. */
export interface TextMac {
  digest(text: string): Uint8Array
  /** The digest, or what `make` gives, cached: for names, which are few, never for values. */
  recall(text: string, make?: (text: string) => Uint8Array): Uint8Array
}

/** The keys of one tenant's records, for sealing, finding and fingerprints. */
export interface RecordKeys {
  data: Cipher
  index: TextMac
  /** Chains log records; keyed with the fingerprint key, because a rekey keeps that one. */
  logChain: Mac
  /** Keyed BLAKE2b-256 of text. */
  fingerprint(text: string): Uint8Array
  /** In a fork: the new ids of tenants, by the ids in records from before the fork. */
  renamed?: ReadonlyMap<string, string>
}

/** The random keys of a tenant, 32 bytes each, as its record holds them: base64. */
export type TenantKeys = Record<'data' | 'index' | 'fingerprint', string>

/** The vault's own keys (tenant 0), and those of tenants. */
export interface VaultKeys {
  vault: RecordKeys
  openTenant(keys: TenantKeys): RecordKeys
}

/** `vault.json`: the plain header of a vault. */
export interface Header {
  format: number
  /** The id of the vault: 16 bytes in lower-case hexadecimal. */
  vault: string
  created: string
  cipher: string
  /** Key slots; `crypto/key-slot.ts` makes and parses them. */
  slots: readonly unknown[]
  /** A digest of the other fields under a key of the vault, base64. */
  mac: string
}

export interface RandomSource {
  bytes(count: number): Uint8Array
}

/** ms since the epoch. */
export type Clock = () => number

export interface Signer {
  /** PEM (SPKI). */
  readonly publicKey: string
  /** The signature of the text (UTF-8), base64. */
  sign(text: string): string
}
