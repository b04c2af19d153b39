import { omitUndefined } from '../omit-undefined.js'
import type { BuildError } from './dependencies.js'

export const STATES = ['creating', 'updating', 'active', 'failed', 'outdated'] as const
export type State = (typeof STATES)[number]

/** `A`: the attributes that are built and replaced together, such as code and runtime. */
export interface Requested<A> {
  attributes: A
  /** If true, no version has run yet, and the record itself contains these attributes too. */
  isFirst: boolean
  /** The end of the build, in ms since the epoch. */
  until?: number
  /** Why the build failed. The error takes effect after `until`. Without an error, the version runs after `until`. */
  error?: BuildError
}

/** The control plane can delay the end of a build. */
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
 * Returns the record at the time `now`. If the build of the requested version has succeeded by then, the result has the
 * attributes of this version.
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

/** Requires all attributes of `A`. Its optional attributes may be undefined. */
type Whole<A> = {
  [Name in keyof A]-?: A[Name] | (Pick<A, Name> extends Required<Pick<A, Name>> ? never : undefined)
}

/**
 * Returns the attributes to store for a new version. An attribute is removed if its returned value is undefined.
 * `before`: the result of {@link settled}.
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

function pick<A extends object>(from: A, names: readonly (keyof A & string)[]): Whole<A> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Whole<A>
}
