import type { Signer } from '../crypto/ports.js'
import type { Store, StoreReader } from '../storage/store.js'
import type { CallerCache } from './caller/caller.js'
import type { ContainerSets } from './container-sets.js'
import type { Effects } from './context.js'
import type { AnyDeclaration } from './declaration.js'
import type { ControlPlane } from './ports/control.js'
import type { OpenVault } from './ports/vault.js'

/** An open vault, as `perform` and the HTTP server need it. */
export interface Host extends OpenVault, Effects {
  readonly store: Store
  /** How often the data was replaced by a reset or restore. Work that began before such a change is refused after it. */
  readonly generation: number
  readonly control: ControlPlane | undefined
  /** The ports that servers of this vault listen on in this process. */
  readonly ownPorts: Set<number>
  /** Signs what is sent to webhooks. */
  signer(): Promise<Signer>
  /** Keyed hash of an API key or of a link's secret, hexadecimal. Reads the key of the hash from the vault once. */
  hashSecret(text: string, reader: StoreReader): Promise<string>
  readonly callers: CallerCache
  readonly containerSets: ContainerSets
  validate(definition: AnyDeclaration, input: Record<string, unknown>): void
}
