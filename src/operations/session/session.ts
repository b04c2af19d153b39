/** Sessions: keys for browsers, which live for minutes and may do what a private application says. */
import { checkGrants, MAX_RULES } from '../../domain/access/application.js'
import type { Permission } from '../../domain/access/permissions.js'
import {
  LONGEST_SESSION_HOURS,
  MOST_LIVE_SESSIONS,
  SESSION_KEY,
  SESSION_MINUTES,
} from '../../domain/access/session.js'
import { formatDate, parseLogDate } from '../../domain/dates.js'
import { type Lenient, omitUndefined } from '../../domain/omit-undefined.js'
import { collectLater, refuseErrors } from '../../domain/property-errors.js'
import type { SessionRecord } from '../../domain/records/records.js'
import { drawKey } from '../../domain/text/base58.js'
import { CofferError, conflict, validationError } from '../../errors.js'
import { type CheckTools, type Context, operation } from '../../framework/operation.js'
import { component, date, text } from '../../framework/output.js'
import { type Infer, inputSchema } from '../../framework/schema.js'
import { findNewest } from '../../storage/pages.js'
import { permissionList, ruleProperties } from '../application/application-record.js'

const MINUTE_MS = 60_000
/** Sessions are stored under tenant number 0, because a session key does not reveal the tenant. */
const NO_TENANT = 0

export const createSession = operation({
  name: 'session create',
  summary: 'Create a session: a key for a browser, which may do nothing until it is authorized.',
  details:
    `The key expires after ${SESSION_MINUTES} minutes. Give the nonce to your server, which authorizes the session with it.\n` +
    'It acts as the public application whose key is in use.',
  permissions: [],
  onlyFor: 'public',
  route: 'POST /sessions',
  ignoresIdempotencyKey: true,
  success: 201,
  input: inputSchema([], {}),
  output: component('Session', ['session_key', 'nonce', 'expires_at'], {
    session_key: { ...text, description: 'Shown only here.' },
    nonce: { ...text, description: 'Authorizes the session, once.' },
    expires_at: date,
  }),
  examples: [
    'coffer app key create "starter public" --fields key -o value | coffer session create --api-key-stdin',
  ],
  async run(context) {
    const { caller, random, now } = context
    await requireRoom(context, 'application')
    const key = drawKey(random, SESSION_KEY)
    const nonce = drawKey(random)
    const expires = now + SESSION_MINUTES * MINUTE_MS
    const record: SessionRecord = {
      id: await context.hashSecret(key),
      tenant: caller.tenant,
      application_id: caller.actor.id,
      nonce: await context.hashSecret(nonce),
      expires,
    }
    await context.store.insert('session', NO_TENANT, record, { expires, fresh: true })
    return { session_key: key, nonce, expires_at: formatDate(expires) }
  },
})

const authorizeInput = {
  ...inputSchema(['nonce'], {
    nonce: { type: 'string', maxLength: 100, sensitive: true, description: 'The nonce of the session.' },
    permissions: {
      ...permissionList,
      flag: 'permission',
      description: 'A permission of the session: token:…, reactor:invoke or proxy:invoke.',
    },
    rules: {
      type: 'array',
      maxItems: MAX_RULES,
      flag: 'rule',
      description: 'An access rule as JSON, with a container or with conditions.',
      items: {
        type: 'object',
        properties: ruleProperties,
        required: ['priority', 'transform', 'permissions'],
        needsOneOf: ['container', 'conditions'],
        // An unknown property may be meant to restrict the rule, so it is refused rather than ignored.
        additionalProperties: false,
      },
    },
    expires_at: {
      type: 'string',
      description: `When the session expires, at most ${LONGEST_SESSION_HOURS} hours ahead; by default as created.`,
    },
  }),
  needsOneOf: ['permissions', 'rules'],
} as const

type AuthorizeInput = Infer<typeof authorizeInput>

export const authorizeSession = operation({
  name: 'session authorize',
  summary: 'Say what a session may do, as a private application.',
  details:
    'By default the session never does what the application that authorizes it cannot do at that moment: the rules of\n' +
    'both decide. With the setting sessions.beyond_authorizer true, those of the session alone do.',
  permissions: [],
  onlyFor: 'private',
  route: 'POST /sessions/authorize',
  success: 200,
  input: authorizeInput,
  examples: [
    'coffer app key create "starter public" --fields key -o value | coffer session create --api-key-stdin --fields nonce -o value > nonce.txt && coffer app key create "starter private" --fields key -o value | coffer session authorize --nonce @nonce.txt --permission token:create --api-key-stdin',
    `coffer app key create "starter public" --fields key -o value | coffer session create --api-key-stdin --fields nonce -o value > nonce.txt && coffer app key create "starter private" --fields key -o value | coffer session authorize --nonce @nonce.txt --rule '{"priority":1,"conditions":[{"attribute":"id","operator":"equals","value":"card-1"}],"transform":"mask","permissions":["token:update"]}' --api-key-stdin`,
  ],
  check: checkAuthorization,
  async run(context, { nonce, permissions = [], rules = [] }, expires) {
    const record = await requireSession(context, nonce)
    if (record.authorized !== undefined) throw conflict('The session of this nonce is authorized already.')
    await requireRoom(context, 'authorizer')
    const authorized: NonNullable<SessionRecord['authorized']> = {
      by: context.caller.actor.id,
      permissions: [...new Set(permissions)] as Permission[],
      rules: rules.map((rule) => ({ ...rule, permissions: [...new Set(rule.permissions)] as Permission[] })),
    }
    const changed = { ...record, authorized, ...omitUndefined({ expires }) }
    await context.store.replace('session', NO_TENANT, changed, { expires: changed.expires })
    return undefined
  },
})

/** @returns when the session expires, ms since the epoch, if that is given. @throws CofferError `validation` */
async function checkAuthorization(input: Lenient<AuthorizeInput>, tools: CheckTools) {
  const errors = checkGrants('session', input)
  const { expires_at: given } = input
  const expires =
    given === undefined ? undefined : await collectLater(errors, 'expires_at', () => readExpiry(given, tools))
  refuseErrors(errors)
  return expires
}

async function readExpiry(given: string, tools: CheckTools): Promise<number> {
  const expires = parseLogDate(given)
  const ahead = expires - (await tools.now())
  if (ahead > 0 && ahead <= LONGEST_SESSION_HOURS * 60 * MINUTE_MS) return expires
  throw validationError(`must be in the future, at most ${LONGEST_SESSION_HOURS} hours ahead`)
}

/** @throws CofferError `not_found`, also for the session of another tenant */
async function requireSession(context: Context, nonce: string): Promise<SessionRecord> {
  const value = await context.hashSecret(nonce)
  const record = await findNewest(context.store, 'session', NO_TENANT, { field: 'nonce', value })
  const isItsOwn = record?.tenant === context.caller.tenant
  if (isItsOwn && context.isEqualSecret(record.nonce, value)) return record
  throw new CofferError('not_found', 'No session has this nonce, or it has expired.')
}

/** Limits the live sessions that the calling application created, or authorized. */
async function requireRoom({ store, caller }: Context, field: 'application' | 'authorizer'): Promise<void> {
  const where = { field, value: caller.actor.id }
  const { records } = await store.find('session', NO_TENANT, { where, page: MOST_LIVE_SESSIONS, size: 1 })
  if (records.length === 0) return
  const retryAfterSeconds = SESSION_MINUTES * 60
  throw new CofferError(
    'rate_limited',
    `This application has ${MOST_LIVE_SESSIONS.toLocaleString('en')} sessions. Try again when some have expired.`,
    { retryAfterSeconds },
  )
}
