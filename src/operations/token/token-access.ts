import { areasOf, type Target } from '../../domain/access/access.js'
import type { Permission, Transform } from '../../domain/access/permissions.js'
import { metadataLookups } from '../../domain/records/index-fields.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Context } from '../../framework/context.js'
import type { LogEntry } from '../../framework/declaration.js'
import type { Listing } from '../../framework/list.js'
import type { Condition } from '../../storage/store.js'
import { recordUse } from './lifetime.js'
import { showNetworkToken } from './network-token-ids.js'
import { entityTypeOf, messageAbout, type TokenView, type UsedRecord, viewToken } from './token-attributes.js'
import { type TokenFilters, wantedTypes } from './token-filters.js'

/**
 * Costs in steps of the budget. `PATH_STEPS`: the comparison of a container with a path. `RULE_STEPS`: the decision
 * about a container by one access rule.
 */
const PATH_STEPS = 5
const RULE_STEPS = 20

type Recorded = Pick<UsedRecord, 'id' | 'type' | 'created_at' | 'is_intent' | 'entity'>

/** Logs an access that does not count in the usage report. */
export function logToken({ audit }: Context, record: Recorded, as?: LogEntry, transform?: Transform) {
  const entry = as && { ...as, message: messageAbout(record, as.message) }
  const { id, type } = record
  audit.record(entityTypeOf(record), id, entry, transform, { id, type })
}

/** Like {@link logToken}, but an access to a token also counts in the usage report. */
export function logTokenUse(context: Context, record: Recorded, as?: LogEntry, transform?: Transform) {
  logToken(context, record, as, transform)
  return record.is_intent || record.entity !== undefined ? undefined : recordUse(context, record)
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

/**
 * The containers of a token may change after the token is located. Therefore the rules decide again before the token is
 * shown. `asking`: the caller with its rights at the start of the request. Later, the caller may have other rights.
 */
export function listGranted(
  asking: Caller,
  toConditions: (context: Context) => Promise<readonly Condition[]>,
  needed: readonly Permission[] = [],
): Listing<'token', TokenView> {
  return {
    kind: 'token',
    where: async (context) => {
      if (context.caller.dependsOnId === true && asking.dependsOnId !== true) throw rightsChanged()
      return whereGranted(context, await toConditions(context), needed)
    },
    matches: matchesId(asking, needed),
    show: (context, record) => {
      const { caller } = context
      const isGranted = needed.every((permission) => caller.transform(permission, record) !== undefined)
      const transform = isGranted ? caller.transform('token:read', record) : undefined
      return transform && showNetworkToken(context, record, viewToken(record, transform))
    },
    log: ({ id, type, containers, created_at }) => {
      const read = { id, type, containers, created_at }
      return async (context) =>
        logTokenUse(context, read, undefined, context.caller.transform('token:read', read))
    },
  }
}

/** If rules about token ids are added while a list is read, the list cannot continue with the same condition. */
function rightsChanged(): CofferError {
  const message = 'The rights of the caller have changed while the list was read. Try again.'
  return new CofferError('unavailable', message, { retryAfterSeconds: 1 })
}

/** An index by containers cannot apply rules about token ids. Returns undefined if no rule depends on token ids. */
export function matchesId({ dependsOnId }: Caller, needed: readonly Permission[]) {
  if (dependsOnId !== true) return undefined
  const all = ['token:read', ...needed] as const
  return (record: TokenRecord, { caller }: Context) =>
    all.every((each) => caller.transform(each, record) !== undefined)
}

/**
 * Applies the rules once for each distinct set of containers, because tokens have few distinct sets. If rules depend on
 * token ids, this function applies no rule, because {@link matchesId} applies all rules.
 */
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
  const granted = scoped.length === 0 ? [] : [await whereAllowed(context, scoped, isGranted)]
  const and = [...conditions, ...granted]
  return and.length === 0 ? undefined : { and }
}

/**
 * A `*` at the end of a pattern matches any text. If the text before the `*` ends in the middle of a name, the pattern
 * is compared with all sets of containers. For all other patterns, an index finds the tokens.
 */
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
  const matches = (containers: readonly string[]) => containers.some(isInside)
  const areas = prefixes.map((prefix) => prefix.slice(0, prefix.lastIndexOf('/') + 1) || '/')
  if (prefixes.length > 0)
    or.push(await whereContainers(context, { areas: [areas], matches, steps: prefixes.length * PATH_STEPS }))
  return { or }
}

/** Excludes sets of containers for which no rule grants these permissions, before `matches` decides about a set. */
export function whereAllowed(
  context: Context,
  permissions: readonly Permission[],
  matches: (containers: readonly string[]) => boolean,
): Promise<Condition> {
  const { grants = [] } = context.caller
  const areas = grants.flatMap((each) => permissions.map((permission) => areasOf(each, permission)))
  const steps = grants.flatMap(({ rules }) => rules).length * RULE_STEPS
  return whereContainers(context, { areas, matches, steps })
}

interface Wanted {
  /**
   * Lists of container paths. A set of containers can match only if each list has a path that contains at least one
   * container of the set.
   */
  areas: readonly (readonly string[])[]
  matches(containers: readonly string[]): boolean
  /** The cost of deciding about one container. */
  steps: number
}

/**
 * Returns a condition for the tokens whose set of containers `matches` accepts. The condition lists the sets that match
 * or the sets that do not match, depending on which list is shorter. Each found token must be checked again, because
 * its containers can change meanwhile.
 */
async function whereContainers(context: Context, { areas, matches, steps }: Wanted): Promise<Condition> {
  const { caller, turns, containerSets } = context
  // The root `/` contains every container. Therefore a list of paths with the root excludes no token.
  const narrow = areas.filter((paths) => !paths.includes('/'))
  const isNear = (containers: readonly string[]) =>
    narrow.every((paths) => containers.some((container) => paths.some((path) => container.startsWith(path))))
  const pathSteps = PATH_STEPS * (1 + narrow.flat().length)
  const matching: Condition[] = []
  const others: Condition[] = []
  for (const { id, containers } of await containerSets.all()) {
    const isCandidate = isNear(containers)
    const isMatch = (isCandidate || caller.recordsDecisions === true) && matches(containers)
    if (isCandidate) (isMatch ? matching : others).push({ field: 'containers', value: id })
    const spent = containers.length * (pathSteps + (isCandidate ? steps : 0))
    if (turns.use(spent)) await turns.next()
  }
  const near = narrow.map((paths) => anyOf(paths.map((value) => ({ field: 'ancestor', value }))))
  if (others.length === 0) return { and: near }
  return { and: [...near, others.length < matching.length ? { not: anyOf(others) } : anyOf(matching)] }
}

function anyOf(conditions: readonly Condition[]): Condition {
  return conditions.length === 1 ? conditions[0]! : { or: conditions }
}
