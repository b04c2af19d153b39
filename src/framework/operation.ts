/**
 * What an operation is: one declaration, from which the command, the route, the permission check, the validation,
 * the help and the log record are derived. Nothing here runs one; that is `perform`.
 */

import type { RandomSource } from '../crypto/ports.js'
import type { EntityType } from '../domain/entity-types.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { Lenient } from '../domain/omit-undefined.js'
import type { Permission } from '../domain/permissions.js'
import type { LogRecord, TenantRecord } from '../domain/records.js'
import type { Durability, StoreWriter } from '../storage/store.js'
import type { Caller } from './caller.js'
import type { Post } from './mail-port.js'
import type { FindReactors, ReactorRuntime } from './reactor-runtime.js'
import type { Recipient } from './recipient.js'
import type { Answer, Infer, ObjectSchema, Schema } from './schema.js'
import type { OfflineVault, OpenVault } from './vault-port.js'

/** Everything a handler can reach. Time and data are those of one run of a unit of work, which may run more than once. */
export interface Context {
  readonly store: StoreWriter
  readonly caller: Caller
  /** ms since the epoch, the same for all of the operation. */
  readonly now: number
  /** The same as the interface writes it. */
  readonly date: string
  readonly random: RandomSource
  createUuid(): string
  /** The expression language; loaded when first asked for. */
  expressions(): Promise<Expressions>
  /** Keyed hash of an API key or a link's secret, hexadecimal. */
  hashSecret(text: string): Promise<string>
  /** Compares two such hashes in constant time. */
  isEqualSecret(a: string, b: string): boolean
  /** The tenant that the caller acts in. */
  tenant(): Promise<TenantRecord>
  /** The vault as a whole. @throws CofferError `forbidden` for a caller that is not its owner */
  vault(): OpenVault
  /** Notes that the operation reached this entity; `perform` writes the records in the same transaction. */
  reached(entityType: EntityType, entityId: string, as?: LogEntry): void
}

/** Path, query and body of a request as one object, before it is checked. */
export type OperationInput = Record<string, unknown>

export type LogEntry = Pick<LogRecord, 'operation' | 'message'>

/**
 * What an operation is given that must not hold the vault while it works, because it waits for something slow. Each
 * `inUnit` is a transaction of its own, log records included.
 */
export interface Session {
  readonly caller: Caller
  readonly traceId: string
  /** Whom the answer is for. */
  readonly recipient: Recipient
  createUuid(): string
  /** Told of mail once the unit that wrote it is committed. */
  readonly post: Post
  /** What runs people's code; started when first asked for. */
  readonly reactors: FindReactors
  /** `soon` for what only notes that something was seen: appended when it resolves, synced a moment later. */
  inUnit<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  vault: Context['vault']
  /** Performs another operation for another caller, as if they had asked. */
  perform(
    caller: Caller,
    definition: AnyOperation,
    input: OperationInput,
    recipient?: Recipient,
  ): Promise<unknown>
}

/**
 * What an operation is given that needs exclusive access to the vault, or no vault at all. The person who holds the
 * secret of the vault is its owner.
 */
export interface OfflineSession {
  readonly vault: OfflineVault
  /** The runtime of reactors as a new vault would have it; one for all that is asked of the session. */
  reactors(): Promise<ReactorRuntime>
  /** Tells the person something that is no part of the answer. */
  notice(text: string): Promise<void>
  /** Performs another operation of the owner on the vault, which can be opened now. */
  ask(definition: AnyOperation): Promise<unknown>
}

/** What judges an input in itself is given, besides the input: nothing that is stored. */
export interface CheckTools {
  /** The expression language; loaded when first asked for. */
  expressions(): Promise<Expressions>
  /** ms since the epoch. */
  now(): Promise<number>
}

/** An answer that names something which existed before: it is 200 where creating would have been 201. */
export class Existing<T> {
  readonly result: T
  constructor(result: T) {
    this.result = result
  }
}

