/**
 * Performs one call through a proxy: replaces expressions with the data of tokens, applies the transforms of the proxy,
 * and returns the answer of the destination. Errors and logs do not contain the data.
 */
import type { Transform } from '../../domain/access/permissions.js'
import { canonicalJson } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import {
  passAnswerHeaders,
  passRequestHeaders,
  readBodyValue,
  readHeaders,
  textOfBody,
} from '../../domain/proxy/code-answer.js'
import { DESTINATION_RULE, readDestination } from '../../domain/proxy/proxy.js'
import {
  findTemplate,
  leadsElsewhere,
  type ProxyRequest,
  toHeaders,
  withSpellings,
} from '../../domain/proxy/proxy-request.js'
import { kindOf } from '../../domain/proxy/transform.js'
import type { ProxyRecord } from '../../domain/records/records.js'
import { isKey } from '../../domain/text/base58.js'
import { Secrets, WITHHELD } from '../../domain/text/secrets.js'
import { CofferError, type PropertyErrors, validationError } from '../../errors.js'
import { requireNoRun } from '../../framework/caller/authorize.js'
import { withGrant } from '../../framework/caller/caller.js'
import type { Context, Session } from '../../framework/context.js'
import { concealValues } from '../../framework/no-reveal.js'
import { answerWhole, type OutboundAnswer, type RelayRequest } from '../../framework/ports/outbound.js'
import { MAX_TRANSFORMED_BYTES } from '../../framework/ports/reactors.js'
import type { StoreReader } from '../../storage/store.js'
import { requireReady } from '../reactor/build.js'
import { readCodeActor } from '../reactor/code-actor.js'
import { scrubError } from '../reactor/react.js'
import { addSecret, findExpressions, readTokens, render, USE } from '../token/detokenize.js'
import { logTokenUse } from '../token/token-access.js'
import type { UsedRecord } from '../token/token-attributes.js'
import { nameOfHeader, openHeader } from './encrypted-header.js'
import { CONTAINED, transform, WITHOUT_BODY } from './proxy-transforms.js'
import { type OpenProxy, rightsOfProxy } from './proxy-values.js'
import { runningProxy } from './proxy-version.js'

const MAX_TOKENS = 20
/** Shorter values of the configuration are not redacted. */
const MIN_SECRET = 8
const CONNECTIONS = ['close', 'keep-alive']

/** The key or id of a proxy, or the URL of a destination that is called without a proxy. */
export type Target = { key: string } | { id: string } | { url: string }

/** @throws CofferError if the call, an expression or a transform fails */
export async function callDestination(session: Session, request: RelayRequest, target: Target) {
  if (!session.caller.isNoReveal) return relay(session, request, target)
  const secrets = new Secrets()
  try {
    return await scrubAnswer(await relay(session, request, target, secrets), secrets)
  } catch (error) {
    throw error instanceof CofferError ? scrubError(error, secrets) : error
  }
}

