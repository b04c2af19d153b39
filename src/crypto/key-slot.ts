/**
 * Key slots: each holds the vault's root key, sealed under a passphrase (through scrypt, RFC 7914) or a key file. The
 * header's digest shows that no slot was changed without the root key.
 */
import { type ScryptOptions, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { CofferError, conflict, usage } from '../errors.js'
import type { FileKey } from './key-file.js'
import { createMac, deriveKey, isEqualDigest } from './mac.js'
import type { Mac, RandomSource } from './ports.js'
import type { Primitives } from './primitives.js'
import { createCipher } from './seal.js'

/** Cost of turning a passphrase into a key: memory is 128 · n · r bytes. */
export type ScryptCost = Record<'n' | 'r' | 'p', number>

/** 128 MiB and about a quarter of a second on a laptop of 2026. */
const DEFAULT_COST: ScryptCost = { n: 2 ** 17, r: 8, p: 1 }

// Bounds for headers: below, a passphrase is cheap to guess; above, opening a forged vault exhausts memory.
const LEAST_N = 2 ** 14
const MOST_MEMORY_BYTES = 256 * 1024 * 1024
const MOST_P = 4
// A wrong passphrase is tried on each slot, each at the highest allowed cost.
const MOST_SLOTS = 16
const SALT_BYTES = 16
const MAC_BYTES = 32
const SLOT_ID_BYTES = 5
const LEAST_PASSPHRASE_LENGTH = 8
const MOST_PASSPHRASE_LENGTH = 1024

export type Slot =
  | { id: string; kind: 'key-file'; created: string; wrapped: string }
  | { id: string; kind: 'passphrase'; created: string; kdf: ScryptCost & { salt: string }; wrapped: string }

export type Secret = { kind: 'key-file'; file: FileKey } | { kind: 'passphrase'; passphrase: string }

/** The part of `vault.json` that the digest covers, and the digest. */
export interface SealedHeader {
  format: number
  vault: string
  created: string
  cipher: string
  slots: Slot[]
  mac: string
}

const scryptKey = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt)
const utf8 = new TextEncoder()
const locked = (message: string, cause?: unknown) => new CofferError('vault_locked', message, { cause })
const damaged = (message: string) => new CofferError('vault_damaged', message)
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const fromBase64 = (text: string) => new Uint8Array(Buffer.from(text, 'base64'))

interface SlotContext {
  primitives: Primitives
  random: RandomSource
}

/** @throws CofferError `usage` for a passphrase that is too short or too long. */
export function checkNewPassphrase(passphrase: string): void {
  const length = [...passphrase].length
  if (length >= LEAST_PASSPHRASE_LENGTH && length <= MOST_PASSPHRASE_LENGTH) return
  throw usage(`A passphrase has ${LEAST_PASSPHRASE_LENGTH} to ${MOST_PASSPHRASE_LENGTH} characters.`)
}

export async function createSlot(
  { primitives, random }: SlotContext,
  slot: { root: Uint8Array; secret: Secret; created: string; cost?: ScryptCost },
): Promise<Slot> {
  const { root, secret, created, cost = DEFAULT_COST } = slot
  const id = Buffer.from(random.bytes(SLOT_ID_BYTES)).toString('hex')
  const kdf = () => ({ ...cost, salt: base64(random.bytes(SALT_BYTES)) })
  const { kind } = secret
  const bare = kind === 'key-file' ? { id, kind, created } : { id, kind, created, kdf: kdf() }
  const key = await deriveSlotKey(primitives, bare, secret)
  const wrapped = base64(createCipher(primitives, random, key).seal(root, slotText(bare)))
  primitives.wipe(key)
  return { ...bare, wrapped }
}

/** The slot that `secret` opens, and the root key. @throws CofferError `vault_locked` for a wrong one, `vault_damaged` */
export async function openSlot(
  { primitives, random }: SlotContext,
  header: SealedHeader,
  secret: Secret,
): Promise<{ root: Uint8Array; slot: Slot }> {
  const candidates = header.slots.filter((slot) => slot.kind === secret.kind)
  if (candidates.length === 0) throw missingSlot(secret)
  for (const slot of candidates) {
    const key = await deriveSlotKey(primitives, slot, secret)
    const root = createCipher(primitives, random, key).open(fromBase64(slot.wrapped), slotText(slot))
    primitives.wipe(key)
    if (root === undefined) continue
    if (!isEqualDigest(primitives, fromBase64(header.mac), headerDigest(primitives, header, root)))
      throw damaged('vault.json was changed by something else than Coffer. Run: coffer vault verify')
    return { root, slot }
  }
  throw refuseSecret(header, secret)
}

/** The digest that `vault.json` carries: 32 bytes over its other fields, by a key derived from the root. */
function headerDigest(
  primitives: Primitives,
  header: Omit<SealedHeader, 'mac'>,
  root: Uint8Array,
): Uint8Array {
  return digestOf(header, createMac(primitives, deriveKey(primitives, root, 'header')))
}

