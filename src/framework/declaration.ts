/**
 * The declaration of an operation. Commands, routes, help and the OpenAPI document are derived from the declaration.
 */
import type { Permission } from '../domain/access/permissions.js'
import type { Turns } from '../domain/expression/budget.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { Lenient } from '../domain/omit-undefined.js'
import type { CodeFault } from '../domain/reactor/code-fault.js'
import type { Build } from '../domain/reactor/state.js'
import type { LogRecord } from '../domain/records/records.js'
import type { Linker } from './ports/linker.js'
import type { Infer, ObjectSchema, Schema } from './schema.js'

export interface Access {
  /**
   * Only the owner may perform the operation. With `vault`, the operation also runs if the chosen tenant is deleted.
   */
  readonly owner?: 'tenant' | 'vault'
  /** If the list is empty and `owner` is absent, any valid key may perform the operation. */
  readonly permissions: readonly Permission[]
  readonly isAnyEnough?: true
  /** Accepts only keys of applications of this type, and no sessions. */
  readonly keyOf?: 'public' | 'private'
  /** Refuses session keys, even if the session has the permissions. */
  readonly refusesSessions?: true
}

export const owner: Access = { owner: 'tenant', permissions: [] }

/** For operations on the whole vault, which need no tenant. */
export const wholeVault: Access = { owner: 'vault', permissions: [] }

export const anyKey: Access = { permissions: [] }

export function requires(...permissions: readonly Permission[]): Access {
  return { permissions }
}

export function requiresAny(...permissions: readonly Permission[]): Access {
  return { permissions, isAnyEnough: true }
}

export function keyOf(type: 'public' | 'private'): Access {
  return { keyOf: type, permissions: [] }
}

/**
 * The effect of no-reveal mode:
 * - `never`: none, because the answer has neither data of tokens nor secrets.
 * - `masked`: the data in the answer is masked.
 * - `refused`: the operation is refused, because it gives plaintext, keys, or power over what code does with data.
 *
 * Without no-reveal mode, the owner sees masked data in the answer to a write, and to a read without `--reveal`.
 */
export type Plaintext = 'never' | 'masked' | 'refused'

export interface Http {
  /** The default is 200 if the operation has an output, and 204 if it has none. */
  readonly status?: 200 | 201 | 202
  readonly olderPath?: string
  /**
   * The operation runs again for a repeated idempotency key. Other operations with POST, PUT or PATCH return the stored
   * answer.
   */
  readonly ignoresIdempotencyKey?: true
  readonly body?: {
    /** The name of the input property that gets the whole body. The body may be any JSON. */
    readonly whole?: string
    /**
     * The name of the input property that gets the body as the client sent it. The properties of the body are separate
     * input properties too. A parameter of the path replaces a body property with the same name.
     */
    readonly asSent?: string
    /**
     * Only with `asSent`: the body may be any JSON. If the body is no object, only the input property `asSent` is set.
     */
    readonly mayBeAny?: true
    /** The usual content type comes first. The default is `application/json`. */
    readonly types?: readonly string[]
    /** An empty body counts as an object without properties. */
    readonly isOptional?: true
    /**
     * The body is `multipart/form-data`. The part `file` is the content of a file. The part `json` is JSON text with
     * the other input properties. The content type of the file becomes the property `content_type`.
     */
    readonly form?: { readonly file: string; readonly json: string }
  }
  /**
   * Answers in addition to the output. `existing`: an entity that exists already, with status 200. `anything`: any HTTP
   * answer that code returns.
   */
  readonly mayAnswer?: 'existing' | 'anything'
  /** The network can refuse the card, with status 422 and the reason as title. */
  readonly mayRefuseCard?: true
  /** An external part of the 3DS service can fail, with status 424. */
  readonly mayFailOutside?: true
}

export interface Cli {
  /**
   * Properties that are positional arguments, in order, after the parameters of the path. If the operation has a route,
   * these properties are flags too.
   */
  readonly positionals?: readonly string[]
  readonly columns?: readonly string[]
  /** The question before the operation destroys something. The command adds the ids and "Continue?". */
  readonly confirmation?: string
  /** If the user gives `flag`, `command` performs this operation. `command` has the flags of both operations. */
  readonly form?: { readonly command: string; readonly flag: string }
  readonly isInternal?: true
}

