/** `Date` and `Intl.DateTimeFormat` with the time of the run, which a test may set. */
import type { GuestTime } from '../../framework/ports/reactors.js'
import { getterOf, type Work } from './shield.js'

/** Returns the time that the code reads, in ms since 1970. */
export function readTime({ offsetMs = 0, frozenMs }: GuestTime, realNow: () => number): number {
  return Math.floor(frozenMs ?? realNow() + offsetMs)
}

/** `time` returns the time of the current run. Undefined: the real time. */
export function createDate(time: () => GuestTime | undefined): DateConstructor {
  const Real = Date
  const realNow = Real.now
  const now = (): number => readTime(time() ?? {}, realNow)
  // Not a class, because `Date()` without `new` returns a text.
  function SetDate(this: unknown, ...args: unknown[]): unknown {
    if (new.target === undefined) return new Real(now()).toString()
    return Reflect.construct(Real, args.length === 0 ? [now()] : args, new.target)
  }
  const { UTC, parse, prototype } = Real
  const properties = { name: 'Date', length: 7, prototype, now, UTC, parse }
  for (const [name, value] of Object.entries(properties)) Object.defineProperty(SetDate, name, { value })
  return SetDate as unknown as DateConstructor
}

/**
 * Makes `now()` the default date of `Intl.DateTimeFormat`. Call before the prototype of `Intl.DateTimeFormat` is
 * hardened.
 */
export function setDefaultOfFormats(now: () => number): void {
  const { prototype } = Intl.DateTimeFormat
  const getFormat = getterOf(prototype, 'format')
  const { formatToParts } = prototype
  /** The bound function of each format, because the getter `format` must return the same function each time. */
  const bound = new WeakMap<object, Work>()
  const methods = {
    get format(): Work {
      const format = Reflect.apply(getFormat, this, []) as Work
      const known = bound.get(format) ?? ((date = now()) => format(date))
      bound.set(format, known)
      return known
    },
    formatToParts(this: unknown, date: unknown = now()): unknown {
      return Reflect.apply(formatToParts, this, [date])
    },
  }
  for (const [name, method] of Object.entries(Object.getOwnPropertyDescriptors(methods)))
    Object.defineProperty(prototype, name, { ...method, enumerable: false })
}
