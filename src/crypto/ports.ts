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
  /**
   * The digest of the text that `spell` makes of the two, cached: for names, which are few, never for values. Contract:
   * one space is always spelled by the same function.
   */
  recall(space: string, name: string, spell: (space: string, name: string) => string): Uint8Array
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

/** The vault's own keys (tenant 0), and the keys of a tenant from the raw bytes in its record. */
export interface VaultKeys {
  vault: RecordKeys
  openTenant(raw: { data: Uint8Array; index: Uint8Array; fingerprint: Uint8Array }): RecordKeys
}

export interface RandomSource {
  bytes(count: number): Uint8Array
}

/** ms since the epoch. */
export type Clock = () => number
