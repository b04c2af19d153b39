import type { Store, StoreReader } from '../storage/store.js'
import type { CallerCache } from './caller/caller.js'
import type { ContainerSets } from './container-sets.js'
import type { Effects } from './context.js'
import type { AnyDeclaration } from './declaration.js'
import type { ControlPlane } from './ports/control.js'
import type { LogSinkPort } from './ports/log-sink.js'
import type { OpenVault } from './ports/vault.js'

export interface Host extends OpenVault, Effects {
  readonly store: Store
  /** A reset or restore replaces the data and increments this number. Work with an earlier number is refused. */
  readonly generation: number
  readonly control: ControlPlane | undefined
  readonly ownPorts: Set<number>
  /** Returns a keyed hash, in hexadecimal, of an API key or of the secret of a link. */
  hashSecret(text: string, reader: StoreReader): Promise<string>
  /** Whether the server accepts API keys that a user has chosen (`serve --test-keys`). */
  readonly acceptsTestKeys?: boolean
  /** Receives the audit log (`serve --log-sink`). */
  readonly logSink?: LogSinkPort | undefined
  readonly callers: CallerCache
  readonly containerSets: ContainerSets
  validate(definition: AnyDeclaration, input: Record<string, unknown>): void
}