export interface LogEntry extends Pick<LogRecord, 'operation' | 'message'> {
  /** No event is derived from this entry. The handler may call `audit.emit` instead. */
  readonly derivesNoEvent?: true
}

export interface CheckTools {
  expressions(): Promise<Expressions>
  readonly turns: Turns
  now(): Promise<number>
  /** Absent if this process only checks the input. */
  linker?(): Promise<Linker>
  /** See `compile` of `Effects`. Absent if this process only checks the input. */
  compile?(code: string): Promise<readonly CodeFault[]>
  /** The result of a build, if the control plane has chosen a result. */
  readonly provision?: Build | undefined
}

/**
 * - `query`: one unit of work that changes nothing but the log and the usage report.
 * - `change`: one unit of work that may write.
 * - `list`: several units of work that only read, so that other requests are served in between.
 * - `detached`: several units of work, for a handler that waits for something slow in between.
 * - `relay`: like `detached`, and also passes on HTTP requests of any form.
 * - `offline`: needs exclusive access to a vault, or no vault. Runs in the process of the owner.
 */
export type Kind = 'query' | 'change' | 'list' | 'detached' | 'relay' | 'offline'

export interface Given<
  I extends ObjectSchema = ObjectSchema,
  O extends Schema | undefined = Schema | undefined,
  Checked = unknown,
  Name extends string = string,
  Route extends string | undefined = string | undefined,
> {
  /** `noun verb` or `noun group verb`: the command, the id of the operation, and its name in logs. */
  readonly name: Name
  readonly summary: string
  readonly details?: string
  readonly access: Access
  readonly plaintext?: Plaintext
  /**
   * `METHOD /path/{parameter}`. Without a route, only commands perform the operation. Paths below {@link CONTROL_PATH}
   * belong to the control plane.
   */
  readonly route?: Route
  readonly http?: Http
  readonly input?: I
  /** Absent if there is no answer. `listOutput` makes the schema of a list. */
  readonly output?: O
  readonly cli?: Cli
  /** The command has the flag `--explain`, which shows how the access rules decide. */
  readonly isExplainable?: true
  /** Command lines. Each example must succeed in the vault of `coffer serve --demo`. */
  readonly examples: readonly string[]
  /**
   * The default log entry of each call of `audit.record`. If only the owner may perform the operation, the log also gets an
   * entry for the tenant.
   */
  readonly log?: LogEntry
  /**
   * Validates what a schema cannot express, without stored data. Properties with errors are missing in
   * `input`.
   * @throws CofferError `validation`
   */
  check?(input: Lenient<Infer<I>>, tools: CheckTools): Checked | Promise<Checked>
}

export interface Declaration<
  I extends ObjectSchema = ObjectSchema,
  O extends Schema | undefined = Schema | undefined,
  Checked = unknown,
  Name extends string = string,
  Route extends string | undefined = string | undefined,
> extends Given<I, O, Checked, Name, Route> {
  readonly kind: Kind
  readonly plaintext: Plaintext
  readonly input: I
}

// biome-ignore lint/suspicious/noExplicitAny: declarations have different input types.
export type AnyDeclaration = Declaration<any, Schema | undefined, any>

export const CONTROL_PATH = '/_coffer'

export function isControl({ route }: Pick<Declaration, 'route'>): boolean {
  return route?.split(' ')[1]?.startsWith(`${CONTROL_PATH}/`) === true
}

export function successOf({ http, output }: Pick<Declaration, 'http' | 'output'>): number {
  return http?.status ?? (output === undefined ? 204 : 200)
}

export const IDEMPOTENCY_KEY = 'idempotency_key'
export const MAX_KEY_CHARACTERS = 255

export function takesIdempotencyKey({ route = '', http }: Pick<Declaration, 'route' | 'http'>): boolean {
  const isRepeatable = http?.ignoresIdempotencyKey === true || isControl({ route })
  return /^(?:POST|PUT|PATCH) /.test(route) && !isRepeatable
}
