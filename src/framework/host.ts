/** What operations run on: a vault, and the effects of its process. `vault/app.ts` implements it. */
import type { Store, StoreReader } from '../storage/store.js'
import type { CallerCache } from './caller/cached-caller.js'
import type { Caller } from './caller/caller.js'
import type { AnyOperation, Effects } from './operation.js'
import type { ControlPlane } from './ports/control.js'
import type { OpenVault } from './ports/vault.js'

export interface Host extends OpenVault, Effects {
  readonly store: Store
  /** How often the data was replaced by a reset or restore. Work that began before such a change is refused after it. */
  generation: number
  /** Absent without one. */
  control?: ControlPlane
  /** The ports that servers of this vault listen on in this process. */
  readonly ownPorts: Set<number>
  /** Keyed hash of an API key or of a link's secret, hexadecimal. Reads the key of the hash from the vault once. */
  hashSecret(text: string, reader: StoreReader): Promise<string>
  readonly callers: CallerCache<Caller>
  /** Throws CofferError `validation` when `input` does not fit the operation's schema. */
  validate(definition: AnyOperation, input: Record<string, unknown>): void
}
