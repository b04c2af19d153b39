/**
 * Decides which cases `coffer conform` may run against a server that somebody uses. A safe case reads and changes only
 * records that it has created itself, and its answers do not depend on other records of the tenant.
 */
import type { Case, Step } from './cases.js'

export const REASONS = {
  interface: 'The case cannot be sent over HTTP.',
  owner: 'The case needs the owner of a vault.',
  session: 'The answer depends on a setting of Coffer for sessions.',
  clock: 'The case moves the clock of the server.',
  wait: 'The case waits for work of the server in the background.',
  destination: 'The case needs a server of the test as its destination.',
  sends: 'The call makes the server send requests or mail to others.',
  tenant: 'The call reads or changes the tenant itself.',
  people: 'The call concerns the members of the tenant.',
  remains: 'The call creates a record that nobody can delete.',
  mode: 'The answer depends on whether the tenant is for tests.',
  log: 'The answer depends on the log of the tenant.',
  list: 'The answer depends on other records of the tenant.',
  code: 'The code of the case does more than compute an answer.',
  response: 'Code of the case chooses the HTTP response.',
  deduplicates: 'The tenant deduplicates tokens, so the case could change a token that was there before.',
  deduplication: 'The answer could be a token that was there before.',
  id: 'The case chooses an id that the run cannot replace.',
  idempotency: 'The case chooses an idempotency key that the run cannot replace.',
} as const

export type Reason = keyof typeof REASONS

/**
 * - `create`: creates records
 * - `own`: concerns the records that its input names
 * - `static`: the answer is the same for every tenant
 * - `list`: the answer depends on all records of a kind
 */
type Effect =
  | 'create'
  | 'own'
  | 'static'
  | 'list'
  | Extract<Reason, 'sends' | 'tenant' | 'people' | 'remains' | 'mode' | 'log'>

/** Each operation of the cases. An operation that is missing here is not safe. */
export const EFFECTS: Readonly<Record<string, Effect>> = {
  '3ds authenticate': 'own',
  '3ds create': 'remains',
  '3ds get': 'own',
  '3ds result': 'own',
  '3ds update': 'own',
  'access matrix': 'list',
  'access preview': 'list',
  // The keys of a run have no permission to delete the records of wallets.
  'apple-pay certificate create': 'remains',
  'apple-pay certificate delete': 'own',
  'apple-pay certificate get': 'own',
  'apple-pay create': 'remains',
  'apple-pay delete': 'own',
  // The domains belong to the whole tenant, and not to the run.
  'apple-pay domain deregister': 'tenant',
  'apple-pay domain list': 'tenant',
  'apple-pay domain register': 'tenant',
  'apple-pay domain replace': 'tenant',
  'apple-pay get': 'own',
  'apple-pay merchant create': 'remains',
  'apple-pay merchant delete': 'own',
  'apple-pay merchant get': 'own',
  // The service asks Apple for the session.
  'apple-pay session': 'sends',
  'apple-pay unlink': 'own',
  'app create': 'create',
  'app delete': 'own',
  'app get': 'own',
  'app key create': 'own',
  'app key delete': 'own',
  'app key get': 'own',
  'app key list': 'own',
  'app list': 'list',
  'app permissions': 'static',
  'app regenerate': 'own',
  'app template get': 'list',
  'app template list': 'list',
  'app update': 'own',
  'app whoami': 'static',
  'document create': 'create',
  'document delete': 'own',
  'document get': 'own',
  // The service asks banks about the account.
  'enrich bank': 'sends',
  'enrich card': 'mode',
  'formula create': 'create',
  'formula delete': 'own',
  'formula get': 'own',
  'formula list': 'list',
  'formula update': 'own',
  'google-pay certificate create': 'remains',
  'google-pay certificate delete': 'own',
  'google-pay certificate get': 'own',
  'google-pay create': 'remains',
  'google-pay delete': 'own',
  'google-pay get': 'own',
  'google-pay merchant create': 'remains',
  'google-pay merchant delete': 'own',
  'google-pay merchant get': 'own',
  'intent create': 'create',
  'intent delete': 'own',
  'intent get': 'own',
  'invite create': 'sends',
  'invite delete': 'people',
  'invite get': 'people',
  'invite list': 'people',
  'invite resend': 'sends',
  'key create': 'create',
  'key delete': 'own',
  'key get': 'own',
  'key list': 'list',
  'log entity-types': 'static',
  'log list': 'log',
  'member delete': 'people',
  'member list': 'people',
  'member roles': 'static',
  'member update': 'people',
  // The service asks the card networks. A card that was in the tenant before the run can already have a network
  // token.
  'network-token account': 'sends',
  'network-token create': 'sends',
  'network-token cryptogram': 'sends',
  'network-token delete': 'sends',
  'network-token get': 'sends',
  'network-token resume': 'sends',
  'network-token suspend': 'sends',
  'proxy call': 'sends',
  'proxy create': 'create',
  'proxy delete': 'own',
  'proxy get': 'own',
  'proxy list': 'list',
  'proxy patch': 'own',
  'proxy update': 'own',
  'reactor create': 'create',
  'reactor delete': 'own',
  'reactor get': 'own',
  'reactor list': 'list',
  'reactor patch': 'own',
  'reactor react': 'own',
  'reactor react-async': 'sends',
  'reactor result': 'sends',
  'reactor update': 'own',
  'session authorize': 'create',
  'session create': 'create',
  'tenant delete': 'tenant',
  'tenant get': 'tenant',
  'tenant merchant create': 'tenant',
  'tenant merchant delete': 'tenant',
  'tenant merchant get': 'tenant',
  'tenant merchant list': 'tenant',
  'tenant merchant patch': 'tenant',
  'tenant owner': 'people',
  'tenant security-contact': 'tenant',
  'tenant set-security-contact': 'tenant',
  'tenant transfer-owner': 'people',
  'tenant update': 'tenant',
  'tenant usage': 'tenant',
  'token children': 'own',
  'token create': 'create',
  'token create-child': 'create',
  'token delete': 'own',
  'token detokenize': 'own',
  'token get': 'own',
  'token link': 'own',
  'token list': 'list',
  'token list-after': 'list',
  'token search': 'list',
  'token search-after': 'list',
  'token tokenize': 'create',
  'token unlink': 'own',
  'token update': 'own',
  'updater job create': 'remains',
  'updater job get': 'own',
  'updater job list': 'list',
  // The service asks the card networks.
  'updater real-time': 'sends',
  // A webhook would get events of every record of the tenant.
  'webhook create': 'sends',
  'webhook delete': 'sends',
  'webhook event-types': 'static',
  'webhook get': 'sends',
  'webhook list': 'sends',
  'webhook update': 'sends',
}