async function relay(session: Session, request: RelayRequest, target: Target, secrets?: Secrets) {
  const { prefix, left } = request
  const own = await session.outbound()
  const outbound = request.through?.(own) ?? own
  const read = await readCall(session, request, target)
  const { began, opened, destination, filled, used } = await session.inUnit(async (context) => {
    const opened: OpenProxy = { ...(await open(session, context, target, prefix)), secrets }
    // The transforms may send these values, so these values are redacted in the answer.
    for (const value of Object.values(opened.proxy?.configuration ?? {}))
      if (value.length >= MIN_SECRET) secrets?.add(value)
    const destination = outbound.reach(opened.base)
    const encrypted = await openHeader(context, request, { secrets })
    if (encrypted !== undefined) opened.made.set('encrypted:', encrypted)
    const filling = await fill(context, opened, read, USE.transform, secrets)
    return { began: context.now, opened, destination, ...filling }
  }, 'soon')
  const { message, answer } = await transform(session, opened, { ...filled, direction: 'request' })
  if (answer !== undefined) return answer
  let logging: Promise<void> | undefined
  const sent = () => {
    if (used.length > 0)
      logging ??= session.record(async (context) => {
        for (const token of used) await logTokenUse(context, token, USE.log, USE.transform)
      }, 'soon')
    logging?.catch(() => undefined)
  }
  const headers = { ...passRequestHeaders(message.headers, prefix), ...read.connection }
  const sendable = { method: filled.method, target: targetOf(opened, filled), headers, body: message.body }
  let given: OutboundAnswer
  try {
    given = await destination.send(sendable, { sent, left })
  } finally {
    await logging
  }
  const status = secrets?.scrubStatus(given.status) ?? given.status
  const { base, proxy } = opened
  await session.record(async ({ audit, now }) => {
    if (proxy !== undefined) audit.record('proxy', proxy.id, { operation: 'use', message: 'Proxy used' })
    const type = proxy === undefined ? 'ephemeral' : 'configured'
    const response = { status, elapsed_ms: now - began }
    // The event omits the path and query that the caller has added, because they may contain data.
    const destination = { request: { method: filled.method, url: base.href }, response }
    const about = { id: proxy?.id, name: proxy?.name, type, response }
    audit.emit({ type: 'proxy.invoked', about, more: { destination } })
  }, 'soon')
  // The rights may have changed while the destination answered the request.
  await session.requireRights()
  return transformAnswer(session, opened, given)
}

/**
 * Redacts the data of the call in the answer. A body that is not text is withheld, because it cannot be
 * examined.
 */
async function scrubAnswer({ status, headers, collect }: OutboundAnswer, secrets: Secrets) {
  const text = textOfBody(headers, await collect(MAX_TRANSFORMED_BYTES))
  const value = text === undefined ? WITHHELD : secrets.scrub(readBodyValue(headers, text) ?? '')
  const isText = typeof value === 'string'
  const { 'content-encoding': _, ...rest } = headers
  const type = { 'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json' }
  const shown = secrets.scrubMembers(rest)
  const body = Buffer.from(isText ? value : canonicalJson(value))
  return answerWhole(secrets.scrubStatus(status), { ...shown, ...type, ...CONTAINED }, body)
}

async function transformAnswer(
  session: Session,
  opened: OpenProxy,
  { status, headers, ...came }: OutboundAnswer,
): Promise<OutboundAnswer> {
  const { prefix, proxy } = opened
  const formatHeaders = (given: OutboundAnswer['headers']) => ({
    ...passAnswerHeaders(given, prefix),
    ...CONTAINED,
    [`${prefix}-proxy-destination-status`]: String(status),
  })
  const isTransformed = proxy?.response_reactor_id !== undefined || proxy?.response_transforms.length
  const isPlain = !isTransformed || status < 200 || status > 299
  if (isPlain) return { status, headers: formatHeaders(headers), ...came }
  const body = await came.collect(MAX_TRANSFORMED_BYTES)
  const given = { direction: 'response', statusCode: status, headers, body } as const
  const { message, answer } = await transform(session, opened, given)
  if (answer !== undefined) return { ...answer, headers: formatHeaders(answer.headers) }
  const { statusCode = status } = message
  const left = WITHOUT_BODY.includes(statusCode) ? new Uint8Array() : message.body
  return answerWhole(statusCode, formatHeaders(message.headers), left)
}

export async function describeCall(session: Session, request: RelayRequest, target: Target) {
  const read = await readCall(session, request, target)
  return session.inUnit(async (context) => {
    const opened = await open(session, context, target, request.prefix)
    const encrypted = await openHeader(context, request, { isMasked: true })
    if (encrypted !== undefined) opened.made.set('encrypted:', encrypted)
    const { filled } = await fill(context, opened, read, 'mask')
    const headers = { ...passRequestHeaders(filled.headers, request.prefix), ...read.connection }
    const text = textOfBody(filled.headers, filled.body)
    if (text === undefined) throw validationError('The body is not UTF-8 text.')
    const body = readBodyValue(filled.headers, text) ?? undefined
    const url = opened.base.origin + targetOf(opened, filled)
    return { method: filled.method, url, headers, ...(body === undefined ? {} : { body }) }
  }, 'soon')
}

