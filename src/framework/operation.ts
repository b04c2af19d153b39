/**
 * The declaration of an operation, from which the command, the route, the permission check, the validation, the help
 * and the log record are derived. `perform` runs it.
 */
import type { RandomSource } from '../crypto/ports.js'
import type { Permission, Transform } from '../domain/access/permissions.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { Lenient } from '../domain/omit-undefined.js'
import type { EntityType } from '../domain/records/entity-types.js'
import type { LogRecord, TenantRecord } from '../domain/records/records.js'
import type { Turns } from '../domain/turns.js'
import type { Problem } from '../errors.js'
import type { Durability, Store, StoreReader, StoreWriter } from '../storage/store.js'
import type { Caller } from './caller/caller.js'
import type { Existing, HttpAnswer } from './outcome.js'
import type { Background } from './ports/background.js'
import type { Claims } from './ports/claims.js'
import type { ControlPlane } from './ports/control.js'
import type { MailPort } from './ports/mail.js'
import type { Outbound, OutboundAnswer } from './ports/outbound.js'
import type { FindReactors, ReactorRuntime } from './ports/reactors.js'
import type { OfflineVault, OpenVault } from './ports/vault.js'
import type { Recipient } from './recipient.js'
import type { RelayRequest } from './relay.js'
import { type Answer, closedInput, type Infer, type ObjectSchema, type Schema } from './schema.js'

/** The effects of a vault's process, beside its store. */
export interface Effects {
  readonly random: RandomSource
  /** Sends mail, after the unit that wrote it is committed. */
  readonly mail: MailPort
  /** Runs reactor code; starts with the first call. */
  readonly reactors: FindReactors
  readonly background: Background
  /** What runs now: requests with an idempotency key, and runs in the background. */
  readonly claims: Claims
  createUuid(): string
  /** The expression language, loaded on first use. */
  expressions(): Promise<Expressions>
  readonly turns: Turns
  /** Sends requests to other servers; starts with the first call. */
  outbound(): Promise<Outbound>
  /** Compares two results of `hashSecret` in constant time. */
  isEqualSecret(a: string, b: string): boolean
}

export interface Audit {
  /**
   * Has `perform` write a log record for this entity in the same transaction; with null for `as` none. `containers`: of
   * a token, where they are known. `transform`: how a token's data was shown, or used.
   */
  record(
    entityType: EntityType,
    entityId: string,
    as?: LogEntry | null,
    containers?: readonly string[],
    transform?: Transform,
  ): void
}

/** What a handler can use, within one unit of work. The engine may run the unit again. */
export interface Context
  extends Pick<Effects, 'random' | 'createUuid' | 'expressions' | 'turns' | 'isEqualSecret'> {
  readonly store: StoreWriter
  readonly caller: Caller
  /** ms since the epoch, constant within the unit of work. */
  readonly now: number
  /** `now` as the API formats it. */
  readonly date: string
  /** Keyed hash of an API key or of a link's secret, hexadecimal. */
  hashSecret(text: string): Promise<string>
  /** The same unit of work for another caller, whose records are logged as `log` unless told otherwise. */
  as(caller: Caller, log: LogEntry | undefined): Context
  tenant(): Promise<TenantRecord>
  /** @throws CofferError `forbidden` for a caller that is not the owner */
  vault(): OpenVault
  readonly audit: Audit
}

/** Path, query and body of a request as one object, before it is checked. */
export type OperationInput = Record<string, unknown>

export type LogEntry = Pick<LogRecord, 'operation' | 'message'>

export interface AuditEntry {
  readonly type: EntityType
  readonly id: string
  /** Absent for operations that are not logged. */
  readonly as?: LogEntry | undefined
  readonly containers?: readonly string[] | undefined
  readonly transform?: Transform | undefined
  /** If not the caller of the operation. */
  readonly actor?: Caller['actor']
}

