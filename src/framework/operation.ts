/**
 * An operation is a declaration and a handler. The kind of the operation determines the tools of the handler. Each kind
 * has a constructor.
 */
import type { Awaitable } from '../domain/awaitable.js'
import type { Problem } from '../errors.js'
import type { Caller } from './caller/caller.js'
import type { Context, OfflineSession, Session } from './context.js'
import { type AnyDeclaration, type Declaration, type Given, isControl, type Kind } from './declaration.js'
import type { Host } from './host.js'
import type { EncodedJson } from './limits.js'
import type { Existing, HttpAnswer } from './outcome.js'
import type { OutboundAnswer, RelayRequest } from './ports/outbound.js'
import { type Answer, type Infer, inputSchema, type ObjectSchema, type Schema } from './schema.js'

export interface Relay {
  readonly path: string
  readonly methods: readonly string[]
  /** Returns the caller if the request needs no API key, and undefined if the request needs a key. */
  admit(host: Pick<Host, 'store' | 'hashSecret'>, request: RelayRequest): Promise<Caller | undefined>
  run(session: Session, request: RelayRequest): Promise<OutboundAnswer>
  /**
   * Returns the body of an error that Coffer reports. The form of the body shows that the error comes from Coffer,
   * and not from the server behind the relay.
   */
  describeError(problem: Problem): object
}

interface Handlers<I, O, Checked> {
  query: { run(context: Context, input: I, checked: Checked): Awaitable<O> }
  change: { run(context: Context, input: I, checked: Checked): Awaitable<O | Existing<O> | HttpAnswer> }
  list: { run(session: Session, input: I, checked: Checked): Promise<O | EncodedJson> }
  detached: {
    run(session: Session, input: I, checked: Checked): Promise<O | HttpAnswer>
    /** Runs instead of `run` if the vault is too damaged to open. */
    whenDamaged?(session: OfflineSession, input: I): Promise<O>
  }
  relay: {
    run(session: Session, input: I, checked: Checked): Promise<O | HttpAnswer>
    readonly relay: Relay
  }
  offline: { run(session: OfflineSession, input: I): Promise<O> }
}

export type Operation<
  K extends Kind,
  I extends ObjectSchema,
  O extends Schema | undefined,
  Checked,
  Name extends string,
  Route extends string | undefined,
> = Declaration<I, O, Checked, Name, Route> & { readonly kind: K } & Handlers<Infer<I>, Answer<O>, Checked>[K]

export type AnyOf<K extends Kind> = {
  // biome-ignore lint/suspicious/noExplicitAny: handlers have different input types. `perform` validates inputs.
  [Each in K]: AnyDeclaration & { readonly kind: Each } & Handlers<any, any, any>[Each]
}[K]
export type AnyOperation = AnyOf<Kind>

export function isOneUnit(operation: AnyOperation): operation is AnyOf<'query' | 'change'> {
  return operation.kind === 'query' || operation.kind === 'change'
}

export function mayRunOffline(operation: AnyOperation): operation is AnyOf<'offline' | 'detached'> {
  return (
    operation.kind === 'offline' || (operation.kind === 'detached' && operation.whenDamaged !== undefined)
  )
}

const nothing = inputSchema([], {})

function constructorOf<const K extends Kind>(kind: K) {
  return <
    const Name extends string,
    const I extends ObjectSchema = typeof nothing,
    const O extends Schema | undefined = undefined,
    Checked = unknown,
    const Route extends string | undefined = undefined,
  >(
    declaration: Given<I, O, Checked, Name, Route> & Handlers<Infer<I>, Answer<O>, Checked>[K],
  ) => {
    const isOpen = declaration.route !== undefined && !isControl(declaration)
    const input = isOpen ? nothing : { ...nothing, additionalProperties: false }
    return { kind, plaintext: 'never', input, ...declaration } as unknown as Operation<
      K,
      I,
      O,
      Checked,
      Name,
      Route
    >
  }
}

export const query = constructorOf('query')
export const change = constructorOf('change')
export const list = constructorOf('list')
export const detached = constructorOf('detached')
export const relay = constructorOf('relay')
export const offline = constructorOf('offline')
