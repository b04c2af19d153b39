/**
 * Key slots. Each slot contains the vault's root key, sealed with a passphrase (through scrypt, RFC 7914) or with a key
 * file. The MAC in the header proves that the writer of the slots had the root key.
 */
import { type ScryptOptions, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { CofferError, conflict, usage } from '../errors.js'
import type { Header, Mac, RandomSource } from './ports.js'
import {
  createCipher,
  createMac,
  deriveKey,
  isEqualDigest,
  KEY_BYTES,
  type Primitives,
} from './primitives.js'

/** The cost of deriving a key from a passphrase. The derivation takes 128 · n · r bytes of memory. */
export type ScryptCost = Record<'n' | 'r' | 'p', number>

/** Takes 128 MiB of memory, and about 250 ms on a laptop of 2026. */
const DEFAULT_COST: ScryptCost = { n: 2 ** 17, r: 8, p: 1 }

// These bounds limit the scrypt cost that the header of a vault may contain. With a lower scrypt cost, a passphrase is
// easy to guess. With a higher scrypt cost, a forged vault exhausts memory.
const MIN_N = 2 ** 14
const MAX_MEMORY_BYTES = 256 * 1024 * 1024
const MAX_P = 4
// The limit is low, because a wrong passphrase is tried with every slot, and each try can have the highest cost.
const MAX_SLOTS = 16
const SALT_BYTES = 16
const MAC_BYTES = 32
const SLOT_ID_BYTES = 5
const MIN_PASSPHRASE_LENGTH = 8
const MAX_PASSPHRASE_LENGTH = 1024

/**
 * `kdf`: the parameters of scrypt, only in a slot with a passphrase. `wrapped`: the sealed root key, base64.
 */
export interface Slot {
  id: string
  kind: 'key-file' | 'passphrase'
  created: string
  kdf?: ScryptCost & { salt: string }
  wrapped: string
}

type BareSlot = Omit<Slot, 'wrapped'>

export type Secret = { kind: 'key-file'; file: FileKey } | { kind: 'passphrase'; passphrase: string }

const scryptKey = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt)
const locked = (message: string, cause?: unknown) => new CofferError('vault_locked', message, { cause })
const damaged = (message: string) => new CofferError('vault_damaged', message)
const toBase64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const fromBase64 = (text: string) => new Uint8Array(Buffer.from(text, 'base64'))

interface SlotContext {
  primitives: Primitives
  random: RandomSource
}

export function checkNewPassphrase(passphrase: string): void {
  const length = [...passphrase].length
  if (length < MIN_PASSPHRASE_LENGTH || length > MAX_PASSPHRASE_LENGTH)
    throw usage(`A passphrase has ${MIN_PASSPHRASE_LENGTH} to ${MAX_PASSPHRASE_LENGTH} characters.`)
}

export async function createSlot(
  { primitives, random }: SlotContext,
  slot: { root: Uint8Array; secret: Secret; created: string; cost?: ScryptCost },
): Promise<Slot> {
  const { root, secret, created, cost = DEFAULT_COST } = slot
  const id = Buffer.from(random.bytes(SLOT_ID_BYTES)).toString('hex')
  const { kind } = secret
  const bare: BareSlot = { id, kind, created }
  if (kind === 'passphrase') bare.kdf = { ...cost, salt: toBase64(random.bytes(SALT_BYTES)) }
  const key = await deriveSlotKey(primitives, bare, secret)
  const wrapped = toBase64(createCipher(primitives, random, key).seal(root, slotText(bare)))
  primitives.wipe(key)
  return { ...bare, wrapped }
}

export async function openSlot(
  { primitives, random }: SlotContext,
  header: Header,
  secret: Secret,
): Promise<{ root: Uint8Array; slot: Slot }> {
  const candidates = parseSlots(header.slots).filter((slot) => slot.kind === secret.kind)
  if (candidates.length === 0) throw locked(`This vault has no ${secret.kind} slot. Use another key.`)
  for (const slot of candidates) {
    const key = await deriveSlotKey(primitives, slot, secret)
    const root = createCipher(primitives, random, key).open(fromBase64(slot.wrapped), slotText(slot))
    primitives.wipe(key)
    if (root === undefined) continue
    if (!isSealedHeader(header, headerMac(primitives, root)))
      throw damaged('vault.json was changed without the root key of the vault. Run: coffer vault verify')
    return { root, slot }
  }
  throw refuseSecret(header, secret)
}

function headerMac(primitives: Primitives, root: Uint8Array): Mac {
  return createMac(primitives, deriveKey(primitives, root, 'header'))
}

function digestHeader({ format, vault, created, cipher, slots }: Omit<Header, 'mac'>, mac: Mac): Uint8Array {
  const text = JSON.stringify([format, vault, created, cipher, parseSlots(slots).map(slotFields)])
  return mac(Buffer.from(text), MAC_BYTES)
}

export function isSealedHeader(header: Header, mac: Mac): boolean {
  return isEqualDigest(fromBase64(header.mac), digestHeader(header, mac))
}

