/** Reaching tokens on behalf of a caller: which there are, which may be seen, how much of each, and what is noted. */
import type { EntityType } from '../../domain/entity-types.js'
import { metadataField } from '../../domain/index-fields.js'
import { type Permission, stricterTransform, type Transform } from '../../domain/permissions.js'
import type { ContainersRecord, TokenRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import type { Context, LogEntry, Session } from '../../framework/operation.js'
import { type List, type PageRequest, readPage } from '../../framework/page.js'
import { eachRecord } from '../../storage/pages.js'
import type { Condition } from '../../storage/store.js'
import {
  redactDuplicate,
  type TokenFilters,
  type TokenView,
  viewToken,
  wantedTypes,
} from './token-attributes.js'

/** The name a token has in the log: cards and banks go by their own. */
export function entityTypeOf({ type }: Pick<TokenRecord, 'type'>): EntityType {
  return type === 'card' || type === 'bank' ? type : 'token'
}

/** What noting a token inputSchema of it. */
type Noted = Pick<TokenRecord, 'id' | 'type' | 'created_at'>

/** Notes for log and usage report that the operation reached this token. */
export async function reachToken(context: Context, record: Noted, as?: LogEntry): Promise<void> {
  context.reached(entityTypeOf(record), record.id, as)
  // A token of this month was noted when it was created.
  if (record.created_at.startsWith(monthOf(context.date))) return
  const id = activityId(context, record)
  if ((await context.store.get('activity', context.caller.tenant, id)) !== undefined) return
  await insertActivity(context, { id })
}

/** The same for a token that was just created. `isFresh`: its id was never given before. */
export async function reachNewToken(context: Context, record: TokenRecord, isFresh: boolean): Promise<void> {
  context.reached(entityTypeOf(record), record.id)
  const id = activityId(context, record)
  // An id given again in the month of its first token is one active token, but another creation: that is noted beside.
  const isKnown = !isFresh && (await context.store.get('activity', context.caller.tenant, id)) !== undefined
  const activity = isKnown ? { id: `created/${context.createUuid()}`, month: '' } : { id }
  await insertActivity(context, { ...activity, created: record.type })
}

function activityId({ date }: Context, { id }: Noted): string {
  return `${monthOf(date)}/${id}`
}

/** `2030-01` of a date as the interface writes it. */
export function monthOf(date: string): string {
  return date.slice(0, '2030-01'.length)
}

/** The month is this one, unless it is given: an empty one counts in none. */
async function insertActivity(
  context: Context,
  activity: { id: string; month?: string; created?: string },
): Promise<void> {
  const record = { month: monthOf(context.date), ...activity, at: context.date }
  await context.store.insert('activity', context.caller.tenant, record, { fresh: true })
}

/** @throws CofferError `not_found` */
export async function requireToken(context: Context, id: string): Promise<TokenRecord> {
  const record = await context.store.get('token', context.caller.tenant, id)
  if (record === undefined) throw new CofferError('not_found', 'There is no token with this id.')
  return record
}

/** @throws CofferError `forbidden` when no rule grants `permission` on all of `containers`. */
export function requireTransform(
  context: Context,
  permission: Permission,
  containers: readonly string[],
): Transform {
  const transform = context.caller.transform(permission, containers)
  if (transform !== undefined) return transform
  throw new CofferError('forbidden', `${permission} is not granted on the containers of this token.`)
}

/** The token as a caller with this transform is shown it after writing: masked, whatever the rule says. */
export function viewWritten(record: TokenRecord, transform: Transform): TokenView {
  return viewToken(record, stricterTransform('mask', transform))
}

/** What the filters of a list ask for. */
export function filterConditions(filters: TokenFilters): Condition[] {
  const { id, metadata = {} } = filters
  const types = wantedTypes(filters)
  const ids = id === undefined ? [] : [{ ids: id }]
  const anyType = types === undefined ? [] : [{ or: types.map((value) => ({ field: 'type', value })) }]
  const notes = Object.entries(metadata).map(([key, value]) => metadataField(key, value))
  return [...ids, ...anyType, ...notes]
}

/**
 * A page of the tokens that match and that the caller may read, each shown as far as its rule lets it be. `needed`:
 * what they must be granted on a token's containers, besides reading it, to find it this way.
 */
export async function listTokensWhere(
  session: Session,
  { page = 1, size = 20 }: PageRequest,
  toConditions: (context: Context) => Promise<readonly Condition[]>,
  needed: readonly Permission[] = [],
): Promise<List<TokenView>> {
  return readPage(
    session,
    { page, size },
    {
      locate: async (context) => {
        const granted = await grantedCondition(context, ['token:read', ...needed])
        const and = [...(await toConditions(context)), ...granted]
        const where = and.length === 0 ? {} : { where: { and } }
        return context.store.locate('token', context.caller.tenant, { page, size, ...where })
      },
      show: ({ caller }, record) => {
        // One that was moved to other containers since it was located may be out of reach by now.
        const transform = caller.transform('token:read', record.containers)
        return transform === undefined ? undefined : viewToken(record, transform)
      },
      note: ({ id, type, created_at }) => {
        return (context) => reachToken(context, { id, type, created_at })
      },
    },
  )
}

/**
 * That a token's set of containers is one on which the caller has all of `permissions`. There are few sets and many
 * tokens, so the sets are decided one by one and the tokens counted by them.
 */
async function grantedCondition(context: Context, permissions: readonly Permission[]): Promise<Condition[]> {
  const { caller } = context
  const scoped = permissions.filter((permission) => !caller.holdsEverywhere(permission))
  if (scoped.length === 0) return []
  const granted: Condition[] = []
  for await (const { id, containers } of eachContainerSet(context)) {
    const isGranted = scoped.every((permission) => caller.transform(permission, containers) !== undefined)
    if (isGranted) granted.push({ field: 'containers', value: id })
  }
  return [{ or: granted }]
}

/** Every distinct set of containers that a token of the tenant has or had. */
export function eachContainerSet({ store, caller }: Context): AsyncGenerator<ContainersRecord> {
  return eachRecord(store, 'containers', caller.tenant)
}

/** The original, to somebody who asked for a duplicate of it: redacted where they may not read it. */
export async function showDuplicate(context: Context, original: TokenRecord): Promise<TokenView> {
  // Nothing but the log record is written: to be asked for once more is no use of the original.
  context.reached(entityTypeOf(original), original.id, { operation: 'read', message: 'Token retrieved' })
  const transform = context.caller.transform('token:read', original.containers)
  if (transform === undefined) return redactDuplicate(viewToken(original, 'redact'))
  return viewWritten(original, transform)
}
