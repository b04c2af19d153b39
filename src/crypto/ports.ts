/** XChaCha20-Poly1305 with a fixed key. Sealed bytes are nonce 24 | ciphertext | tag 16. */
export interface Cipher {
  seal(plain: Uint8Array, associated: Uint8Array): Uint8Array
  /** Returns undefined if the bytes or the associated data are not authentic. */
  open(sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined
}

/** A keyed digest with a fixed key. `length`: 16 to 32 bytes. */
export type Mac = (message: Uint8Array, length: number) => Uint8Array

/** The keys for the files of an engine, derived from the vault's root key. */
export interface EngineKeys {
  wal: Cipher
  head: Cipher
  state: Cipher
  sstable: Cipher
  /** Computes digests of headers and checksums of rows. */
  chain: Mac
}

/** A keyed digest of text (UTF-8) with a fixed key: 16 bytes. Requires: callers do not change the result. */
export interface TextMac {
  digest(text: string): Uint8Array
  /**
   * Returns the cached digest of the text, or the cached result of `make` for the text. Requires: the text contains no
   * secret, because the cache keeps the text in memory.
   */
  recall(text: string, make?: (text: string) => Uint8Array): Uint8Array
}

export interface RecordKeys {
  data: Cipher
  index: TextMac
  /** Computes the chains of log records with the fingerprint key, because a rekey does not change this key. */
  logChain: Mac
  /** Keyed BLAKE2b, 32 bytes. */
  fingerprint(text: string): Uint8Array
  /** Only in a fork of a vault: the id of each tenant in the fork, by its id in the original vault. */
  renamed?: ReadonlyMap<string, string>
}

/** The random keys of a tenant, as stored in its record: 32 bytes each, base64. */
export type TenantKeys = Record<'data' | 'index' | 'fingerprint', string>

/** `vault`: the keys of tenant 0, which has the vault's own records. */
export interface VaultKeys {
  vault: RecordKeys
  openTenant(keys: TenantKeys): RecordKeys
}

/** The content of `vault.json`, which is not encrypted. */
export interface Header {
  format: number
  /** The id of the vault: 16 bytes in lower-case hexadecimal. */
  vault: string
  created: string
  cipher: string
  /** `crypto/key-slot.ts` checks the form of the slots. */
  slots: readonly unknown[]
  /** A keyed digest of the other fields, base64. */
  mac: string
}

/** The parts of a JWE with `ECDH-ES` and `A256GCM` that are needed to decrypt the JWE (RFC 7516, 5.2). */
export interface Encrypted {
  /** The sender's ephemeral X25519 key: 32 bytes. */
  ephemeral: Uint8Array
  /** `apu` (`partyV`: `apv`) of RFC 7518, 4.6.2. Empty if the header of the JWE lacks the parameter. */
  partyU: Uint8Array
  partyV: Uint8Array
  /** The protected header exactly as it was sent (base64url, as ASCII bytes). */
  associated: Uint8Array
  /** 12 bytes. */
  nonce: Uint8Array
  ciphertext: Uint8Array
  /** 16 bytes. */
  tag: Uint8Array
}

/** The two halves of an X25519 key: 32 bytes each, base64url. */
export interface ClientKeyPair {
  public_key: string
  private_key: string
}

export interface ClientEncryption {
  /** `privateKey`: 32 random bytes. */
  pairOf(privateKey: Uint8Array): ClientKeyPair
  /**
   * Decrypts the data of a JWE. Returns undefined if the parts are not authentic, or if the shared secret is zero.
   * Every refused message takes the same steps, so that the time of a refusal does not show its reason.
   */
  open(parts: Encrypted, pair: ClientKeyPair): Uint8Array | undefined
}

export interface RandomSource {
  bytes(count: number): Uint8Array
}

/** ms since the epoch. */
export type Clock = () => number

export interface Signer {
  /** PEM (SPKI). */
  readonly publicKey: string
  /** Returns the signature in base64. */
  sign(text: string): string
}
