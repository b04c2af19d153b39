/**
 * One call through a proxy: finds the destination, puts the data of tokens in place, runs the transforms, sends the
 * request and gives the answer. Nothing of the data is in an error or a log.
 */
import { isCodeAnswer, passAnswerHeaders, passHeaders } from '../../domain/code-answer.js'
import { DESTINATION_RULE, PROXY_KEY, type ProxyTransform, readDestination } from '../../domain/proxy.js'
import { findTemplate, leadsElsewhere, type ProxyRequest } from '../../domain/proxy-request.js'
import {
  applyMask,
  describeAnswer,
  describeRequest,
  MASK_PROGRAM,
  type ProxyMessage,
  readTransformed,
  textOfAnswer,
} from '../../domain/proxy-transform.js'
import type { ProxyRecord, TokenRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import { type Caller, usingBy } from '../../framework/caller.js'
import type { Context, Session } from '../../framework/operation.js'
import type { OutboundAnswer } from '../../framework/outbound-port.js'
import type { Invocation } from '../../framework/reactor-runtime.js'
import type { RelayAnswer, RelayRequest } from '../../framework/relay.js'
import { requireRecord } from '../../framework/require-record.js'
import type { StoreReader } from '../../storage/store.js'
import { boundCaller } from '../reactor/react.js'
import { findApplicationOf } from '../reactor/reactor.js'
import { createClientCall } from '../reactor/reactor-client.js'
import { detokenize, findExpressions, USE } from '../token/detokenize.js'
import { reachToken } from '../token/token-access.js'

const MOST_TOKENS = 20
/** Of an answer that a transform changes. */
const MOST_TRANSFORMED_BYTES = 8 * 1024 * 1024
/** Of the request alone: those of its connection are dropped with others, see `passHeaders`. */
const NOT_PASSED = ['host', 'accept-encoding', 'expect']

/** The proxy of a call by its key or id, or the URL of a destination without a proxy. */
export type Target = { key: string } | { id: string } | { url: string }

interface Opened {
  base: URL
  proxy: ProxyRecord | undefined
  /** The application that the client of code acts as. */
  bound: Caller | undefined
  settings: Readonly<Record<string, unknown>>
}

/** @throws CofferError those of the call, of expressions and of transforms */
export async function callDestination(
  session: Session,
  request: RelayRequest,
  target: Target,
): Promise<RelayAnswer> {
  const opened = await session.inUnit((context) => open(context, target), 'soon')
  const { base, proxy } = opened
  const destination = await (await session.outbound()).reach(base)
  const { filled, used } = await fill(session, opened, await readRequest(request), USE.transform)
  let sending: ProxyMessage = filled
  for (const [index, transform] of (proxy?.request_transforms ?? []).entries()) {
    const code = {
      transform,
      index,
      direction: 'request',
      args: describeRequest({ ...filled, ...sending }),
    } as const
    const given = readTransformed(await run(session, opened, code), sending, 'request', request.prefix)
    if (isCodeAnswer(given)) return given
    sending = given
  }
  let logging: Promise<void> | undefined
  const sent = () => {
    logging ??= session.inUnit((context) => logUses(context, used), 'soon')
    logging.catch(() => undefined)
  }
  const { method } = filled
  const headers = passRequestHeaders(sending.headers, request.prefix)
  let answer: OutboundAnswer
  try {
    answer = await destination.send(
      { method, target: spellTarget(base, filled), headers, body: sending.body },
      sent,
    )
  } finally {
    await logging
  }
  if (proxy !== undefined)
    await session.inUnit(async ({ reached }) => reached('proxy', proxy.id, PROXY_USED), 'soon')
  return finish(session, opened, answer, request.prefix)
}

const PROXY_USED = { operation: 'use', message: 'Proxy used' } as const

/** What a call would send, with masked data, before transforms. */
export async function describeCall(session: Session, request: RelayRequest, target: Target) {
  const opened = await session.inUnit((context) => open(context, target), 'soon')
  const { filled } = await fill(session, opened, await readRequest(request), 'mask')
  const headers = passRequestHeaders(filled.headers, request.prefix)
  const body = describeRequest(filled).body ?? undefined
  const url = opened.base.origin + spellTarget(opened.base, filled)
  return { method: filled.method, url, headers, ...(body === undefined ? {} : { body }) }
}

/** The tenant and proxy of a proxy key; undefined for one that is unknown. */
export async function findKey(
  reader: Pick<StoreReader, 'get'>,
  hash: (text: string) => Promise<string>,
  key: string,
): Promise<{ tenant: number; proxy_id: string } | undefined> {
  if (!PROXY_KEY.test(key)) return undefined
  const entry = await reader.get('api_key', 0, await hash(key))
  return entry?.proxy_id === undefined ? undefined : { tenant: entry.tenant, proxy_id: entry.proxy_id }
}

async function open(context: Context, target: Target): Promise<Opened> {
  const { store, caller } = context
  const { values: settings = {} } = (await store.get('settings', 0, 'vault')) ?? {}
  if ('url' in target) {
    const base = readDestination(target.url)
    if (base === undefined) throw new CofferError('validation', `The destination ${DESTINATION_RULE}.`)
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

async function readRequest({
  method,
  path,
  query,
  headers,
  prefix,
  readBody,
}: RelayRequest): Promise<ProxyRequest> {
  return { method, path, query, headers: passRequestHeaders(headers, prefix), body: await readBody() }
}

type Used = Pick<TokenRecord, 'id' | 'type' | 'created_at' | 'containers'>

/** The request with the data of tokens in place, and the tokens. */
async function fill(
  session: Session,
  { proxy }: Opened,
  request: ProxyRequest,
  transform: 'reveal' | 'mask',
): Promise<{ filled: ProxyRequest; used: readonly Used[] }> {
  const template = proxy?.disable_detokenization === true ? undefined : findTemplate(request)
  const document = template?.document
  if (template === undefined || document === undefined) return requireInside({ filled: request, used: [] })
  const found = await findExpressions(document, session, 'body', MOST_TOKENS)
  return session.inUnit(async (context) => {
    const used: Used[] = []
    const using = { ...context, caller: usingBy('proxy:invoke', context.caller) }
    const reached = ({ id, type, created_at, containers }: Used) =>
      used.push({ id, type, created_at, containers })
    const access = { permission: USE.permission, whole: 'body', transform, reached }
    return requireInside({ filled: template.fill(await detokenize(using, document, found, access)), used })
  }, 'soon')
}

/** Contract: called with the values in place, because a value can be `..`. @throws CofferError `validation` */
function requireInside<T extends { filled: ProxyRequest }>(call: T): T {
  if (!leadsElsewhere(call.filled.path)) return call
  throw new CofferError(
    'validation',
    'The path of a call has no segments such as . or .., which lead elsewhere.',
  )
}

async function logUses(context: Context, used: readonly Used[]): Promise<void> {
  for (const token of used) await reachToken(context, token, USE.log)
}

function passRequestHeaders(headers: ProxyRequest['headers'], prefix: string): Record<string, string> {
  const passed = passHeaders(headers, prefix)
  for (const name of NOT_PASSED) delete passed[name]
  return passed
}

function spellTarget({ pathname }: URL, { path, query }: ProxyRequest): string {
  return `${pathname.replace(/\/+$/, '') + path || '/'}${query === '' ? '' : `?${query}`}`
}

/** The answer of the destination; on 2xx after the transforms. */
async function finish(
  session: Session,
  opened: Opened,
  { status, headers, body, collect }: OutboundAnswer,
  prefix: string,
): Promise<RelayAnswer> {
  const transforms = opened.proxy?.response_transforms ?? []
  const spell = (given: ProxyMessage['headers']) => ({
    ...passAnswerHeaders(given, prefix),
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
    [`${prefix}-proxy-destination-status`]: String(status),
  })
  if (transforms.length === 0 || status < 200 || status > 299)
    return { status, headers: spell(headers), body, collect }
  let answer: ProxyMessage = { headers, body: await collect(MOST_TRANSFORMED_BYTES) }
  for (const [index, transform] of transforms.entries()) {
    if (transform.type === 'mask') {
      const text = textOfAnswer(answer)
      const args = { text, expression: transform.expression }
      const spans = await run(session, opened, { transform, index, direction: 'response', args })
      answer = { ...answer, body: applyMask(text, spans, transform.replacement) }
      continue
    }
    const code = { transform, index, direction: 'response', args: describeAnswer(answer) } as const
    // On the way back, code has no answer to give instead of one.
    answer = readTransformed(await run(session, opened, code), answer, 'response', prefix) as ProxyMessage
  }
  const whole = answer.body
  const stream = async function* () {
    yield whole
  }
  return { status, headers: spell(answer.headers), body: stream(), collect: async () => whole }
}

interface TransformRun {
  transform: ProxyTransform
  index: number
  direction: 'request' | 'response'
  args: Readonly<Record<string, unknown>>
}

/** Runs a transform where code of reactors runs. @throws CofferError that of the code */
async function run(
  session: Session,
  { proxy, bound, settings }: Opened,
  { transform, index, direction, args }: TransformRun,
): Promise<unknown> {
  const { tenant, actor } = session.caller
  const isCode = transform.type === 'code'
  const client = isCode ? bound : undefined
  const invocation: Invocation = {
    tenant,
    caller: `${actor.type}/${actor.id}`,
    rights: client?.actor.id,
    reactor: `proxy/${proxy?.id}/${direction}/${index}`,
    code: isCode ? transform.code : MASK_PROGRAM,
    args,
    configuration: isCode ? (proxy?.configuration ?? {}) : {},
    client: client === undefined ? null : createClientCall(session, client),
    transforms: direction,
  }
  const { outcome } = await (await session.reactors(settings)).run(invocation)
  if (outcome.kind === 'failure') throw outcome.error
  return outcome.raw
}
