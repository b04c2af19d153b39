/**
 * The operations of the screens that manage proxies, webhooks, people, the tenant and tokens, and what the page hides
 * in the answers of these operations.
 */
import { isObject } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { SENT_EVENT_TYPES } from '../domain/webhook/events.js'
import type { OperationInput } from '../framework/context.js'
import type { OperationName, ResultOf } from '../operations/all.js'
import { refusalOf } from '../operations/webhook/waiting.js'
import { hideRevealed } from './page-tokens.js'
import type { Place } from './place.js'
import { describeLength, describeShape } from './shape.js'

export type Performed = {
  [Name in OperationName]?: {
    /** The operation is rolled back, so it appears neither in the log nor in the usage report. */
    isUndone?: true
    take?(input: OperationInput, place: Place): OperationInput | Promise<OperationInput>
    give?(result: ResultOf<Name>, input: OperationInput, place: Place): unknown
  }
}

export const UNDONE = { isUndone: true } as const

export const MANAGEMENT: Performed = {
  'token list': { ...UNDONE, give: giveTokens },
  'token search': { ...UNDONE, give: giveTokens },
  'token create': {
    take: ({ token_intent_id: _, ...input }) => input,
    give: giveToken,
  },
  'token update': { give: giveToken },
  'proxy list': { ...UNDONE, give: giveProxies },
  'proxy create': { give: hideProxySecrets },
  'proxy patch': {},
  'proxy delete': {},
  'webhook list': { ...UNDONE, give: giveWebhooks },
  'webhook create': { give: hideQuery },
  'webhook update': { take: keepAddress, give: hideQuery },
  'webhook delete': {},
  'webhook deliveries': { ...UNDONE, give: (list) => ({ ...list, data: list.data.map(hideAnswer) }) },
  'webhook resend': { give: hideAnswer },
  // Leaves out the events that this server never sends.
  'webhook event-types': { ...UNDONE, give: () => SENT_EVENT_TYPES },
  'member list': UNDONE,
  'member update': {},
  'member delete': {},
  'invite list': UNDONE,
  'invite create': {},
  'invite resend': {},
  'invite delete': {},
  'invite outbox': UNDONE,
  'tenant get': UNDONE,
  'tenant update': {},
}

async function giveTokens(list: ResultOf<'token list'>, _: OperationInput, place: Place) {
  return { ...list, data: await hideRevealed(place, list.data) }
}

async function giveToken(token: ResultOf<'token create'>, _: OperationInput, place: Place) {
  return (await hideRevealed(place, [token]))[0]
}

/** `refusal`: why this server refuses to call the address. Undefined: the address is allowed. */
export type Judged<T> = T & { refusal?: string }

async function giveProxies(list: ResultOf<'proxy list'>, _: OperationInput, { control }: Place) {
  const outbound = await control.app.outbound()
  const give = (proxy: (typeof list.data)[number]) => {
    const shown = hideProxySecrets(proxy)
    return { ...shown, ...omitUndefined({ refusal: refusalOf(outbound, shown.destination_url) }) }
  }
  return { ...list, data: list.data.map(give) }
}

async function giveWebhooks(list: ResultOf<'webhook list'>, _: OperationInput, { control }: Place) {
  const outbound = await control.app.outbound()
  const give = (webhook: (typeof list.data)[number]) => ({
    ...hideQuery(webhook),
    ...omitUndefined({ refusal: refusalOf(outbound, webhook.url) }),
  })
  return { ...list, data: list.data.map(give) }
}

export function hideValues(configuration: object): Record<string, string> {
  return Object.fromEntries(Object.keys(configuration).map((name) => [name, '']))
}

/**
 * Removes the key of the proxy. Also hides values in the configuration and in the transforms, because these values may
 * be secrets, such as a key of the destination.
 */
function hideProxySecrets(proxy: ResultOf<'proxy create'>) {
  const { key: _, requested: __, request_transform: ___, response_transform: ____, ...shown } = proxy
  return {
    ...shown,
    configuration: hideValues(proxy.configuration),
    request_transforms: proxy.request_transforms.map(hideOptions),
    response_transforms: proxy.response_transforms.map(hideOptions),
  }
}

function hideOptions<T extends object>(transform: T): T {
  const { options } = transform as { options?: unknown }
  if (!isObject(options)) return transform
  const hidden = Object.entries(options).map(([name, value]) => [
    name,
    name === 'value' || name === 'token' ? describeShape(value, new Set()) : value,
  ])
  return { ...transform, options: Object.fromEntries(hidden) }
}

/** Replaces the query of an address, because the query may contain a secret of the receiver. */
const HIDDEN_QUERY = '?…'

function hideQuery<T extends { url: string }>(webhook: T): T {
  return { ...webhook, url: webhook.url.replace(/\?.*$/s, HIDDEN_QUERY) }
}

/** If the page sends an address with a hidden query, takes the stored address instead. */
async function keepAddress(input: OperationInput, { control, tenant }: Place): Promise<OperationInput> {
  const { id, url } = input
  if (typeof id !== 'string' || (typeof url === 'string' && !url.endsWith(HIDDEN_QUERY))) return input
  const ask = { operation: 'webhook get', input: { id }, as: { reveal: false, tenant } } as const
  const { result } = await control.app.ask(ask)
  return url === undefined || url === hideQuery(result).url ? { ...input, url: result.url } : input
}

/** The receiver may have read a token, so the answer of the receiver may contain data of the token. */
function hideAnswer<T extends { answer?: string }>({ answer, ...delivery }: T) {
  return { ...delivery, ...(answer !== undefined && { answer: describeLength(answer) }) }
}

/** The path of a proxy call. The destination gets the part below `/proxy/`. */
const FORWARDED = /^(\/proxy\/).+$/s
/** A segment that is probably data, such as a card number. */
const DIGITS = /(?<=\/)[\d -]{9,}(?=\/|$)/g

export function hideInPath<T extends { path: string }>(request: T): T {
  const path = request.path
    .replace(FORWARDED, '$1…')
    .replaceAll(DIGITS, (digits) => `(${digits.length} digits)`)
  return path === request.path ? request : { ...request, path }
}
