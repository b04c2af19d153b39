/** Locations of `append_json`: JSONPaths that have only names and indexes. */
import { isObject } from '../json/json.js'

const MAX_CHARACTERS = 400
const STEP = /\.([\w\u0080-\uffff-]+)|\[(\d{1,6})\]|\['([^'\\]*)'\]|\["([^"\\]*)"\]/y

type Step = string | number

/** Returns undefined for any other text, such as `$` alone, or a path that can select several values. */
export function readLocation(text: string): Step[] | undefined {
  if (!text.startsWith('$') || text.length > MAX_CHARACTERS) return undefined
  const steps: Step[] = []
  for (let at = 1; at < text.length; at = STEP.lastIndex) {
    STEP.lastIndex = at
    const [found, name, index, ...quoted] = STEP.exec(text) ?? []
    if (found === undefined) return undefined
    steps.push(index === undefined ? (name ?? quoted.find((each) => each !== undefined)!) : Number(index))
  }
  return steps.length === 0 ? undefined : steps
}

/**
 * Returns a copy of `root` with `value` at the location. Creates missing objects. Returns undefined if the location
 * cannot be reached.
 */
export function putAt(root: unknown, [step, ...rest]: readonly Step[], value: unknown): unknown {
  if (step === undefined) return value
  const isFit = typeof step === 'number' ? Array.isArray(root) && step <= root.length : isObject(root ?? {})
  if (!isFit) return undefined
  const members = Object.entries(root ?? {})
  const inner = putAt(members.find(([name]) => name === String(step))?.[1], rest, value)
  if (inner === undefined) return undefined
  // Unlike an assignment, `Object.fromEntries` does not set the prototype for the name `__proto__`.
  if (typeof step === 'string') return Object.fromEntries([...members, [step, inner]])
  return [...(root as unknown[]).slice(0, step), inner, ...(root as unknown[]).slice(step + 1)]
}