export interface Operation<
  I extends ObjectSchema = ObjectSchema,
  O extends Schema | undefined = Schema | undefined,
  Checked = unknown,
  Name extends string = string,
> {
  /** `noun verb`: the command's words, the operation's id and its name in logs. */
  readonly name: Name
  /** One sentence for lists of commands and routes. */
  readonly summary: string
  /** Further paragraphs of the help and the reference. */
  readonly details?: string
  /**
   * Who may ask: only the owner of the vault, or (`command`) whoever has the permissions, but not over HTTP. Absent:
   * whoever has the permissions, over HTTP too.
   */
  readonly audience?: 'owner' | 'command'
  /** `vault`: it is about the vault as a whole, and works where the tenant that the owner chose is gone. */
  readonly scope?: 'vault'
  /** All of them are needed; none means any valid key. The owner has them all, so what is theirs alone names none. */
  readonly permissions?: readonly Permission[]
  /** `METHOD /path/{parameter}`; only without an audience, and always then. */
  readonly route?: string
  /** Where it creates something; else its success is 200, or 204 without an output. Only with a route. */
  readonly success?: 201
  /** Of an operation without a route: the input properties that its command takes as words, in order. */
  readonly positionals?: readonly string[]
  /** No command and no help: only other parts of the program perform it. Needs `audience: 'owner'`. */
  readonly isInternal?: true
  /** Path, query and body merged into one object. */
  readonly input: I
  /** The schema of the result; absent where there is none. Of a list, made by `listOutput`. */
  readonly output?: O
  /** The property that the whole body is, where the body is no object of properties. */
  readonly wholeBody?: string
  /** What the body must be sent as, where it is not `application/json`. */
  readonly contentType?: string
  /** Columns of a table on a terminal, instead of those of the output's schema. */
  readonly columns?: readonly string[]
  /** Command lines that work as pasted in a fresh vault, after those above them. */
  readonly examples: readonly string[]
  /** `--explain` can say which access rules decide, without performing it. */
  readonly isExplainable?: true
  /** It may answer with {@link Existing}. */
  readonly mayAnswerExisting?: true
  /** The answer holds data of tokens, which the owner sees masked unless they ask a read to reveal it. */
  readonly isRevealable?: true
  /** What is lost for ever, where a person is asked first. */
  readonly destroys?: string
  /**
   * The record written for each entity reached, and for an operation of the owner for the tenant they act in; absent
   * where reading leaves no trace by design.
   */
  readonly log?: LogEntry
  /**
   * Judges what no schema can say but is right or wrong whatever is stored. Its complaints and the schema's are one
   * answer, before anything is looked up; what the schema refused is missing from the input. The result goes to `run`.
   * @throws CofferError `validation`
   */
  check?(input: Lenient<Infer<I>>, tools: CheckTools): Checked | Promise<Checked>
  /** The work, all of it in one transaction. */
  run?(context: Context, input: Infer<I>, checked: Checked): Promise<Answer<O> | Existing<Answer<O>>>
  /** Instead of `run`, for what takes several transactions. */
  runDetached?(session: Session, input: Infer<I>, checked: Checked): Promise<Answer<O>>
  /** Instead of both, or where the vault does not open: without an open vault, in the process of the owner. */
  runOffline?(session: OfflineSession, input: Infer<I>): Promise<Answer<O>>
}

/** A declaration whose handler is typed by its input and output. */
export function operation<
  const I extends ObjectSchema,
  const Name extends string,
  const O extends Schema | undefined = undefined,
  Checked = unknown,
>(definition: Operation<I, O, Checked, Name>): Operation<I, O, Checked, Name> {
  return definition
}

/** Any operation, for what treats them all alike. */
// biome-ignore lint/suspicious/noExplicitAny: handlers differ in what they take; only `perform` calls one, after validating.
export type AnyOperation = Operation<any, Schema | undefined, any>

/** The status of a success. */
export function successOf({ success, output }: AnyOperation): number {
  return success ?? (output === undefined ? 204 : 200)
}
