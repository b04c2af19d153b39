import type { Target } from '../../domain/access/access.js'
import type { Permission, Transform } from '../../domain/access/permissions.js'
import { metadataLookups } from '../../domain/records/index-fields.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Listing } from '../../framework/list.js'
import type { Context, LogEntry } from '../../framework/operation.js'
import { type Condition, eachRecord } from '../../storage/store.js'
import { recordUse } from './lifetime.js'
import { entityTypeOf, messageAbout, type TokenView, viewToken } from './token-attributes.js'
import { type TokenFilters, wantedTypes } from './token-filters.js'

/** Steps of reading a set of containers, of comparing one with a prefix, and of deciding about one by a rule. */
const SET_STEPS = 2000
const PREFIX_STEPS = 3
const RULE_STEPS = 20

type Recorded = Pick<TokenRecord, 'id' | 'type' | 'created_at' | 'is_intent'>

/** Records an access to the token or intent for the log alone: it does not count as a use in the usage report. */
export function logToken({ audit }: Context, record: Recorded, as?: LogEntry, transform?: Transform) {
  const entry = as && { ...as, message: messageAbout(record, as.message) }
  const { id, type } = record
  audit.record(entityTypeOf(record), id, entry, transform, { id, type })
}

/** Records an access to the token for the log and the usage report, which does not count intents. */
export function logTokenUse(context: Context, record: Recorded, as?: LogEntry, transform?: Transform) {
  logToken(context, record, as, transform)
  return record.is_intent ? undefined : recordUse(context, record)
}

/** @throws CofferError `forbidden` if `permission` is not granted on all containers of the token */
export function requireTransform(context: Context, permission: Permission, token: Target): Transform {
  const transform = context.caller.transform(permission, token)
  if (transform !== undefined) return transform
  throw notGranted(permission)
}

export function notGranted(permission: Permission): CofferError {
  return new CofferError('forbidden', `${permission} is not granted on the containers of this token.`)
}

export async function filterConditions(context: Context, filters: TokenFilters): Promise<Condition[]> {
  const { id, metadata = {}, container = [] } = filters
  const types = wantedTypes(filters)
  const conditions: Condition[] = []
  for (const entry of Object.entries(metadata)) conditions.push({ or: metadataLookups(...entry) })
  if (id !== undefined) conditions.push({ ids: id })
  if (types !== undefined) conditions.push({ or: types.map((value) => ({ field: 'type', value })) })
  return container.length === 0 ? conditions : [...conditions, await inContainers(context, container)]
}

/** Each is shown by its own rule, because its containers may have changed since it was located. */
export function listGranted(
  caller: Caller,
  toConditions: (context: Context) => Promise<readonly Condition[]>,
  needed: readonly Permission[] = [],
): Listing<'token', TokenView> {
  return {
    kind: 'token',
    where: async (context) => whereGranted(context, await toConditions(context), needed),
    matches: matchesId(caller, needed),
    show: ({ caller }, record) => {
      const transform = caller.transform('token:read', record)
      return transform && viewToken(record, transform, caller)
    },
    log: ({ id, type, containers, created_at }) => {
      const read = { id, type, containers, created_at }
      return async (context) =>
        logTokenUse(context, read, undefined, context.caller.transform('token:read', read))
    },
  }
}

/** Undefined unless rules depend on token ids: then the index of containers cannot decide. */
export function matchesId(caller: Caller, needed: readonly Permission[]) {
  if (caller.dependsOnId !== true) return undefined
  const all = ['token:read', ...needed] as const
  return (record: TokenRecord) => all.every((each) => caller.transform(each, record) !== undefined)
}

/** Decides by the rules once for each distinct set of containers, which are few, unless {@link matchesId} decides. */
export async function whereGranted(
  context: Context,
  conditions: readonly Condition[],
  needed: readonly Permission[],
): Promise<Condition | undefined> {
  const { caller } = context
  const permissions = new Set<Permission>(caller.dependsOnId === true ? [] : ['token:read', ...needed])
  const scoped = [...permissions].filter((permission) => !caller.holdsEverywhere(permission))
  const isGranted = (containers: readonly string[]) =>
    scoped.every((permission) => caller.transform(permission, { containers }) !== undefined)
  const granted = scoped.length === 0 ? [] : [await whereAllowed(context, isGranted)]
  const and = [...conditions, ...granted]
  return and.length === 0 ? undefined : { and }
}

/** A trailing * matches what follows. Only prefixes that end within a name are compared with all sets. */
export async function inContainers(context: Context, patterns: readonly string[]): Promise<Condition> {
  const or: Condition[] = []
  const prefixes: string[] = []
  for (const pattern of patterns) {
    const prefix = pattern.slice(0, -1)
    if (!pattern.endsWith('*')) or.push({ field: 'container', value: pattern })
    else if (prefix.endsWith('/')) or.push({ field: 'ancestor', value: prefix })
    else prefixes.push(prefix)
  }
  const isInside = (container: string) => prefixes.some((prefix) => container.startsWith(prefix))
  const isWanted = (containers: readonly string[]) => containers.some(isInside)
  if (prefixes.length > 0) or.push(await whereContainers(context, isWanted, prefixes.length * PREFIX_STEPS))
  return { or }
}

export function whereAllowed(context: Context, matches: (containers: readonly string[]) => boolean) {
  const { grants = [] } = context.caller
  return whereContainers(context, matches, grants.flatMap(({ rules }) => rules).length * RULE_STEPS)
}

/** Tokens whose set of containers `matches`. Compares every distinct set that a token of the tenant has or had. */
async function whereContainers(
  { store, caller, turns }: Context,
  matches: (containers: readonly string[]) => boolean,
  stepsOfEach: number,
): Promise<Condition> {
  const or: Condition[] = []
  for await (const { id, containers } of eachRecord(store, 'containers', caller.tenant)) {
    if (matches(containers)) or.push({ field: 'containers', value: id })
    if (turns.use(SET_STEPS + containers.length * stepsOfEach)) await turns.next()
  }
  return { or }
}
