/**
 * The effects that operations use: storage, randomness, mail, reactors, keyed hashes. `vault/app.ts` implements them.
 */
import type { RandomSource } from '../crypto/ports.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { Store, StoreReader } from '../storage/store.js'
import type { Background } from './background.js'
import type { Claims } from './claims.js'
import type { ControlPlane } from './control-port.js'
import type { KnownCallers } from './known-callers.js'
import type { Post } from './mail-port.js'
import type { AnyOperation } from './operation.js'
import type { Outbound } from './outbound-port.js'
import type { FindReactors } from './reactor-runtime.js'
import type { OpenVault } from './vault-port.js'

export interface Host extends OpenVault {
  readonly store: Store
  readonly random: RandomSource
  readonly post: Post
  /** Absent without one. */
  control?: ControlPlane
  createUuid(): string
  expressions(): Promise<Expressions>
  /** Runs reactor code; starts with the first call. */
  readonly reactors: FindReactors
  readonly background: Background
  /** Sends requests to other servers; starts with the first call. */
  outbound(): Promise<Outbound>
  /** The ports that servers of this vault listen on in this process. */
  readonly ownPorts: Set<number>
  /** Keyed hash of an API key or of a link's secret, hexadecimal. Reads the key of the hash from the vault once. */
  hashSecret(text: string, reader: StoreReader): Promise<string>
  /** Compares two such hashes in constant time. */
  isEqualSecret(a: string, b: string): boolean
  /** Callers whose API key was verified. */
  readonly callers: KnownCallers
  /** What runs now: requests with an idempotency key, and runs in the background. */
  readonly claims: Claims
  /** Throws CofferError `validation` when `input` does not fit the operation's schema. */
  validate(definition: AnyOperation, input: Record<string, unknown>): void
}