export async function findKey(
  reader: Pick<StoreReader, 'get'>,
  hash: (text: string) => Promise<string>,
  key: string,
): Promise<{ tenant: number; proxy_id: string } | undefined> {
  if (!isKey(key)) return undefined
  const { tenant, proxy_id } = (await reader.get('api_key', 0, await hash(key))) ?? {}
  return tenant === undefined || proxy_id === undefined ? undefined : { tenant, proxy_id }
}

async function open(session: Session, context: Context, target: Target, prefix: string): Promise<OpenProxy> {
  const { store, caller } = context
  const { values: settings = {} } = (await store.get('settings', 0, 'vault')) ?? {}
  if ('url' in target) {
    const base = readDestination(target.url)
    if (base === undefined) throw validationError(`The destination ${DESTINATION_RULE}.`)
    if (caller.applicationType === 'public' && caller.session === undefined)
      throw new CofferError('forbidden', 'This requires the key of a private application, or a session.')
    if ((await context.tenant()).settings.disable_ephemeral_proxy === 'true')
      throw new CofferError('forbidden', 'This tenant allows no calls without a proxy.')
    return { base, proxy: undefined, bound: undefined, settings, prefix, made: new Map() }
  }
  const stored =
    'id' in target ? await store.get('proxy', caller.tenant, target.id) : await findByKey(context, target.key)
  if (stored === undefined) throw new CofferError('not_found', 'There is no proxy with this key or id.')
  const proxy = runningProxy(stored, context.now)
  requireReady('proxy', proxy, context.now)
  // The code of a run must not start another run. The call is refused before the destination is called, even
  // if only the answer is transformed.
  if (startsRuns(proxy)) requireNoRun(caller)
  const { application: bound } = await readCodeActor(session, store, rightsOfProxy(caller.tenant, proxy.id))
  return { base: new URL(proxy.destination_url), proxy, bound, settings, prefix, made: new Map() }
}

/** Reactors, code and masks run in child processes. */
function startsRuns(proxy: ProxyRecord): boolean {
  const { request_reactor_id, response_reactor_id, request_transforms, response_transforms } = proxy
  const kinds = [...request_transforms, ...response_transforms].map(kindOf)
  return (
    (request_reactor_id ?? response_reactor_id) !== undefined ||
    kinds.some((kind) => kind === 'code' || kind === 'mask')
  )
}

async function findByKey({ store, hashSecret, caller }: Context, key: string) {
  const { tenant, proxy_id = '' } = (await findKey(store, hashSecret, key)) ?? {}
  return tenant === caller.tenant ? store.get('proxy', tenant, proxy_id) : undefined
}

type ReadCall = Awaited<ReturnType<typeof readCall>>

/**
 * Returns settled promises for the request and for its template. `fill` later awaits the promises and throws their
 * errors, so that errors of the target are reported first.
 */
async function readCall(session: Session, asked: RelayRequest, target: Target) {
  const { method, path, query, headers, prefix, readBody } = asked
  const readRequest = async (): Promise<ProxyRequest> => {
    return { method, path, query, headers: passRequestHeaders(headers, prefix), body: await readBody() }
  }
  const connection = readConnection(asked)
  // A call without a proxy has no configuration, and its expressions have no `proxy`.
  const useOf = (path: string) => (path.startsWith('headers.') && !('url' in target) ? 'header' : 'call')
  const request = readRequest()
  const template = request.then(async (given) => {
    const { document, places, fill } = findTemplate(given)
    const search = { whole: 'body', most: MAX_TOKENS, places, useOf } as const
    const found = document && (await findExpressions(document, session, search))
    return { document, found, fill }
  })
  await Promise.allSettled([request, template])
  return { request, template, connection }
}

type Used = Pick<UsedRecord, 'id' | 'type' | 'created_at' | 'containers' | 'is_intent' | 'entity'>