/** What a handler of several transactions can use, for example one that waits for something slow in between. */
export interface Session extends Omit<Effects, 'random' | 'isEqualSecret'> {
  readonly caller: Caller
  readonly traceId: string
  readonly recipient: Recipient
  /** Runs `work` as a transaction with log records. Durability `soon`: synced a moment after it resolves, for reads. */
  inUnit<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * The same, for the unit whose result is the answer of the operation: an answer that is kept for an idempotency key
   * is kept in it. Without such a unit it is kept in one of its own, after the operation.
   */
  conclude<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  vault: Context['vault']
  /** Checks another operation's input; what it gives runs it as `caller` in a unit. @throws CofferError as `perform` */
  prepare(
    caller: Caller,
    definition: AnyOperation,
    input: OperationInput,
  ): Promise<(context: Context) => Promise<unknown>>
  /** @throws CofferError `forbidden` for a caller that is not the owner, `not_found` without a control plane */
  control(): ControlPlane
  /** Performs another operation as `caller`. */
  perform(
    caller: Caller,
    definition: AnyOperation,
    input: OperationInput,
    recipient?: Recipient,
  ): Promise<unknown>
}

/** What a handler can use that needs exclusive access to the vault, or no vault. It always runs for the owner. */
export interface OfflineSession {
  readonly vault: OfflineVault
  /** The reactor runtime with the settings of a new vault; the same at every call. */
  reactors(): Promise<ReactorRuntime>
  /** Displays a message that is not part of the answer. */
  notice(text: string): Promise<void>
  /** Opens the vault and performs another operation as the owner. */
  ask(definition: AnyOperation): Promise<unknown>
}

/** Takes requests of any form: each of the methods, on the path and all below it. */
export interface Relay {
  readonly path: string
  readonly methods: readonly string[]
  /** The caller of a request that needs no API key; undefined for one that does. */
  admit(
    store: Pick<Store, 'read'>,
    hashSecret: (text: string, reader: StoreReader) => Promise<string>,
    request: RelayRequest,
  ): Promise<Caller | undefined>
  run(session: Session, request: RelayRequest): Promise<OutboundAnswer>
  /** The body of an error of ours, so that it cannot be taken for one of the other server. */
  describeError(problem: Problem): object
}

/** What `check` can use: nothing that is stored. */
export interface CheckTools extends Pick<Effects, 'expressions' | 'turns'> {
  /** ms since the epoch. */
  now(): Promise<number>
}

/** The path below which the control plane is. */
export const CONTROL_PATH = '/_coffer'

export interface Operation<
  I extends ObjectSchema = ObjectSchema,
  O extends Schema | undefined = Schema | undefined,
  Checked = unknown,
  Name extends string = string,
  Route extends string | undefined = string | undefined,
