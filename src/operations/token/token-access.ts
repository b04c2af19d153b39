/** Access of a caller to tokens: finding and listing, access rules, logging and usage. */
import type { Target } from '../../domain/access/access.js'
import { type Permission, stricterTransform, type Transform } from '../../domain/access/permissions.js'
import type { EntityType } from '../../domain/records/entity-types.js'
import { metadataLookups } from '../../domain/records/index-fields.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import { type Listing, readList } from '../../framework/list.js'
import type { Context, LogEntry, Session } from '../../framework/operation.js'
import type { List, PageRequest } from '../../framework/page.js'
import { eachRecord } from '../../storage/pages.js'
import type { Condition } from '../../storage/store.js'
import { inTurns } from './in-turns.js'
import { recordUse } from './token-activity.js'
import {
  addExtras,
  redactDuplicate,
  type TokenFilters,
  type TokenView,
  viewToken,
  wantedTypes,
} from './token-attributes.js'

const SETS_IN_A_TURN = 500

/** The entity type of a token in the log: cards and banks have their own. */
export function entityTypeOf({ type }: Pick<TokenRecord, 'type'>): EntityType {
  return type === 'card' || type === 'bank' ? type : 'token'
}

type Recorded = Pick<TokenRecord, 'id' | 'type' | 'containers' | 'created_at'>

/** Records an access to the token for the log alone: it does not count as a use in the usage report. */
export function recordToken(
  context: Context,
  record: Pick<Recorded, 'id' | 'type' | 'containers'>,
  as?: LogEntry,
  transform?: Transform,
): void {
  context.audit.record(entityTypeOf(record), record.id, as, record.containers, transform)
}

/** Records an access to the token for the log and the usage report. */
export async function recordAccess(context: Context, record: Recorded, as?: LogEntry, transform?: Transform) {
  recordToken(context, record, as, transform)
  await recordUse(context, record)
}

/** @throws CofferError `forbidden` if `permission` is not granted on all containers of the token */
export function requireTransform(context: Context, permission: Permission, token: Target): Transform {
  const transform = context.caller.transform(permission, token)
  if (transform !== undefined) return transform
  throw new CofferError('forbidden', `${permission} is not granted on the containers of this token.`)
}

/** The answer to a write: masked, even if the rule reveals. */
export function viewWritten(record: TokenRecord, transform: Transform): TokenView {
  return addExtras(viewMasked(record, transform), false)
}

function viewMasked(record: TokenRecord, transform: Transform): TokenView {
  return viewToken(record, stricterTransform('mask', transform))
}

export async function filterConditions(context: Context, filters: TokenFilters): Promise<Condition[]> {
  const { id, metadata = {}, container = [] } = filters
  const types = wantedTypes(filters)
  const ids = id === undefined ? [] : [{ ids: id }]
  const anyType = types === undefined ? [] : [{ or: types.map((value) => ({ field: 'type', value })) }]
  const notes = Object.entries(metadata).map(([key, value]) => ({ or: metadataLookups(key, value) }))
  const places: Condition[] = []
  for (const pattern of container) places.push(await inContainer(context, pattern))
  return [...ids, ...anyType, ...notes, ...(places.length === 0 ? [] : [{ or: places }])]
}

/** How tokens of a list are shown and logged. A token's containers may have changed since it was located. */
export const SHOWN_TOKENS: Listing<'token', TokenView> = {
  kind: 'token',
  show: ({ caller }, record) => {
    const transform = caller.transform('token:read', record)
    return transform === undefined ? undefined : viewToken(record, transform)
  },
  log: ({ id, type, containers, created_at }) => {
    const noted = { id, type, containers, created_at }
    return (context) => recordAccess(context, noted, undefined, context.caller.transform('token:read', noted))
  },
}

/** A page of matching tokens on which the caller has token:read and `needed`, each with the transform of its rule. */
export async function listTokensWhere(
  session: Session,
  paging: PageRequest,
  toConditions: (context: Context) => Promise<readonly Condition[]>,
  needed: readonly Permission[] = [],
): Promise<List<TokenView>> {
  const where = async (context: Context) => whereGranted(context, await toConditions(context), needed)
  return readList(session, { ...SHOWN_TOKENS, where, matches: matchesId(session.caller, needed) }, paging)
}

/**
 * Tests whether the caller has token:read and `needed` on a token. Undefined unless the rules of the caller depend on
 * token ids: then the index of containers cannot decide, and each token is tested.
 */
export function matchesId(
  caller: Caller,
  needed: readonly Permission[],
): ((record: TokenRecord) => boolean) | undefined {
  if (caller.dependsOnId !== true) return undefined
  return (record) =>
    (['token:read', ...needed] as const).every((each) => caller.transform(each, record) !== undefined)
}

/**
 * Restricts `conditions` to the container sets on which the caller has token:read and `needed`, unless {@link matchesId}
 * does. Sets are few and tokens many, so the rules are evaluated per set and the tokens are found by the index of sets.
 */
export async function whereGranted(
  context: Context,
  conditions: readonly Condition[],
  needed: readonly Permission[],
): Promise<Condition | undefined> {
  const { caller } = context
  const permissions = new Set<Permission>(caller.dependsOnId === true ? [] : ['token:read', ...needed])
  const scoped = [...permissions].filter((permission) => !caller.holdsEverywhere(permission))
  const and = [...conditions]
  if (scoped.length > 0) {
    const granted = await whereContainers(context, (containers) =>
      scoped.every((permission) => caller.transform(permission, { containers }) !== undefined),
    )
    and.push(granted)
  }
  return and.length === 0 ? undefined : { and }
}

/**
 * Tokens in a container; a trailing * matches what follows. A container and those below it are indexed; any other
 * prefix is compared with the container sets in use.
 */
export async function inContainer(context: Context, pattern: string): Promise<Condition> {
  if (!pattern.endsWith('*')) return { field: 'container', value: pattern }
  const prefix = pattern.slice(0, -1)
  if (prefix.endsWith('/')) return { field: 'ancestor', value: prefix }
  return whereContainers(context, (containers) => containers.some((each) => each.startsWith(prefix)))
}

/**
 * Tokens whose set of containers `matches`. Compares every distinct set that a token of the tenant has or had, with turns
 * for other requests in between.
 */
export async function whereContainers(
  { store, caller, turns }: Context,
  matches: (containers: readonly string[]) => boolean,
): Promise<Condition> {
  const found: Condition[] = []
  const sets = eachRecord(store, 'containers', caller.tenant)
  for await (const { id, containers } of inTurns(sets, SETS_IN_A_TURN, turns))
    if (matches(containers)) found.push({ field: 'containers', value: id })
  return { or: found }
}

/** The original of a duplicate; redacted if the caller may not read it. */
export async function showDuplicate(context: Context, original: TokenRecord): Promise<TokenView> {
  const transform = context.caller.transform('token:read', original)
  const shown = stricterTransform('mask', transform ?? 'redact')
  const as = { operation: 'read', message: 'Token retrieved' } as const
  recordToken(context, original, as, shown)
  const view =
    transform === undefined ? redactDuplicate(viewToken(original, 'redact')) : viewMasked(original, transform)
  return addExtras(view, true)
}
