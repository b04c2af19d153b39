/** The state of code: which version runs, and which one was requested and is not built. */
import { omitUndefined } from '../omit-undefined.js'
import type { BuildError } from './dependencies.js'

export const STATES = ['creating', 'updating', 'active', 'failed', 'outdated'] as const
export type State = (typeof STATES)[number]

/** The requested version of a record. `A`: the attributes that are built together. */
export interface Requested<A> {
  attributes: A
  /** No version has run yet. The record then has these attributes too, and none of them runs. */
  isFirst: boolean
  /** ms since the epoch: until then the version is being built. */
  until?: number
  /** Known after `until`. Without an error the version runs then. */
  error?: BuildError
}

/** How building a version ends. The control plane can delay it. */
export interface Build {
  delayMs?: number
  error?: BuildError | undefined
}

interface Stateful<A> {
  requested?: Requested<A>
}

export function stateOf({ requested }: Stateful<unknown>, now: number): State {
  if (requested === undefined) return 'active'
  const { isFirst, until = 0, error } = requested
  if (now < until) return isFirst ? 'creating' : 'updating'
  if (error === undefined) return 'active'
  return isFirst ? 'failed' : 'outdated'
}

/** The record as it runs at this time: a version that was being built has replaced the earlier one. */
export function settled<A extends object, R extends Stateful<A> & Partial<A>>(
  record: R,
  now: number,
  names: readonly (keyof A & string)[],
): R {
  const { requested } = record
  if (requested === undefined || stateOf(record, now) !== 'active') return record
  const { requested: _, ...rest } = record
  return omitUndefined({ ...rest, ...pick(requested.attributes, names) }) as unknown as R
}

/** `A` with every attribute. An attribute that `A` may lack can be undefined. */
type Whole<A> = {
  [Name in keyof A]-?: A[Name] | (Pick<A, Name> extends Required<Pick<A, Name>> ? never : undefined)
}

/**
 * The attributes to store for a new version. `before`: the settled record of an earlier version. Undefined attributes
 * are removed.
 */
export function request<A extends object>(
  before: (Stateful<A> & Partial<A>) | undefined,
  attributes: Whole<A>,
  { delayMs = 0, error }: Build,
  now: number,
  names: readonly (keyof A & string)[],
): Whole<A> & { requested: Requested<A> | undefined } {
  if (error === undefined && delayMs <= 0) return { ...attributes, requested: undefined }
  const isFirst = before === undefined || before.requested?.isFirst === true
  const until = delayMs > 0 ? now + delayMs : undefined
  const stored = omitUndefined(attributes) as unknown as A
  const requested: Requested<A> = { attributes: stored, isFirst, ...omitUndefined({ until, error }) }
  return { ...(isFirst ? attributes : pick(before as A, names)), requested }
}

/** Each of `names`, also if it is absent. */
function pick<A extends object>(from: A, names: readonly (keyof A & string)[]): Whole<A> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Whole<A>
}
