/** The effects that operations are given: storage, randomness, mail, reactors, keyed hashes. `vault/app.ts` brings them. */
import type { RandomSource } from '../crypto/ports.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { Store, StoreReader } from '../storage/store.js'
import type { KnownCallers } from './known-callers.js'
import type { Post } from './mail-port.js'
import type { AnyOperation } from './operation.js'
import type { FindReactors } from './reactor-runtime.js'
import type { OpenVault } from './vault-port.js'

export interface Host extends OpenVault {
  readonly store: Store
  readonly random: RandomSource
  readonly post: Post
  createUuid(): string
  expressions(): Promise<Expressions>
  /** What runs people's code; started when first asked for. */
  readonly reactors: FindReactors
  /** Keyed hash of an API key or a link's secret, hexadecimal; the key of the hash is read where it is not known yet. */
  hashSecret(text: string, reader: StoreReader): Promise<string>
  /** Compares two such hashes in constant time. */
  isEqualSecret(a: string, b: string): boolean
  /** Whose key was checked already. */
  readonly callers: KnownCallers
  /** Throws CofferError `validation` when `input` does not fit the operation's schema. */
  validate(definition: AnyOperation, input: Record<string, unknown>): void
}