function digestOf(header: Omit<SealedHeader, 'mac'>, mac: Mac): Uint8Array {
  const { format, vault, created, cipher, slots } = header
  const text = JSON.stringify([format, vault, created, cipher, slots.map(slotFields)])
  return mac(utf8.encode(text), MAC_BYTES)
}

/** Whether the header was sealed with the root key of the keyring that `mac` is from. */
export function isSealedHeader(primitives: Primitives, header: SealedHeader, mac: Mac): boolean {
  return isEqualDigest(primitives, fromBase64(header.mac), digestOf(header, mac))
}

export function sealHeader(
  primitives: Primitives,
  header: Omit<SealedHeader, 'mac'>,
  root: Uint8Array,
): SealedHeader {
  return { ...header, mac: base64(headerDigest(primitives, header, root)) }
}

/** @throws CofferError `conflict` for more slots than a header may hold. */
export function checkSlotCount(count: number): void {
  if (count <= MOST_SLOTS) return
  throw conflict(
    `A vault has at most ${MOST_SLOTS} key slots. Remove one first: coffer vault keys remove SLOT`,
  )
}

/** `slots` as a header file holds them, checked for shape and bounds. @throws CofferError `vault_damaged` */
export function parseSlots(slots: readonly unknown[]): Slot[] {
  if (slots.length <= MOST_SLOTS && slots.every(isSlot)) return [...slots]
  throw damaged('vault.json holds a key slot that Coffer did not write. Run: coffer vault verify')
}

function isSlot(value: unknown): value is Slot {
  const slot = value as Slot | null
  if (typeof slot !== 'object' || slot === null) return false
  if (![slot.id, slot.created, slot.wrapped].every((text) => typeof text === 'string')) return false
  return slot.kind === 'key-file' || (slot.kind === 'passphrase' && isBoundedCost(slot.kdf))
}

function isBoundedCost(kdf: (ScryptCost & { salt: string }) | null | undefined): boolean {
  if (typeof kdf !== 'object' || kdf === null || typeof kdf.salt !== 'string') return false
  const { n, r, p } = kdf
  if (![n, r, p].every((value) => Number.isSafeInteger(value) && value > 0)) return false
  if (n < LEAST_N || (n & (n - 1)) !== 0) return false
  // RFC 7914, section 2: n is less than 2^(16·r), which only r = 1 can break here.
  if (r === 1 && n >= 2 ** 16) return false
  return 128 * n * r <= MOST_MEMORY_BYTES && p <= MOST_P
}

/** The fields of a slot, in one fixed order. */
function slotFields(slot: Slot | Omit<Slot, 'wrapped'>): unknown[] {
  const kdf = 'kdf' in slot ? (slot.kdf as ScryptCost & { salt: string }) : undefined
  const bare = [slot.id, slot.kind, slot.created, kdf === undefined ? null : [kdf.n, kdf.r, kdf.p, kdf.salt]]
  return 'wrapped' in slot ? [...bare, slot.wrapped] : bare
}

function slotText(slot: Slot | Omit<Slot, 'wrapped'>): Uint8Array {
  const { wrapped: _, ...bare } = slot as Slot
  return utf8.encode(JSON.stringify(['coffer/1/slot', ...slotFields(bare)]))
}

async function deriveSlotKey(primitives: Primitives, slot: Omit<Slot, 'wrapped'>, secret: Secret) {
  // The key file's own vault id counts, so that a header with a changed id is seen as damaged, not as another vault.
  if (secret.kind === 'key-file')
    return deriveKey(primitives, secret.file.key, `key-file/${secret.file.vault}`)
  const { kdf } = slot as Extract<Slot, { kind: 'passphrase' }>
  const { n, r, p } = kdf
  const [passphrase, salt] = [secret.passphrase.normalize('NFKC'), fromBase64(kdf.salt)]
  try {
    return new Uint8Array(await scryptKey(passphrase, salt, 32, { N: n, r, p, maxmem: 256 * n * r }))
  } catch (cause) {
    throw locked('The passphrase could not be turned into a key: too little memory?', cause)
  }
}

function missingSlot(secret: Secret): CofferError {
  const other = secret.kind === 'key-file' ? 'a passphrase' : 'a key file (--key-file)'
  const mine = secret.kind === 'key-file' ? 'key file' : 'passphrase'
  return locked(`This vault has no ${mine} slot. It opens with ${other}.`)
}

function refuseSecret(header: SealedHeader, secret: Secret): CofferError {
  if (secret.kind === 'passphrase') return locked('Wrong passphrase.')
  if (secret.file.vault !== header.vault)
    return locked(`This key file is for vault ${secret.file.vault}, not for ${header.vault}.`)
  return damaged(
    'This key file was made for this vault, but no key slot opens with it: its slot was removed, or vault.json is ' +
      'damaged. Use another key, or restore a backup.',
  )
}
