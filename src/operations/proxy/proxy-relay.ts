/** One call through a proxy: destination, data of tokens, transforms, answer. No error or log contains any of the data. */

import type { Permission, Transform } from '../../domain/access/permissions.js'
import { passAnswerHeaders, passHeaders } from '../../domain/proxy/code-answer.js'
import { DESTINATION_RULE, readDestination } from '../../domain/proxy/proxy.js'
import { readBodyValue, textOfBody } from '../../domain/proxy/proxy-body.js'
import { findTemplate, leadsElsewhere, type ProxyRequest } from '../../domain/proxy/proxy-request.js'
import type { ProxyMessage } from '../../domain/proxy/proxy-transform.js'
import type { ProxyRecord, TokenRecord } from '../../domain/records/records.js'
import { isKey } from '../../domain/text/base58.js'
import { CofferError, validationError } from '../../errors.js'
import { usingBy } from '../../framework/caller/caller.js'
import type { Context, Session } from '../../framework/operation.js'
import { answerWhole, type OutboundAnswer } from '../../framework/ports/outbound.js'
import { MOST_TRANSFORMED_BYTES } from '../../framework/ports/reactors.js'
import type { RelayRequest } from '../../framework/relay.js'
import { requireRecord } from '../../framework/require-record.js'
import type { StoreReader } from '../../storage/store.js'
import { boundCaller } from '../reactor/react.js'
import { findApplicationOf } from '../reactor/reactor.js'
import { detokenize, findExpressions, USE } from '../token/detokenize.js'
import { recordAccess } from '../token/token-access.js'
import { type TransformContext, transformAnswer, transformRequest } from './proxy-transforms.js'

const MOST_TOKENS = 20
/** Headers that are dropped from requests only; `passHeaders` drops those of the connection. */
const NOT_PASSED = ['host', 'accept-encoding', 'expect']

/** The proxy of a call by its key or id, or the URL of a destination without a proxy. */
export type Target = { key: string } | { id: string } | { url: string }

interface Opened extends TransformContext {
  base: URL
}

/** @throws CofferError those of the call, of expressions and of transforms */
export async function callDestination(session: Session, request: RelayRequest, target: Target) {
  const own = await session.outbound()
  const outbound = request.through?.(own) ?? own
  const read = await readCall(session, request)
  const { opened, destination, filled, used } = await session.inUnit(async (context) => {
    const opened = await open(context, target)
    const destination = outbound.reach(opened.base)
    return { opened, destination, ...(await fill(context, opened, read, USE)) }
  }, 'soon')
  const transformed = await transformRequest(session, opened, filled, request.prefix)
  if ('answer' in transformed) return transformed.answer
  const { sending } = transformed
  let logging: Promise<void> | undefined
  const sent = () => {
    if (used.length > 0) logging ??= session.inUnit((context) => logUses(context, used), 'soon')
    logging?.catch(() => undefined)
  }
  const { method } = filled
  const isChanged = sending !== filled
  const headers = isChanged ? passRequestHeaders(sending.headers, request.prefix) : filled.headers
  const sendable = { method, target: formatTarget(opened.base, filled), headers, body: sending.body }
  let answer: OutboundAnswer
  try {
    answer = await destination.send(sendable, { sent, left: request.left })
  } finally {
    await logging
  }
  const id = opened.proxy?.id
  if (id !== undefined)
    await session.inUnit(async ({ audit }) => audit.record('proxy', id, PROXY_USED), 'soon')
  return finish(session, opened, answer, request.prefix)
}

const PROXY_USED = { operation: 'use', message: 'Proxy used' } as const

/** Describes what a call would send, with masked data, before transforms. */
export async function describeCall(session: Session, request: RelayRequest, target: Target) {
  const read = await readCall(session, request)
  return session.inUnit(async (context) => {
    const opened = await open(context, target)
    const { filled } = await fill(context, opened, read, { ...USE, transform: 'mask' })
    const headers = passRequestHeaders(filled.headers, request.prefix)
    const text = textOfBody(filled.headers, filled.body)
    if (text === undefined) throw validationError('The body is not UTF-8 text.')
    const body = readBodyValue(filled.headers, text) ?? undefined
    const url = opened.base.origin + formatTarget(opened.base, filled)
    return { method: filled.method, url, headers, ...(body === undefined ? {} : { body }) }
  }, 'soon')
}

/** The tenant and proxy of a proxy key; undefined for an unknown key. */
export async function findKey(
  reader: Pick<StoreReader, 'get'>,
  hash: (text: string) => Promise<string>,
  key: string,
): Promise<{ tenant: number; proxy_id: string } | undefined> {
  if (!isKey(key)) return undefined
  const entry = await reader.get('api_key', 0, await hash(key))
  return entry?.proxy_id === undefined ? undefined : { tenant: entry.tenant, proxy_id: entry.proxy_id }
}

