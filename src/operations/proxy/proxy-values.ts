/** Transforms without code. One kind creates a token from a message. The other kinds add a value to the message. */
import type { Reference, Scope } from '../../domain/expression/expression.js'
import { textOf } from '../../domain/expression/filter.js'
import {
  maySet,
  readBodyValue,
  readHeaders,
  readJsonBody,
  textOfBody,
} from '../../domain/proxy/code-answer.js'
import { putAt, readLocation } from '../../domain/proxy/location.js'
import { kindOf, type ProxyTransform, templateOf } from '../../domain/proxy/transform.js'
import type { ProxyRecord } from '../../domain/records/records.js'
import type { Secrets } from '../../domain/text/secrets.js'
import { CofferError, markAsTelling, validationError } from '../../errors.js'
import { type Caller, noRevealCaller } from '../../framework/caller/caller.js'
import type { Session } from '../../framework/context.js'
import { MAX_TRANSFORMED_BYTES, type TransformInput } from '../../framework/ports/reactors.js'
import { type ReadCodeRights, tokenizingCaller } from '../reactor/code-actor.js'
import { findExpressions, render } from '../token/detokenize.js'
import { createToken } from '../token/noun.js'
import { nameOfHeader } from './encrypted-header.js'
import { runningProxy } from './proxy-version.js'

/** The largest body that this process parses. A larger body would delay other requests. */
export const MAX_READ_BYTES = 1024 * 1024

export interface OpenProxy {
  base: URL
  proxy: ProxyRecord | undefined
  bound: Caller | undefined
  settings: Readonly<Record<string, unknown>>
  prefix: string
  /** Only in no-reveal mode: the data that the answer must not contain. */
  secrets?: Secrets | undefined
  /**
   * Maps a reference in an expression to its value: a token that a transform of this call has created, or
   * data that the client has encrypted for this call.
   */
  made: Map<Reference, unknown>
}

/** If the proxy no longer has this `code` at this index, the code does not get the permissions of its runtime. */
export function rightsOfProxy(
  tenant: number,
  id: string,
  code?: { direction: TransformInput['direction']; index: number; text: string },
): ReadCodeRights {
  return async (reader) => {
    const stored = await reader.get('proxy', tenant, id)
    const proxy = stored && runningProxy(stored, reader.now)
    if (proxy === undefined) throw new CofferError('not_found', 'The proxy of this call was deleted.')
    const { application_id } = proxy
    const transform = code && proxy[`${code.direction}_transforms`][code.index]
    if (transform === undefined || !('code' in transform) || transform.code !== code?.text)
      return { application_id }
    return { application_id, runtime: transform.options?.runtime }
  }
}

/** @throws CofferError `validation` (also if the new token is invalid), `forbidden`, `unprocessable`, `bad_gateway` */
export async function applyOptions(
  session: Session,
  { prefix, bound, made }: OpenProxy,
  transform: ProxyTransform,
  message: TransformInput,
): Promise<TransformInput> {
  const { direction, headers } = message
  let read: { body: unknown } | undefined
  const scope: Scope = {
    tokens: made,
    get body() {
      read ??= { body: readBodyValue(headers, textOfMessage(message, MAX_READ_BYTES)) }
      return read.body
    },
  }
  const template = templateOf(transform)!
  const found = await findExpressions(template, session, { whole: 'options', useOf: () => direction })
  for (const { expression } of found.byText.values())
    for (const reference of expression.references) if (!made.has(reference)) throw missing(reference, prefix)
  const rendered = await render(template, found, scope, 'options')
  if ('token' in rendered) {
    const { options } = transform as { options: { identifier?: string; token: object } }
    const token = await create(session, bound, { ...options.token, ...rendered.token }).catch(
      (error: unknown) => {
        throw markAsTelling(error)
      },
    )
    if (options.identifier !== undefined) made.set(`transform_identifier:${options.identifier}`, token)
    return message
  }
  return append(transform, rendered.value, message, prefix)
}

/** Creates the token as the application of the proxy. Without an application, the caller creates the token. */
async function create(session: Session, bound: Caller | undefined, token: Record<string, unknown>) {
  const { caller } = session
  if (caller.actor.type === 'system')
    throw new CofferError(
      'forbidden',
      'A call without a key creates tokens only if the proxy has an application.',
    )
  const maker = tokenizingCaller(bound ?? caller)
  const run = await session.prepare(caller.isNoReveal ? noRevealCaller(maker) : maker, createToken, token)
  return session.inUnit(run)
}

function append(transform: ProxyTransform, value: unknown, message: TransformInput, prefix: string) {
  const { headers, direction } = message
  const { location = '' } = (transform as { options: { location?: string } }).options
  const kind = kindOf(transform)
  if (kind === 'append_header') {
    if (!maySet(location, direction, prefix)) throw refused('This header is not passed on.')
    return { ...message, headers: { ...headers, ...readHeader(location, textOf(value)) } }
  }
  if (kind === 'append_text') return withBody(message, textOfMessage(message) + textOf(value))
  const text = textOfMessage(message, MAX_READ_BYTES)
  const root = text === '' ? {} : readJsonBody({ ...headers, 'content-type': 'application/json' }, text)
  if (root === undefined) throw refused('append_json needs a body that is JSON.')
  const changed = putAt(root, readLocation(location)!, value)
  if (changed === undefined) throw refused(`The body has no place ${location}.`)
  return withBody(message, JSON.stringify(changed))
}

function readHeader(name: string, value: string): Record<string, string> {
  try {
    return readHeaders({ [name]: value }, 'headers')
  } catch (cause) {
    throw refused('A header takes one line of Latin-1.', cause)
  }
}

function withBody(message: TransformInput, text: string): TransformInput {
  const body = new TextEncoder().encode(text)
  if (body.length > MAX_TRANSFORMED_BYTES) throw refused('The body is too large with this value.')
  return { ...message, body }
}

/**
 * @throws CofferError `validation` or `bad_gateway` if the body is not text, or `unprocessable` if the body has more
 * than `most` bytes
 */
export function textOfMessage({ direction, headers, body }: TransformInput, most = Number.POSITIVE_INFINITY) {
  if (body.length > most) throw refused(`The body has more than ${most} bytes.`)
  const text = textOfBody(headers, body)
  if (text !== undefined) return text
  if (direction === 'request') throw validationError('A transform needs a body that is UTF-8 text.')
  throw new CofferError('bad_gateway', 'The answer of the destination is not text.')
}

function missing(reference: string, prefix: string): CofferError {
  const name = reference.slice(reference.indexOf(':') + 1)
  if (reference.startsWith('encrypted:'))
    return validationError(`A transform needs the header ${nameOfHeader(prefix)}, which the call lacks.`)
  return validationError(`No earlier transform of this call has made a token with the identifier ${name}.`)
}

function refused(message: string, cause?: unknown): CofferError {
  return new CofferError('unprocessable', message, { cause })
}
