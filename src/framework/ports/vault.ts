import type { Awaitable } from '../../domain/awaitable.js'
import type { TenantKeyBytes } from '../../domain/records/records.js'
import type { Store } from '../../storage/store.js'
import { arrayOf, type Closed, count, date, enumOf, object, text, texts } from '../output.js'
import type { Infer } from '../schema.js'
import type { Sandbox } from './reactors.js'

export const slotOutput = object({ id: text, kind: enumOf('key-file', 'passphrase'), created: date })
export type SlotFacts = Infer<typeof slotOutput>

export const vaultFacts = {
  vault: text,
  format: count,
  created: date,
  key_slots: arrayOf(slotOutput),
  storage: object({
    records: count,
    logs: count,
    dead: count,
    segments: count,
    journal_bytes: count,
    segment_bytes: count,
  }),
} as const

export const findings = arrayOf(object({ place: text, problem: text }))

export const verification = {
  findings,
  readable: object({ records: count, logs: count }),
  segments: count,
  'set_aside?': texts,
} as const
export type Verification = Infer<Closed<typeof verification>>

export type VaultHeader = object & { mac: string }

export interface VaultMaintenance {
  describe(): Promise<Infer<Closed<typeof vaultFacts>>>
  verify(): Promise<Verification>
  compact(): Promise<void>
  /** Writes the vault into one new sealed file. Returns the length of the file in bytes. */
  backup(path: string): Promise<number>
  /** @throws CofferError `conflict` if the `mac` of the current header differs from `replaces` */
  replaceHeader(header: VaultHeader, replaces: string): Promise<void>
  /** Stops backups in progress. A stopped backup leaves no file. */
  close(): Promise<void>
}

export interface OpenVault {
  readonly store: Pick<Store, 'verifyLogs'>
  maintenance(): VaultMaintenance
  generateTenantKeys(): TenantKeyBytes
  /**
   * Checks whether this vault may have an API key that a user has chosen, because other people may know the key.
   * @throws CofferError `unprocessable` if the vault is stored. Without --test-keys, also if other machines can reach
   * the vault, or if the key does not have the form of a generated key
   */
  admitChosenKey(key: string): void
  /**
   * Checks whether this vault may have a proxy that needs no API key and has a chosen key. Other people may know this
   * key.
   * @throws CofferError `unprocessable` if the vault is stored. Without --test-keys, also if other machines can reach
   * the vault
   */
  admitChosenProxyKey(): void
  sandbox(): Promise<Sandbox>
  /**
   * Returns an address that permits one sign-in to the dashboard within two minutes. Only a server with the dashboard
   * sets this function.
   */
  readonly createPageUrl: (() => string) | undefined
  /**
   * Purges at most 2,000 expired records, and returns how many. With `ms`, stops after about this time. If fewer than
   * 2,000 records were purged, also removes sets of containers that no token has any more.
   */
  sweep(ms?: number): Promise<number>
  /** Removes every set of containers without tokens, until `isOver` returns true. */
  examineContainers(isOver?: () => boolean): Promise<void>
}

/** The process that has a vault open. `state` is `unknown` if the process runs on another machine. */
export const holderOutput = object({
  pid: count,
  host: text,
  since: date,
  state: enumOf('alive', 'dead', 'unknown'),
})
export type Holder = Infer<typeof holderOutput>

export type CopyDamage = Required<Pick<Infer<typeof copiedOutput>, 'findings' | 'skipped' | 'lost_tenants'>>

/** `file`: the path of the new key file, or of a file with the new passphrase. */
export interface NewSlot {
  kind: SlotFacts['kind']
  file?: string | undefined
}

/** Returns the ids of the slots to keep. `openedBy`: the slot that opened the vault. The function may ask a person. */
export type ChooseSlots = (slots: readonly SlotFacts[], openedBy: string) => Awaitable<readonly string[]>

const place = { 'directory?': text, 'store?': text } as const
export const restoredOutput = object({ ...place, restored_from: text })
export const copiedOutput = object({
  ...place,
  copied_from: text,
  rows: count,
  digest: text,
  'findings?': findings,
  'skipped?': { type: 'object', additionalProperties: count },
  /** The tenants whose keys are lost. `skipped` includes the rows of these tenants. */
  'lost_tenants?': arrayOf(object({ tenant: count, rows: count })),
})
export const rekeyedOutput = object({ ...place, resealed: count, dropped_slots: texts })
type Rekeyed = Omit<Infer<typeof rekeyedOutput>, 'dropped_slots'>

export interface OfflineVault {
  verify(): Promise<Verification>
  restore(file: string): Promise<Infer<typeof restoredOutput>>
  /** `to`: a directory, or the address of a store. With `skipsDamaged`, copies everything that can be read. */
  copy(
    to: string,
    options: { passwordFile: string | undefined; skipsDamaged: boolean },
  ): Promise<Infer<typeof copiedOutput>>
  rekey(): Promise<Rekeyed & { dropped: { id: string; kind: string }[] }>
  listSlots(): Promise<SlotFacts[]>
  /**
   * Possible while a server runs, because only the header and a log record are written.
   * @throws CofferError `conflict`
   */
  changeSlots(added: NewSlot | undefined, choose: ChooseSlots): Promise<SlotFacts[]>
}