/** Returns the used tokens, and the request with their data. A query in this request begins with a question mark. */
async function fill(
  context: Context,
  { proxy, prefix, made }: OpenProxy,
  read: ReadCall,
  transform: Transform,
  secrets?: Secrets,
) {
  let request = await read.request
  const used: Used[] = []
  if (proxy?.disable_detokenization !== true) {
    const { document, found, fill } = await read.template
    const using = context.as(withGrant('proxy:invoke', context.caller))
    const reached = (record: UsedRecord) => {
      const { id, type, created_at, containers, is_intent, entity } = record
      used.push({ id, type, created_at, containers, is_intent, entity })
      if (secrets !== undefined) addSecret(secrets, context, record)
    }
    const { configuration: values = {} } = proxy ?? {}
    const configuration = transform === 'mask' ? concealValues(values) : values
    const encrypted = { header: nameOfHeader(prefix), value: made.get('encrypted:') }
    const access = { permission: USE.permission, whole: 'body', transform, reached, unknownError, encrypted }
    if (document !== undefined && found !== undefined) {
      const tokens = await readTokens(using, found, { ...access, configuration })
      const usesProxy = ([, text]: [string, string]) => found.byText.get(text)!.expression.usesProxy
      const headers = Object.entries(document.headers)
      const last = Object.fromEntries(headers.filter(usesProxy))
      const first = Object.fromEntries(headers.filter((header) => !usesProxy(header)))
      request = fill(await render({ ...document, headers: first }, found, { tokens }, 'body'))
      const proxied = describeFilled(request, last, configuration)
      request = {
        ...request,
        headers: {
          ...request.headers,
          ...toHeaders(await render(last, found, { tokens, proxy: proxied }, 'body')),
        },
      }
    }
  }
  requireInside(request)
  return { filled: { ...request, query: request.query && `?${request.query}` }, used }
}

/**
 * Returns the value of `proxy` in the expressions of headers: the configuration, and the request without those headers
 * whose expressions use `proxy`.
 */
function describeFilled(
  { headers, body }: ProxyRequest,
  last: Readonly<Record<string, string>>,
  config: Readonly<Record<string, string>>,
) {
  const known = Object.fromEntries(Object.entries(headers).filter(([name]) => !Object.hasOwn(last, name)))
  const text = textOfBody(headers, body) ?? ''
  return { request: { headers: withSpellings(known, Object.values(last)), body: text }, config }
}

function unknownError(ids: readonly string[], errors: PropertyErrors): CofferError {
  return new CofferError('proxy_invalid', `Failed to detokenize some tokens: ${ids.join(', ')}`, { errors })
}

/**
 * Refuses a request whose path would leave the path of the destination. Must be called after the expressions are
 * replaced, because a value can be `..`.
 * @throws CofferError `validation`
 */
function requireInside({ path, query }: ProxyRequest): void {
  if (leadsElsewhere(path))
    throw validationError(
      'The path of a call must not have segments such as . or .., because they lead to another path.',
    )
  // If the destination parses the target as a URL, the target ends at the #. The destination then reads `..#f` as
  // `..`.
  if (`${path}${query}`.includes('#'))
    throw validationError('The path and query of a call must not have a #. Write it as %23.')
}

/**
 * Returns the headers `keep-alive` and `connection` that the caller has chosen for the request to the destination.
 * @throws CofferError `validation`
 */
function readConnection({ headers, prefix }: RelayRequest): Record<string, string> {
  const { [`${prefix}-proxy-keep-alive`]: keepAlive, [`${prefix}-proxy-connection`]: connection } = headers
  if (connection && !CONNECTIONS.includes(connection.toLowerCase()))
    throw validationError(`${prefix.toUpperCase()}-PROXY-CONNECTION takes ${CONNECTIONS.join(' or ')}.`)
  return readHeaders(
    omitUndefined({ 'keep-alive': keepAlive || undefined, connection: connection || undefined }),
    'headers',
  )
}

function targetOf({ base }: OpenProxy, { path, query }: ProxyRequest): string {
  return `${base.pathname.replace(/\/+$/, '') + path || '/'}${query}`
}
