/**
 * The ports through which the owner's operations reach the vault as a whole: {@link OpenVault} while it is open,
 * {@link OfflineVault} where an operation needs exclusive access to it, or works before it can be opened.
 */
import type { TenantKeyBytes } from '../domain/records.js'
import type { Store } from '../storage/store.js'
import type { Sandbox } from './reactor-runtime.js'

/** A key slot without what it holds. */
export interface SlotFacts {
  id: string
  kind: 'key-file' | 'passphrase'
  created: string
}

export interface VaultFacts {
  vault: string
  format: number
  created: string
  key_slots: SlotFacts[]
  storage: {
    /** Live rows, and dead rows that compaction has still to remove. */
    records: number
    logs: number
    dead: number
    segments: number
    journal_bytes: number
    segment_bytes: number
  }
}

/** What verifying every byte of a vault found. */
export interface Verification {
  findings: { place: string; problem: string }[]
  readable: { records: number; logs: number }
  segments: number
  /** Rows dated later than the clock; absent where there are none. */
  dated_ahead?: { records: number; logs: number; newest: string }
  /** Write-ahead logs that were set aside; absent where there are none. */
  set_aside?: string[]
}

/** The header of a vault as its file has it; `mac` authenticates the rest. */
export type VaultHeader = object & { mac: string }

/** What can be done to an open vault on disk. */
export interface VaultMaintenance {
  describe(): Promise<VaultFacts>
  /** Reads every byte that the vault relies on. */
  verify(): Promise<Verification>
  /** Flushes and compacts until nothing is due. */
  compact(): Promise<void>
  /** Writes everything into one new sealed file and gives its length in bytes. */
  backup(path: string): Promise<number>
  readHeader(): VaultHeader
  /** @throws CofferError `conflict` when the present header is not the one whose `mac` is `replaces`. */
  replaceHeader(header: VaultHeader, replaces: string): Promise<void>
}

/** What the owner of an open vault may do that no record stands for. */
export interface OpenVault {
  readonly store: Pick<Store, 'verifyLogs'>
  /** @throws CofferError `unprocessable` for a vault in memory */
  maintenance(): VaultMaintenance
  generateTenantKeys(): TenantKeyBytes
  /** The confinement of reactor code on this machine. */
  sandbox(): Promise<Sandbox>
  /** Removes expired tokens from the disk, some thousands at most; gives their number. */
  sweep(): Promise<number>
}

/** Who has a vault open; `state` is `unknown` for a process of another machine. */
export interface Holder {
  pid: number
  host: string
  since: string
  state: 'alive' | 'dead' | 'unknown'
}

/** What became of a salvage; none of it holds data. */
export interface SalvageReport {
  findings: Verification['findings']
  /** Rows by kind. */
  salvaged: Record<string, number>
  /** Rows that could not be read, by kind. */
  missing: Record<string, number>
}

/** How a new key slot is opened: `file` names where the new key file goes, or holds the new passphrase. */
export interface NewSlot {
  kind: SlotFacts['kind']
  file?: string | undefined
}

/** Given the slots and the id of the one that was opened: the ids of those to keep. */
export type ChooseSlots = (slots: readonly SlotFacts[], openedBy: string) => readonly string[]

/** The vault of this run and the secret that opens it. */
export interface OfflineVault {
  /** undefined when no process has the vault open. Reads nothing but the lock. */
  holder(): Holder | undefined
  /** @throws CofferError when not even the header opens */
  verify(): Promise<Verification>
  /** Makes a vault, where there is none, of the backup in `file`. */
  restore(file: string): Promise<{ directory: string; restored_from: string }>
  /** Makes a vault, where there is none, of what can be read of the damaged one in `source`, which stays as it is. */
  salvage(source: string): Promise<SalvageReport & { directory: string; salvaged_from: string }>
  /** Changes every key of the vault. Interrupted, it goes on when it is called again. */
  rekey(): Promise<{ directory: string; resealed: number; dropped: { id: string; kind: string }[] }>
  /** OperationRequest of whoever has the vault open, else read from its header. */
  listSlots(): Promise<SlotFacts[]>
  /**
   * Keeps the slots that `choose` names and adds `added`. Nothing but the header is written; works while a server runs.
   * @throws CofferError `conflict` when the slots were changed meanwhile, or none would be left
   */
  changeSlots(added: NewSlot | undefined, choose: ChooseSlots): Promise<SlotFacts[]>
}
