/**
 * The state of code: which version runs now, and which version was requested but is not built yet, or cannot be
 * built.
 */
import { omitUndefined } from '../omit-undefined.js'
import type { BuildError } from './dependencies.js'

export const STATES = ['creating', 'updating', 'active', 'failed', 'outdated'] as const
export type State = (typeof STATES)[number]

/**
 * The requested version of a record. `A`: the attributes of the version, such as its code and runtime. These
 * attributes are built together and replace the earlier version together.
 */
export interface Requested<A> {
  attributes: A
  /**
   * If true, no version has run yet. The record itself then also contains the attributes of the requested
   * version, although this version does not run yet.
   */
  isFirst: boolean
  /** The version is being built until this time, in ms since the epoch. */
  until?: number
  /**
   * Why the version could not be built. The error takes effect after `until`. If there is no error, the
   * requested version runs after `until`.
   */
  error?: BuildError
}

/** The result of a build. The control plane can delay the end of a build. */
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

/**
 * Returns the record as it runs at time `now`. If the build of the requested version has succeeded before `now`, the
 * returned record has the attributes of the requested version.
 */
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

/** `A` with all its attributes. The optional attributes of `A` can be undefined. */
type Whole<A> = {
  [Name in keyof A]-?: A[Name] | (Pick<A, Name> extends Required<Pick<A, Name>> ? never : undefined)
}

/**
 * Returns the attributes to store for a new version. `before`: the result of {@link settled} for the earlier
 * record. Attributes that are undefined are removed.
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

/** Copies the attributes with these names. An absent attribute becomes undefined. */
function pick<A extends object>(from: A, names: readonly (keyof A & string)[]): Whole<A> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Whole<A>
}
