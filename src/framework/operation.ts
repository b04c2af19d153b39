/** The declaration of an operation, from which everything else is derived; `perform` runs it. */
import type { RandomSource, Signer } from '../crypto/ports.js'
import type { Permission, Transform } from '../domain/access/permissions.js'
import type { Awaitable } from '../domain/awaitable.js'
import type { Turns } from '../domain/expression/budget.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { Lenient } from '../domain/omit-undefined.js'
import type { CodeAnswer, HeaderMap } from '../domain/proxy/code-answer.js'
import type { EntityType } from '../domain/records/log-record.js'
import type { LogRecord, TenantRecord } from '../domain/records/records.js'
import type { WebhookEvent } from '../domain/webhook/events.js'
import type { Problem } from '../errors.js'
import type { Durability, Store, StoreReader, StoreWriter } from '../storage/store.js'
import type { Caller, CallerCache } from './caller/caller.js'
import type { ResponseLimits } from './limits.js'
import type { Background, Claims } from './ports/background.js'
import type { ControlPlane } from './ports/control.js'
import type { DeliveryPort, Waiting } from './ports/deliveries.js'
import type { Outbound, OutboundAnswer, RelayRequest } from './ports/outbound.js'
import type { FindReactors, ReactorRuntime } from './ports/reactors.js'
import type { OfflineVault, OpenVault } from './ports/vault.js'
import { type Answer, type Infer, inputSchema, type ObjectSchema, type Schema } from './schema.js'

export interface Effects {
  readonly random: RandomSource
  readonly deliveries: DeliveryPort
  /** Runs reactor code; starts with the first call. */
  readonly reactors: FindReactors
  readonly background: Background
  readonly claims: Claims
  createUuid(): string
  expressions(): Promise<Expressions>
  readonly turns: Turns
  /** Sends requests to other servers; starts with the first call. */
  outbound(): Promise<Outbound>
  /** Compares two results of `hashSecret` in constant time. */
  isEqualSecret(a: string, b: string): boolean
}

export interface Audit {
  /**
   * Logs in the same unit of work. `entry`: default the operation's `log`; null: nothing is logged. `transform`: how a
   * token's data was shown or used. `about`: attributes of the entity, so that an event that tells no others does not
   * have to read it.
   */
  record(
    entityType: EntityType,
    entityId: string,
    entry?: LogEntry | null,
    transform?: Transform,
    about?: object,
  ): void
  /** Sends webhooks an event that is not derived from what is recorded. */
  emit(event: WebhookEvent): void
}

/** Tools of a handler within one unit of work. The engine may run the unit again. */
export interface Context
  extends Pick<Effects, 'random' | 'createUuid' | 'expressions' | 'turns' | 'isEqualSecret'> {
  readonly store: StoreWriter
  readonly caller: Caller
  /** ms since the epoch, constant within the unit of work. */
  readonly now: number
  readonly date: string
  /** Keyed hash of an API key or of a link's secret, hexadecimal. */
  hashSecret(text: string): Promise<string>
  /** These tools for another caller. `log` replaces the default log entry, null disables logging; `recorded` collects the entries (default: the unit's). */
  as(caller: Caller, log?: LogEntry | null, recorded?: AuditEntry[]): Context
  tenant(): Promise<TenantRecord>
  /** @throws CofferError `forbidden` for a caller that is not the owner */
  vault(): OpenVault
  readonly audit: Audit
  /** Has what the unit stored sent, after its commit. */
  enqueue(waiting: readonly Waiting[]): void
}

export type OperationInput = Record<string, unknown>

export interface LogEntry extends Pick<LogRecord, 'operation' | 'message'> {
  /** The handler may send one with `audit.emit`. */
  readonly derivesNoEvent?: true
}

export interface AuditEntry {
  readonly type: EntityType
  readonly id: string
  readonly as?: LogEntry | undefined
  readonly transform?: Transform | undefined
  readonly about?: object | undefined
  readonly event?: WebhookEvent
  readonly actor: Caller['actor']
}

type Call = [caller: Caller, definition: AnyOperation, input: OperationInput]