/** Inputs with these names are ids of records. */
const ID_KEYS = new Set(['id', 'parent_id', 'child_id', 'key_id', 'application_id', 'token_intent_id'])

/**
 * Code with one of these words may send requests, wait, use much time or memory, or create records whose ids
 * the run does not learn.
 */
const BUSY_CODE =
  /\b(?:while|for|fetch|require|import|process|globalThis|set(?:Timeout|Interval|Immediate)|repeat|alloc|Array|bt|svc|tokens|applications|create|eval|Function|constructor)\b/

const REPLACEABLE = /^[A-Za-z0-9][A-Za-z0-9_-]{0,60}$/

/** `own`: the ids and idempotency keys of the case, which the run replaces by new ids and keys. */
export type Verdict = { isSafe: true; own: readonly string[] } | { isSafe: false; reason: Reason }

export function judgeCase({ steps, except = [] }: Pick<Case, 'steps' | 'except'>): Verdict {
  const no = (reason: Reason): Verdict => ({ isSafe: false, reason })
  if (except.includes('HTTP')) return no('interface')
  const sessions = new Set<string>()
  for (const step of steps) {
    if (step.operation === 'session create')
      for (const name of Object.keys(step.save ?? {})) sessions.add(name)
    if (step.as !== undefined && sessions.has(step.as) && step.expect.status === 403) return no('session')
    const reason = findReason(step)
    if (reason !== undefined) return no(reason)
  }
  const ids = new Set(steps.flatMap(listChosenIds))
  const keys = new Set(steps.flatMap(({ idempotencyKey: key }) => (key === undefined ? [] : [key])))
  const uses = steps.flatMap((step) => [...listTexts(step.input), ...listTexts(step.expect)])
  for (const id of ids) if (!isReplaceable(id, uses)) return no('id')
  for (const key of keys) if (!REPLACEABLE.test(key) || ids.has(key)) return no('idempotency')
  return { isSafe: true, own: [...ids, ...keys] }
}

function findReason({
  operation,
  input = {},
  as = 'owner',
  waitMs,
  untilFound,
  expect,
}: Step): Reason | undefined {
  if (as === 'owner' && needsOwner(operation, input, expect.status)) return 'owner'
  const effect = EFFECTS[operation] ?? 'tenant'
  if (effect !== 'create' && effect !== 'own' && effect !== 'static' && effect !== 'list') return effect
  if (waitMs !== undefined) return 'clock'
  if (untilFound) return 'wait'
  const texts = listTexts(input)
  if (texts.some(({ text }) => text.includes('$stub'))) return 'destination'
  if (hasDeduplication(input)) return 'deduplication'
  if (texts.some(({ key, text }) => key === 'code' && BUSY_CODE.test(text))) return 'code'
  if (operation === 'reactor react' && isObject(expect.result) && 'res' in expect.result) return 'response'
  if (effect === 'list' && expect.status < 400) return 'list'
  return undefined
}

/** Over HTTP, all callers are applications. Applications cannot create official formulas, for example. */
function needsOwner(operation: string, { type }: Record<string, unknown>, status: number): boolean {
  return (
    operation === 'app whoami' || status === 403 || (operation === 'formula create' && type === 'official')
  )
}

function hasDeduplication(value: unknown): boolean {
  return JSON.stringify(value).includes('"deduplicate_token":true')
}

/**
 * Returns the ids that the step contains and does not take from an earlier answer. A body that the server must refuse
 * may have any id.
 */
function listChosenIds({ operation, input = {}, expect }: Step): string[] {
  if (EFFECTS[operation] === 'create' && operation !== 'token create-child' && expect.status >= 400) {
    const texts = listTexts(input).filter(({ key }) => ID_KEYS.has(key))
    return texts.flatMap(({ text }) => (REPLACEABLE.test(text) ? [text] : []))
  }
  return listTexts(input).flatMap(({ key, text }) =>
    ID_KEYS.has(key) && !text.startsWith('$') ? [text] : [],
  )
}

/** An id is replaced in the whole case, so it must not occur as a word of another text. */
function isReplaceable(id: string, uses: readonly { key: string; text: string }[]): boolean {
  if (!REPLACEABLE.test(id)) return false
  const word = new RegExp(`(?<![A-Za-z0-9_-])${id}(?![A-Za-z0-9_-])`)
  return uses.every(({ key, text }) =>
    ID_KEYS.has(key) ? text === id || !word.test(text) : !word.test(text),
  )
}

/** Returns each text in a value, together with the key of the property that contains the text. */
export function listTexts(value: unknown, key = ''): { key: string; text: string }[] {
  if (typeof value === 'string') return [{ key, text: value }]
  if (Array.isArray(value)) return value.flatMap((item) => listTexts(item, key))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, item]) => listTexts(item, name))
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