> {
  /** `noun verb` or `noun group verb`: the command, the operation's id and its name in logs. */
  readonly name: Name
  /** One sentence for lists of commands and routes. */
  readonly summary: string
  /** Further paragraphs of the help and the API reference. */
  readonly details?: string
  /** `owner`: only that of the vault. `command`: who has the permissions, but not over HTTP. Absent: also over HTTP. */
  readonly audience?: 'owner' | 'command'
  /** `vault`: concerns the whole vault, and works when the tenant that the owner chose is deleted. */
  readonly scope?: 'vault'
  /** All of them are required; an empty list accepts any valid key. Absent for audience `owner`. */
  readonly permissions?: readonly Permission[]
  /** One of `permissions` is enough. */
  readonly needsOnePermission?: true
  /** Only keys of applications of this type are accepted, and no sessions. */
  readonly onlyFor?: 'public' | 'private'
  /** `METHOD /path/{parameter}`; required without an audience, refused with one. */
  readonly route?: Route
  /** `METHOD /path` below {@link CONTROL_PATH}, for the key of the control plane; with audience `owner`. */
  readonly control?: string
  /** Takes requests of any form over HTTP, without a route: bodies as bytes, answers as they come. */
  readonly relay?: Relay
  /** 201 for an operation that creates; by default 200, or 204 without an output. Only with a route. */
  readonly success?: 200 | 201 | 202
  /** Properties that are positional arguments, in order: with a route after those of its path, and flags as well. */
  readonly positionals?: readonly string[]
  /** A form of another operation's command, which performs it when given this flag, and has its flags too. */
  readonly form?: { readonly command: string; readonly flag: string }
  /** No command and no help: performed by other parts of the program only. Requires `audience: 'owner'`. */
  readonly isInternal?: true
  /** Path, query and body merged into one object. */
  readonly input: I
  /** The schema of the answer; absent without one. For a list, made by `listOutput`. */
  readonly output?: O
  /** The operation runs again for a repeated idempotency key, although its method is POST, PUT or PATCH. */
  readonly ignoresIdempotencyKey?: true
  /** The property that is the whole body, for a body that may be any JSON. */
  readonly wholeBody?: string
  /** The property that gets the body as it was sent, because those in the path replace its properties of their names. */
  readonly sentBody?: string
  /** The content type of the body, if not `application/json`. */
  readonly contentType?: string
  /** A second content type that the body may have. */
  readonly alsoContentType?: string
  /** Columns of a table on a terminal; by default those of the output's schema. */
  readonly columns?: readonly string[]
  /** Command lines that succeed in a new vault when run in this order. */
  readonly examples: readonly string[]
  /** The command has `--explain`. */
  readonly isExplainable?: true
  /** The handler may return {@link Existing}. */
  readonly mayAnswerExisting?: true
  /** The handler may return {@link HttpAnswer}. */
  readonly mayAnswerHttp?: true
  /** The answer contains data of tokens, which the owner sees masked unless a read has `--reveal`. */
  readonly isRevealable?: true
  /** What is destroyed, for the confirmation prompt; absent without one. */
  readonly destroys?: string
  /** The log record of each entity that `audit.record` names, with audience `owner` also for the tenant. Absent: nothing is logged. */
  readonly log?: LogEntry
  /**
   * Validates what a schema cannot express, without stored data. Its errors and those of the schema are reported
   * together; properties that the schema refused are missing from `input`. The result is passed to `run`.
   * @throws CofferError `validation`
   */
  check?(input: Lenient<Infer<I>>, tools: CheckTools): Checked | Promise<Checked>
  /** Runs in one transaction. */
  run?(
    context: Context,
    input: Infer<I>,
    checked: Checked,
  ): Promise<Answer<O> | Existing<Answer<O>> | HttpAnswer>
  /** Instead of `run`: takes several transactions. */
  runDetached?(session: Session, input: Infer<I>, checked: Checked): Promise<Answer<O> | HttpAnswer>
  /** Runs without an open vault, in the owner's process: instead of both, or when the vault is too damaged to open. */
  runOffline?(session: OfflineSession, input: Infer<I>): Promise<Answer<O>>
}

/** Declares an operation; its handler is typed by its input and output. */
export function operation<
  const I extends ObjectSchema,
  const Name extends string,
  const O extends Schema | undefined = undefined,
  Checked = unknown,
  const Route extends string | undefined = undefined,
>(definition: Operation<I, O, Checked, Name, Route>): Operation<I, O, Checked, Name, Route> {
  return definition
}

/** What operations of the owner on the whole vault declare; most take no input. */
export const onVault = { audience: 'owner', scope: 'vault', input: closedInput([], {}) } as const

// biome-ignore lint/suspicious/noExplicitAny: handlers differ in what they take; only `perform` calls one, after validating.
export type AnyOperation = Operation<any, Schema | undefined, any>

export function successOf({ success, output }: AnyOperation): number {
  return success ?? (output === undefined ? 204 : 200)
}

/** Whether several may share a unit of work: answers would have no bound, and what the owner does is logged for the tenant. */
export function mayShareUnit({ audience, output, run, runOffline }: AnyOperation): boolean {
  return audience !== 'owner' && output === undefined && run !== undefined && runOffline === undefined
}