async function open(context: Context, target: Target): Promise<Opened> {
  const { store, caller } = context
  const { values: settings = {} } = (await store.get('settings', 0, 'vault')) ?? {}
  if ('url' in target) {
    const base = readDestination(target.url)
    if (base === undefined) throw validationError(`The destination ${DESTINATION_RULE}.`)
    if (caller.applicationType === 'public' && caller.session === undefined)
      throw new CofferError('forbidden', 'This requires the key of a private application, or a session.')
    if ((await context.tenant()).settings.disable_ephemeral_proxy === 'true')
      throw new CofferError('forbidden', 'This tenant allows no calls without a proxy.')
    return { base, proxy: undefined, bound: undefined, settings }
  }
  const proxy =
    'id' in target ? await requireRecord(context, 'proxy', target.id) : await findByKey(context, target.key)
  const application = await findApplicationOf(context, proxy)
  const bound = application === undefined ? undefined : boundCaller(context, application)
  return { base: new URL(proxy.destination_url), proxy, bound, settings }
}

async function findByKey(context: Context, key: string): Promise<ProxyRecord> {
  const entry = await findKey(context.store, context.hashSecret, key)
  const isOwn = entry?.tenant === context.caller.tenant
  const proxy = isOwn ? await context.store.get('proxy', entry.tenant, entry.proxy_id) : undefined
  if (proxy !== undefined) return proxy
  throw new CofferError('not_found', 'There is no proxy with this key.')
}

type ReadCall = Awaited<ReturnType<typeof readCall>>

/** Reads the parts of a call. Both promises are settled; they throw when awaited, after any error of the target. */
async function readCall(session: Session, asked: RelayRequest) {
  const { method, path, query, headers, prefix, readBody } = asked
  const readRequest = async (): Promise<ProxyRequest> => {
    return { method, path, query, headers: passRequestHeaders(headers, prefix), body: await readBody() }
  }
  const request = readRequest()
  const template = request.then(async (given) => {
    const template = findTemplate(given)
    const { document, places } = template
    const found = document && (await findExpressions(document, session, 'body', MOST_TOKENS, places))
    return { template, found }
  })
  await Promise.allSettled([request, template])
  return { request, template }
}

type Used = Pick<TokenRecord, 'id' | 'type' | 'created_at' | 'containers'>

/** The request with the data of tokens in place, and the tokens. */
async function fill(
  context: Context,
  { proxy }: Opened,
  read: ReadCall,
  { permission, transform }: { permission: Permission; transform: Transform },
): Promise<{ filled: ProxyRequest; used: readonly Used[] }> {
  const request = await read.request
  if (proxy?.disable_detokenization === true) return requireInside({ filled: request, used: [] })
  const { template, found } = await read.template
  const { document } = template
  if (document === undefined || found === undefined) return requireInside({ filled: request, used: [] })
  const used: Used[] = []
  const using = { ...context, caller: usingBy('proxy:invoke', context.caller) }
  const reached = ({ id, type, created_at, containers }: Used) =>
    used.push({ id, type, created_at, containers })
  const access = { permission, whole: 'body', transform, reached }
  return requireInside({ filled: template.fill(await detokenize(using, document, found, access)), used })
}

/** Contract: called with the values in place, because a value can be `..`. @throws CofferError `validation` */
function requireInside<T extends { filled: ProxyRequest }>(call: T): T {
  const { path, query } = call.filled
  if (leadsElsewhere(path))
    throw validationError('The path of a call has no segments such as . or .., which lead elsewhere.')
  // A server that reads the target as a URL ends it at the #: `..#f` means `..`.
  if (`${path}${query}`.includes('#'))
    throw validationError('The path and query of a call have no #. Write it as %23.')
  return call
}

async function logUses(context: Context, used: readonly Used[]): Promise<void> {
  for (const token of used) await recordAccess(context, token, USE.log, USE.transform)
}

function passRequestHeaders(headers: ProxyRequest['headers'], prefix: string): Record<string, string> {
  return passHeaders(headers, prefix, (name) => NOT_PASSED.includes(name))
}

function formatTarget({ pathname }: URL, { path, query }: ProxyRequest): string {
  return `${pathname.replace(/\/+$/, '') + path || '/'}${query === '' ? '' : `?${query}`}`
}

/** Returns the answer of the destination, transformed if its status is 2xx. */
async function finish(
  session: Session,
  opened: Opened,
  { status, headers, ...came }: OutboundAnswer,
  prefix: string,
): Promise<OutboundAnswer> {
  const transforms = opened.proxy?.response_transforms ?? []
  const formatHeaders = (given: ProxyMessage['headers']) => ({
    ...passAnswerHeaders(given, prefix),
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
    [`${prefix}-proxy-destination-status`]: String(status),
  })
  if (transforms.length === 0 || status < 200 || status > 299)
    return { status, headers: formatHeaders(headers), ...came }
  const given = { headers, body: await came.collect(MOST_TRANSFORMED_BYTES) }
  const answer = await transformAnswer(session, opened, given)
  return answerWhole(status, formatHeaders(answer.headers), answer.body)
}
