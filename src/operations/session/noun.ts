/**
 * Sessions are short-lived keys for browsers. A public application creates a session. A private application
 * authorizes the session.
 */
import { SESSION_KEY } from '../../domain/access/application.js'
import { formatDate, parseLogDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { SessionRecord } from '../../domain/records/records.js'
import { randomKey } from '../../domain/text/base58.js'
import type { EventType } from '../../domain/webhook/events.js'
import { CofferError, conflict, validationError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { keyOf } from '../../framework/declaration.js'
import { change } from '../../framework/operation.js'
import { component, date, text } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { findNewest } from '../../storage/store.js'
import { checkRights, permissionList, readRights, ruleList } from '../application/application-record.js'

const SESSION_MINUTES = 3
const LONGEST_HOURS = 24
/** An application may have created at most this many live sessions, and authorized at most this many. */
export const MAX_LIVE_SESSIONS = 10_000
const MINUTE_MS = 60_000
const CREATE_SESSION =
  'coffer app key create "starter public" --fields key -o value | coffer session create --api-key-stdin'
const AUTHORIZE_SESSION = `${CREATE_SESSION} --fields nonce -o value > nonce.txt && coffer app key create "starter private" --fields key -o value | coffer session authorize --nonce @nonce.txt`
/** Sessions are stored under tenant number 0, because a session key does not name its tenant. */
const NO_TENANT = 0

export const createSession = change({
  name: 'session create',
  plaintext: 'refused',
  summary: 'Create a session: a key for a browser. The key has no rights before the session is authorized.',
  details:
    `The key expires after ${SESSION_MINUTES} minutes. Give the nonce to your server, which authorizes the session with it.\n` +
    'The session acts as the public application whose key is in use.',
  access: keyOf('public'),
  route: 'POST /sessions',
  http: { ignoresIdempotencyKey: true, status: 201 },
  output: component('Session', ['session_key', 'nonce', 'expires_at'], {
    session_key: { ...text, description: 'Shown only here.', isShownOnce: true },
    nonce: { ...text, description: 'Authorizes the session, once.' },
    expires_at: date,
  }),
  examples: [CREATE_SESSION],
  async run(context) {
    const { caller, random, hashSecret } = context
    const { tenant, actor } = caller
    await requireRoom(context, 'application')
    const key = randomKey(random, SESSION_KEY)
    const nonce = randomKey(random)
    const expires = context.now + SESSION_MINUTES * MINUTE_MS
    const hashes = { id: await hashSecret(key), nonce: await hashSecret(nonce) }
    const made = { told_as: context.createUuid(), created_at: context.date }
    const record = { ...hashes, ...made, tenant, application_id: actor.id, expires }
    await context.store.insert('session', NO_TENANT, record, { expires, fresh: true })
    await emit(context, 'session.created', record)
    return { session_key: key, nonce, expires_at: formatDate(expires) }
  },
})

export const authorizeSession = change({
  name: 'session authorize',
  summary: 'Give rights to a session, as a private application.',
  details:
    'A request of the session must be allowed by the rights of the session and also by the rights of your application. If the\n' +
    'setting sessions.beyond_authorizer is true, only the rights of the session decide.',
  access: keyOf('private'),
  route: 'POST /sessions/authorize',
  http: { status: 200 },
  input: {
    ...inputSchema(['nonce'], {
      nonce: { type: 'string', maxLength: 100, sensitive: true, description: 'The nonce of the session.' },
      permissions: {
        ...permissionList,
        description: 'A permission of the session: token:…, reactor:invoke or proxy:invoke.',
      },
      rules: ruleList('An access rule, with a container or with conditions.', {
        required: ['priority', 'transform', 'permissions'],
        needsOneOf: ['container', 'conditions'],
      }),
      expires_at: {
        type: 'string',
        duration: 'ahead',
        description: `When the session expires, at most ${LONGEST_HOURS} hours ahead; default: ${SESSION_MINUTES} minutes after its creation.`,
      },
    }),
    needsOneOf: ['permissions', 'rules'],
  },
  examples: [
    `${AUTHORIZE_SESSION} --permission token:create --api-key-stdin`,
    `${AUTHORIZE_SESSION} --rule 'id=card-1 mask token:update' --api-key-stdin`,
  ],
  check: (input, tools) => checkRights('session', input, tools, readExpiry),
  async run(context, { nonce, ...rights }, expires) {
    const record = await requireSession(context, nonce)
    if (record.authorized !== undefined) throw conflict('The session of this nonce is authorized already.')
    await requireRoom(context, 'authorizer')
    const authorized = { by: context.caller.actor.id, ...readRights(rights) }
    const changed = { ...record, authorized, ...omitUndefined({ expires }) }
    await context.store.replace('session', NO_TENANT, changed, { expires: changed.expires })
    await emit(context, 'session.authorized', changed)
    return undefined
  },
})

async function emit({ store, caller, audit }: Context, type: EventType, record: SessionRecord) {
  const { told_as, created_at, application_id: id, expires, authorized = {} } = record
  const { name } = (await store.get('application', caller.tenant, id)) ?? {}
  const issued = { created_by: id, created_at, issued_to_application: { id, name } }
  audit.emit({ type, about: { ...authorized, id: told_as, ...issued, expires_at: formatDate(expires) } })
}

function readExpiry(text: string, now: number): number {
  const expires = parseLogDate(text)
  const ahead = expires - now
  if (ahead > 0 && ahead <= LONGEST_HOURS * 60 * MINUTE_MS) return expires
  throw validationError(`must be in the future, at most ${LONGEST_HOURS} hours ahead`)
}

/** @throws CofferError `not_found`, also if the session belongs to another tenant */
async function requireSession(context: Context, nonce: string): Promise<SessionRecord> {
  const value = await context.hashSecret(nonce)
  const record = await findNewest(context.store, 'session', NO_TENANT, { field: 'nonce', value })
  const isItsOwn = record?.tenant === context.caller.tenant
  if (isItsOwn && context.isEqualSecret(record.nonce, value)) return record
  throw new CofferError('not_found', 'No session has this nonce, or it has expired.')
}

async function requireRoom({ store, caller }: Context, field: 'application' | 'authorizer'): Promise<void> {
  const where = { field, value: caller.actor.id }
  const { records } = await store.find('session', NO_TENANT, { where, page: MAX_LIVE_SESSIONS, size: 1 })
  if (records.length === 0) return
  const message = `This application has ${MAX_LIVE_SESSIONS} sessions. Try again when some have expired.`
  throw new CofferError('rate_limited', message, { retryAfterSeconds: SESSION_MINUTES * 60 })
}

export const noun = {
  name: 'session',
  summary: 'Give browsers keys that expire after minutes or hours',
  operations: [createSession, authorizeSession],
}