export function sealHeader(primitives: Primitives, header: Omit<Header, 'mac'>, root: Uint8Array): Header {
  return { ...header, mac: toBase64(digestHeader(header, headerMac(primitives, root))) }
}

export function checkSlotCount(count: number): void {
  if (count <= MAX_SLOTS) return
  throw conflict(`A vault has at most ${MAX_SLOTS} key slots. Remove one: coffer vault keys remove SLOT`)
}

export function parseSlots(slots: readonly unknown[]): Slot[] {
  if (slots.length <= MAX_SLOTS && slots.every(isSlot)) return [...slots]
  throw damaged('vault.json holds a key slot that Coffer did not write. Run: coffer vault verify')
}

export function describeSlots({ slots }: Pick<Header, 'slots'>): Pick<Slot, 'id' | 'kind' | 'created'>[] {
  return parseSlots(slots).map(({ id, kind, created }) => ({ id, kind, created }))
}

function isSlot(value: unknown): value is Slot {
  const slot = value as Slot | null
  if (typeof slot !== 'object' || slot === null) return false
  if (![slot.id, slot.created, slot.wrapped].every((text) => typeof text === 'string')) return false
  return slot.kind === 'key-file'
    ? slot.kdf === undefined
    : slot.kind === 'passphrase' && isBoundedCost(slot.kdf)
}

function isBoundedCost(kdf: Slot['kdf'] | null): boolean {
  if (typeof kdf !== 'object' || kdf === null || typeof kdf.salt !== 'string') return false
  const { n, r, p } = kdf
  if (![n, r, p].every((value) => Number.isSafeInteger(value) && value > 0)) return false
  if (n < MIN_N || (n & (n - 1)) !== 0) return false
  // RFC 7914, section 2: n must be less than 2^(16·r). The other checks of this file already enforce this limit, except
  // for r = 1.
  if (r === 1 && n >= 2 ** 16) return false
  return 128 * n * r <= MAX_MEMORY_BYTES && p <= MAX_P
}

/** The fields have a fixed order, because they are authenticated as JSON. */
function slotFields({ id, kind, created, kdf, wrapped }: BareSlot & { wrapped?: string }): unknown[] {
  const cost = kdf === undefined ? null : [kdf.n, kdf.r, kdf.p, kdf.salt]
  return [id, kind, created, cost, ...(wrapped === undefined ? [] : [wrapped])]
}

function slotText({ id, kind, created, kdf }: BareSlot): Uint8Array {
  const fields = slotFields({ id, kind, created, ...(kdf && { kdf }) })
  return Buffer.from(JSON.stringify(['coffer/1/slot', ...fields]))
}

async function deriveSlotKey(primitives: Primitives, { kdf }: BareSlot, secret: Secret) {
  // With a key file, the slot key is derived from the vault id in the key file, and not from the id in the header.
  // Therefore the slot still opens if somebody has changed the vault id in the header. Then the MAC of the header does
  // not match, and Coffer reports damage.
  if (secret.kind === 'key-file')
    return deriveKey(primitives, secret.file.key, `key-file/${secret.file.vault}`)
  const { n, r, p, salt } = kdf!
  const passphrase = secret.passphrase.normalize('NFKC')
  const options = { N: n, r, p, maxmem: 256 * n * r }
  try {
    return new Uint8Array(await scryptKey(passphrase, fromBase64(salt), 32, options))
  } catch (cause) {
    throw locked('No key could be derived from the passphrase. Check whether enough memory is free.', cause)
  }
}

function refuseSecret(header: Header, secret: Secret): CofferError {
  if (secret.kind === 'passphrase') return locked('Wrong passphrase.')
  if (secret.file.vault !== header.vault)
    return locked(`This key file is for vault ${secret.file.vault}, not for ${header.vault}.`)
  return damaged(
    'This key file was made for this vault, but no key slot opens with it: its slot was removed, or vault.json is ' +
      'damaged. Use another key, or restore a backup.',
  )
}

const MARK = 'coffer-key-1'

export interface FileKey {
  vault: string
  key: Uint8Array
}

export function formatKeyFile({ vault, key }: FileKey): string {
  return `${MARK} ${vault} ${toBase64(key)}\n`
}

export function refuseKeyFile(what: string): CofferError {
  return locked(
    `${what} is not a key file. A key file is one line of text that starts with ${MARK}. \`coffer init\` creates one. To ` +
      'add a key file to a vault: coffer vault keys add --new-key-file FILE',
  )
}

export function parseKeyFile(text: string): FileKey {
  const [mark, vault, encoded, ...rest] = text.trim().split(' ')
  const key = Buffer.from(encoded ?? '', 'base64')
  const isWhole = mark === MARK && vault !== undefined && rest.length === 0 && key.length === KEY_BYTES
  if (!isWhole || key.toString('base64') !== encoded) throw refuseKeyFile('This')
  return { vault, key: new Uint8Array(key) }
}
