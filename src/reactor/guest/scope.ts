/**
 * The values of `AsyncLocalStorage`. Each promise inherits the values of the callback that creates it. Node's
 * implementation would add properties to the promises of reactor code.
 */
import { loadV8 } from './late.js'

type Values = ReadonlyMap<object, unknown>
type Work = () => unknown
/** Runs `work` with the values that were current when `capture` was called. */
export type Restore = (work: Work) => unknown

const NOTHING: Values = new Map()
const runNow: Restore = (work) => work()

export type Scope = ReturnType<typeof createScope>

/** Creates the scope of one run. A scope costs nothing until the code stores a value. */
export function createScope() {
  let current = NOTHING
  let inherited = new WeakMap<object, Values>()
  const outer: Values[] = []
  let stop: (() => unknown) | undefined

  function start(): void {
    stop ??= loadV8().promiseHooks.createHook({
      init: (promise) => void inherited.set(promise, current),
      before: (promise) => {
        outer.push(current)
        current = inherited.get(promise) ?? NOTHING
      },
      after: () => {
        current = outer.pop() ?? NOTHING
      },
    }) as () => unknown
  }
  function runWith(values: Values, work: Work): unknown {
    const before = current
    current = values
    try {
      return work()
    } finally {
      current = before
    }
  }

  return {
    api: {
      get: (key: object) => current.get(key),
      run: (key: object, value: unknown, work: Work) => {
        start()
        return runWith(new Map(current).set(key, value), work)
      },
      enter: (key: object, value: unknown) => {
        start()
        current = new Map(current).set(key, value)
      },
      capture: (): Restore => {
        if (current === NOTHING && stop === undefined) return runNow
        const values = current
        return (work) => runWith(values, work)
      },
    },
    end: () => {
      stop?.()
      stop = undefined
      current = NOTHING
      inherited = new WeakMap()
      outer.length = 0
    },
  }
}
