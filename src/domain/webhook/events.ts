import type { EntityType } from '../records/log-record.js'
import type { DeliveryRecord } from '../records/records.js'

const MADE = 'created_by created_at'
const CHANGED = `${MADE} modified_by modified_at`
const TOKEN = 'id type metadata containers fingerprint fingerprint_expression search_indexes expires_at'
const APPLICATION = 'id type name permissions rules created_by created_at'
const PROXY = 'id name application_id destination_url require_authentication=require_auth'
const SESSION = 'id created_by created_at expires_at issued_to_application'
const CARD = 'token_id token_intent_id card_brand'
const NETWORK_TOKEN = `id status token_id token_intent_id ${MADE}`
const INVITATION = `id email role expires_at ${MADE}`

/**
 * The attributes in each event. In `name=stored`, `name` is the name in the event, and `stored` is the name in the
 * record.
 */
const EVENTS = {
  'token.created': `${TOKEN} ${MADE}`,
  'token.updated': `${TOKEN} ${CHANGED}`,
  'token.read': 'id type',
  'token.deleted': 'id',
  'token.expired': 'id',
  'token.property.expired': 'id property_name',
  'token-intent.created': `id type fingerprint expires_at ${MADE}`,
  'token-intent.deleted': 'id',
  'token-intent.converted': 'id type',
  'application.created': APPLICATION,
  'application.updated': `${APPLICATION} modified_by modified_at`,
  'application.deleted': 'id',
  'application.key.created': `id application_id ${MADE}`,
  'application.key.deleted': 'id application_id',
  'proxy.created': `${PROXY} ${MADE}`,
  'proxy.updated': `${PROXY} ${CHANGED}`,
  'proxy.deleted': 'id',
  'proxy.invoked': 'id name type response',
  'reactor.created': `id name ${MADE}`,
  'reactor.updated': `id name ${CHANGED}`,
  'reactor.deleted': 'id',
  'reactor.invoked': 'id name',
  'reactor.completed': 'id name elapsed_ms',
  'reactor.failed': 'id name elapsed_ms error',
  'session.created': SESSION,
  'session.authorized': `${SESSION} permissions rules`,
  '3ds.session.created': `id type tenant_id ${MADE} device expires_at ${CARD}`,
  '3ds.session.method-completed': 'id type tenant_id',
  '3ds.session.authenticated': `id type authentication_status ${MADE} device expires_at ${CARD}`,
  '3ds.session.challenge-completed': 'id type tenant_id authentication_status',
  '3ds.session.decoupled-challenge-notification': 'id type tenant_id',
  '3ds.session.challenge-result-retrieved': `id type tenant_id ${MADE} device expires_at ${CARD}`,
  'account-updater.job.created': 'id status',
  'account-updater.job.completed': 'id status',
  'account-updater.job.failed': 'id status',
  'network-token.created': NETWORK_TOKEN,
  'network-token.updated': `${NETWORK_TOKEN} modified_by modified_at`,
  'network-token.deleted': 'id',
  'network-token.cryptogram.created': 'id',
  'google-pay.created': `id status ${MADE} expires_at`,
  'google-pay.deleted': `id status ${CHANGED} expires_at`,
  'google-pay.retrieved': 'id',
  'tenant.updated': `id name ${CHANGED}`,
  'tenant.invitation.created': INVITATION,
  'tenant.invitation.accepted': INVITATION,
  'tenant.invitation.resent': INVITATION,
  'tenant.invitation.deleted': INVITATION,
  'tenant.member.created': `id user_id role ${MADE}`,
  'tenant.member.deleted': 'id',
} as const

/** Webhooks can subscribe to these events, but this server sends these events only as test events. */
const SILENT = (
  'tenant.created tenant.deleted http.request ' +
  'reactor.vulnerabilities_discovered proxy.vulnerabilities_discovered tenant.vulnerabilities_notified'
).split(' ')

export type EventType = keyof typeof EVENTS

export const SENT_EVENT_TYPES: readonly string[] = Object.keys(EVENTS).sort()

export const EVENT_TYPES: readonly string[] = [...SENT_EVENT_TYPES, ...SILENT].sort()

/**
 * `about`: the record from which the attributes in {@link EVENTS} are taken. `more`: further objects, sent unchanged.
 */
export interface WebhookEvent {
  type: EventType
  about: object
  more?: Record<string, object> | undefined
}

/** A test event. The webhooks receive the event even if they do not subscribe to its type. */
export interface TriggeredEvent {
  type: string
  data: Record<string, object>
  webhooks: readonly string[]
}

const ATTRIBUTES = new Map(
  Object.entries(EVENTS).map(([type, attributes]) => {
    const named = attributes.split(' ').map((attribute) => attribute.split('='))
    return [type, named.map(([name = '', stored = name]) => ({ name, stored }))]
  }),
)

/** Returns the names that the attributes have in an event of this type. */
export function attributesOf(type: EventType): string[] {
  return ATTRIBUTES.get(type)!.map(({ name }) => name)
}

export function isComplete(type: EventType, about: object): boolean {
  return ATTRIBUTES.get(type)!.every(({ stored }) => Object.hasOwn(about, stored))
}

const EVENT_PREFIXES: { [E in EntityType]?: string } = {
  account_updater_job: 'account-updater.job',
  card: 'token',
  bank: 'token',
  token_intent: 'token-intent',
  network_token: 'network-token',
  invitation: 'tenant.invitation',
  member: 'tenant.member',
}

/** Returns undefined if the operation has no event, or if its handler emits the event. */
export function eventOf(entity: EntityType, operation: string): EventType | undefined {
  const type = `${EVENT_PREFIXES[entity] ?? entity}.${operation.replace(/e$/, 'ed')}`
  return Object.hasOwn(EVENTS, type) && entity !== 'tenant' ? (type as EventType) : undefined
}

export function describeEvent({ type, about, more }: WebhookEvent): Record<string, object> {
  const record = about as Readonly<Record<string, unknown>>
  const payload: Record<string, unknown> = {}
  for (const { name, stored } of ATTRIBUTES.get(type)!)
    if (record[stored] !== undefined) payload[name] = record[stored]
  const object = type
    .slice(0, type.lastIndexOf('.'))
    .replace(/^(?:tenant|3ds|account-updater)\.|\.(?:property|cryptogram)$/, '')
  return { [object.replaceAll(/[.-]/g, '_')]: payload, ...more }
}

export function payloadOf({ event, tenant_id, attempted_at }: DeliveryRecord) {
  return { ...(attempted_at && { delivered_at: attempted_at }), event: { ...event, tenant_id } }
}

const PAUSES_S = [1, 4, 16, 64, 256, 1024, 2400, 2400, 2400]

/**
 * Returns the ms until the next attempt, or undefined after the last attempt. `attempts`: the number of failed
 * attempts.
 */
export function pauseAfter(attempts: number): number | undefined {
  const seconds = PAUSES_S[attempts - 1]
  return seconds && seconds * 1000
}
