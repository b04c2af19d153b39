/** The `Date` of reactor code, whose current time a test can set. */

/** The current time: ms added to the real time, or the ms at which the clock is frozen. */
export interface GuestTime {
  offsetMs?: number
  frozenMs?: number
}

/** `time` returns the setting of the current run; undefined for the real time. */
export function createDate(time: () => GuestTime | undefined): DateConstructor {
  const Real = Date
  const realNow = Real.now
  const now = (): number => {
    const { offsetMs = 0, frozenMs } = time() ?? {}
    return Math.floor(frozenMs ?? realNow() + offsetMs)
  }
  // A function, because `Date()` without `new` is a text.
  function SetDate(this: unknown, ...args: unknown[]): unknown {
    if (new.target === undefined) return new Real(now()).toString()
    return Reflect.construct(Real, args.length === 0 ? [now()] : args, new.target)
  }
  const { UTC, parse, prototype } = Real
  const properties = { name: 'Date', length: 7, prototype, now, UTC, parse }
  for (const [name, value] of Object.entries(properties)) Object.defineProperty(SetDate, name, { value })
  return SetDate as unknown as DateConstructor
}

/** Makes `Intl.DateTimeFormat` use `now` if it gets no date. Call it before its prototype is frozen. */
export function setPresentOfFormats(now: () => number): void {
  const { prototype } = Intl.DateTimeFormat
  const bound = new WeakMap<object, (date?: unknown) => string>()
  const getFormat = Object.getOwnPropertyDescriptor(prototype, 'format')!.get!
  const { formatToParts } = prototype
  const methods = {
    get format(): (date?: unknown) => string {
      const format = Reflect.apply(getFormat, this, []) as (date: unknown) => string
      const known = bound.get(format) ?? ((date) => format(date === undefined ? now() : date))
      bound.set(format, known)
      return known
    },
    formatToParts(this: unknown, date?: unknown): unknown {
      return Reflect.apply(formatToParts, this, [date === undefined ? now() : date])
    },
  }
  for (const name of ['format', 'formatToParts'] as const) {
    const method = Object.getOwnPropertyDescriptor(methods, name)!
    Object.defineProperty(prototype, name, { ...method, enumerable: false })
  }
}