/** Tools of a handler of several units of work, for example one that waits for something slow in between. */
export interface Session extends Omit<Effects, 'random' | 'isEqualSecret'> {
  readonly caller: Caller
  readonly traceId: string
  readonly limits: ResponseLimits
  /** Runs `work` as a unit of work with log records. Durability `soon`: synced a moment after it resolves, for reads. */
  inUnit<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /** Like `inUnit`; its result is the answer, which is stored in it if there is an idempotency key. */
  conclude<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  vault: Context['vault']
  /** Checks the input of another operation. The returned function runs it as `caller`. @throws CofferError as `perform` */
  prepare(...call: Call): Promise<(context: Context) => Promise<unknown>>
  /** @throws CofferError `forbidden` for a caller that is not the owner, `not_found` without a control plane */
  control(): ControlPlane
  perform(...call: [...Call, limits?: ResponseLimits]): Promise<unknown>
}

/** Tools of a handler that needs exclusive access to the vault, or no vault. It always runs for the owner. */
export interface OfflineSession {
  readonly vault: OfflineVault
  /** The reactor runtime with the settings of a new vault; the same at every call. */
  reactors(): Promise<ReactorRuntime>
  notice(text: string): Promise<void>
  ask(definition: AnyOperation): Promise<unknown>
}

export interface Relay {
  readonly path: string
  readonly methods: readonly string[]
  /** The caller of a request that needs no API key; undefined for one that does. */
  admit(host: Pick<Host, 'store' | 'hashSecret'>, request: RelayRequest): Promise<Caller | undefined>
  run(session: Session, request: RelayRequest): Promise<OutboundAnswer>
  /** The body of an error of ours, so that it cannot be taken for one of the other server. */
  describeError(problem: Problem): object
}

/** Tools of `check`. They read nothing that is stored. */
export interface CheckTools extends Pick<Effects, 'expressions' | 'turns'> {
  /** ms since the epoch. */
  now(): Promise<number>
}

type Result<O> = Answer<O> | Existing<Answer<O>> | HttpAnswer

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
  readonly summary: string
  readonly details?: string
  /** `owner`: only the vault's owner. `command`: callers with the permissions, but not over HTTP. Absent: also over HTTP. */
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
  /** An older path, of the same method and without parameters, that answers the same. */
  readonly alsoAt?: string
  /** `METHOD /path` below {@link CONTROL_PATH}, for the key of the control plane; with audience `owner`. */
  readonly control?: string
  /** Takes requests of any form over HTTP, without a route: bodies as bytes, answers as they come. */
  readonly relay?: Relay
  /** 201 for an operation that creates; by default 200, or 204 without an output. Only with a route. */
  readonly success?: 200 | 201 | 202
  /** Properties that are positional arguments, in order: with a route after those of its path, and flags as well. */
  readonly positionals?: readonly string[]
  /** With `flag`, the command of another operation performs this one. That command has the flags of both. */
  readonly form?: { readonly command: string; readonly flag: string }
  /** No command and no help: performed by other parts of the program only. Requires an audience. */
  readonly isInternal?: true
  readonly input: I
  /** The schema of the answer; absent without one. For a list, made by `listOutput`. */
  readonly output?: O
  /** The operation runs again for a repeated idempotency key, although its method is POST, PUT or PATCH. */
  readonly ignoresIdempotencyKey?: true
  /** The property that is the whole body, for a body that may be any JSON. */
  readonly wholeBody?: string
  /** The property that gets the body as sent. In the input, parameters of the path replace properties with their names. */
  readonly sentBody?: string
  /** The content type of the body, if not `application/json`. */
  readonly contentType?: string
  readonly alsoContentType?: string
  readonly columns?: readonly string[]
  /** Command lines, each of which succeeds in the vault of `coffer serve --demo`. */
  readonly examples: readonly string[]
  /** Its command has `--explain`, which says how the access rules decide. */
  readonly isExplainable?: true
  /** It may return {@link Existing} instead of creating. */
  readonly mayAnswerExisting?: true
  /** It may return {@link HttpAnswer}. */
  readonly mayAnswerHttp?: true
  /** The answer contains data of tokens. The owner sees it masked: a write always, a read without `--reveal`. */
  readonly isRevealable?: true
  /** The question that its command asks first, if it destroys something: the ids follow, then "Go on?". Without an output the command says "Deleted.". */
  readonly confirmation?: string
  /** In no-reveal mode it is refused: it gives data, or keys, or decides what code does with data. */
  readonly noReveal?: 'refused'
  /** The entry for each entity that the handler gives to `audit.record`; with audience `owner` also one for the tenant. */
  readonly log?: LogEntry
  /** Validates what a schema cannot express, without stored data; `input` lacks properties with errors. @throws CofferError `validation` */
  check?(input: Lenient<Infer<I>>, tools: CheckTools): Checked | Promise<Checked>
  run?(context: Context, input: Infer<I>, checked: Checked): Awaitable<Result<O>>
  /** Instead of `run`: takes several units of work. */
  runDetached?(session: Session, input: Infer<I>, checked: Checked): Promise<Answer<O> | HttpAnswer>
  /** Runs in the owner's process without an open vault. Beside another handler: if the vault is too damaged to open. */
  runOffline?(session: OfflineSession, input: Infer<I>): Promise<Answer<O>>
}

