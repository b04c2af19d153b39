/** The declaration of an operation. Commands, routes, help and the OpenAPI document are derived from it. */
import type { Permission } from '../domain/access/permissions.js'
import type { Turns } from '../domain/expression/budget.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { Lenient } from '../domain/omit-undefined.js'
import type { LogRecord } from '../domain/records/records.js'
import type { Infer, ObjectSchema, Schema } from './schema.js'

export interface Access {
  /** `vault`: the owner, even if the tenant that the owner chose is deleted. */
  readonly owner?: 'tenant' | 'vault'
  /** An empty list accepts any valid key. */
  readonly permissions: readonly Permission[]
  readonly isAnyEnough?: true
  /** Only keys of applications of this type are accepted, and no sessions. */
  readonly keyOf?: 'public' | 'private'
}

export const owner: Access = { owner: 'tenant', permissions: [] }

/** The owner of the vault. The operation concerns the whole vault, so it needs no tenant. */
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
 * - `refused`: the operation is refused, because it gives plaintext, keys, or power over what code does with
 * data.
 *
 * If no-reveal mode is off, the owner sees masked data in the answer to a write. In the answer to a read, the owner sees
 * masked data unless `--reveal` is given.
 */
export type Plaintext = 'never' | 'masked' | 'refused'

export interface Http {
  /** Default: 200 with an output, 204 without one. */
  readonly status?: 200 | 201 | 202
  readonly olderPath?: string
  /** The operation runs again for a repeated idempotency key, although its method is POST, PUT or PATCH. */
  readonly ignoresIdempotencyKey?: true
  readonly body?: {
    /** The property that is the whole body, for a body that may be any JSON. */
    readonly whole?: string
    /**
     * The property that gets the body as sent. In the input, parameters of the path replace properties with
     * their names.
     */
    readonly asSent?: string
    /** Content types of the body, the usual one first. Default: `application/json`. */
    readonly types?: readonly string[]
  }
  /**
   * Further answers: `existing`, an entity that exists already, with 200; `anything`, any HTTP answer of
   * code.
   */
  readonly mayAnswer?: 'existing' | 'anything'
}

export interface Cli {
  /**
   * Properties that are positional arguments, in order. With a route they follow the parameters of its path,
   * and are flags too.
   */
  readonly positionals?: readonly string[]
  readonly columns?: readonly string[]
  /** The question before something is destroyed. The ids follow, then "Go on?". */
  readonly confirmation?: string
  /**
   * If the user gives `flag` to the command of another operation, that command performs this operation instead.
   * It has the flags of both operations.
   */
  readonly form?: { readonly command: string; readonly flag: string }
  readonly isInternal?: true
}

export interface LogEntry extends Pick<LogRecord, 'operation' | 'message'> {
  /** The handler may send an event with `audit.emit`. */
  readonly derivesNoEvent?: true
}

export interface CheckTools {
  expressions(): Promise<Expressions>
  readonly turns: Turns
  now(): Promise<number>
}

/**
 * - `query`: one unit of work that changes nothing but the log and the usage report.
 * - `change`: one unit of work that may write.
 * - `list`: several units of work that only read, so that other requests are served in between.
 * - `detached`: several units of work, for a handler that waits for something slow in between.
 * - `relay`: detached; also passes on HTTP requests of any form.
 * - `offline`: needs exclusive access to a vault, or no vault. It runs in the owner's process.
 */
export type Kind = 'query' | 'change' | 'list' | 'detached' | 'relay' | 'offline'

/** The argument of the constructors of operations. Without `input` the operation takes no input. */
export interface Given<
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
  readonly access: Access
  readonly plaintext?: Plaintext
  /**
   * `METHOD /path/{parameter}`. Without a route only commands perform the operation. A path below {@link
   * CONTROL_PATH} belongs to the control plane.
   */
  readonly route?: Route
  readonly http?: Http
  readonly input?: I
  /** The schema of the answer; absent without an answer. `listOutput` makes the schema of a list. */
  readonly output?: O
  readonly cli?: Cli
  /** Its command has `--explain`, which shows how the access rules decide. */
  readonly isExplainable?: true
  /** Command lines. Each must succeed in the vault of `coffer serve --demo`. */
  readonly examples: readonly string[]
  /**
   * The log entry for each entity that the handler gives to `audit.record`. For the owner there is also an
   * entry for the tenant.
   */
  readonly log?: LogEntry
  /**
   * Validates what a schema cannot express, without stored data. `input` lacks properties with errors.
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

// biome-ignore lint/suspicious/noExplicitAny: declarations differ in what they take.
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