export interface Outcome<Result = unknown> {
  /** The HTTP status: the operation's own, 200 for {@link Existing}, or that of {@link HttpAnswer}. */
  status: number
  result: Result
  headers?: HeaderMap
  /** It is the answer kept for the idempotency key; nothing was run. */
  isReplayed?: true
}

/** An HTTP answer that code or another server made: its status, headers and body are the answer itself. */
export class HttpAnswer {
  readonly answer: CodeAnswer
  constructor(answer: CodeAnswer) {
    this.answer = answer
  }
}

/** The result; for an {@link HttpAnswer} also its status and headers, as reactor code returns them. */
export function resultOf({ status, headers, result }: Outcome): unknown {
  return headers === undefined ? result : { res: { statusCode: status, headers, body: result } }
}

/** An answer that is an existing entity instead of a created one: status 200 instead of 201. */
export class Existing<T> {
  readonly result: T
  constructor(result: T) {
    this.result = result
  }
}

const nothing = inputSchema([], {})

/** Without `input` it takes nothing. */
export function operation<
  const Name extends string,
  const I extends ObjectSchema = typeof nothing,
  const O extends Schema | undefined = undefined,
  Checked = unknown,
  const Route extends string | undefined = undefined,
>(definition: Omit<Operation<I, O, Checked, Name, Route>, 'input'> & { readonly input?: I }) {
  const input = definition.route === undefined ? { ...nothing, additionalProperties: false } : nothing
  return { input, ...definition } as Operation<I, O, Checked, Name, Route>
}

/** The declaration shared by operations of the owner on the whole vault. */
export const onVault = { audience: 'owner', scope: 'vault' } as const

// biome-ignore lint/suspicious/noExplicitAny: handlers differ in what they take; only `perform` calls one, after validating.
export type AnyOperation = Operation<any, Schema | undefined, any>

export function successOf({ success, output }: AnyOperation): number {
  return success ?? (output === undefined ? 204 : 200)
}

/** The name under which an error of the key itself is listed. */
export const IDEMPOTENCY_KEY = 'idempotency_key'
export const MAX_KEY_CHARACTERS = 255

export function takesIdempotencyKey({ route = '', ignoresIdempotencyKey }: AnyOperation): boolean {
  return /^(?:POST|PUT|PATCH) /.test(route) && ignoresIdempotencyKey !== true
}

export interface Host extends OpenVault, Effects {
  readonly store: Store
  /** How often the data was replaced by a reset or restore. Work that began before such a change is refused after it. */
  generation: number
  control?: ControlPlane
  /** The ports that servers of this vault listen on in this process. */
  readonly ownPorts: Set<number>
  /** Signs what is sent to webhooks. */
  signer(): Promise<Signer>
  /** Keyed hash of an API key or of a link's secret, hexadecimal. Reads the key of the hash from the vault once. */
  hashSecret(text: string, reader: StoreReader): Promise<string>
  readonly callers: CallerCache
  validate(definition: AnyOperation, input: Record<string, unknown>): void
}
