/**
 * JSONPath (RFC 9535) over untrusted paths and data. The two functions of the standard that take regular expressions
 * (`match`, `search`) are refused: the platform's engine would let a path of 30 characters run for ever.
 */
import { CofferError } from '../../errors.js'
import type { Budget } from './budget.js'
import type { JsonPath } from './filters.js'

const MAX_PATH_LENGTH = 400
/** The gate takes 64 levels; the library counts visits from 1. */
const MAX_DEPTH = 80
/** Budget units of reading one value, and of one that can be read further. */
const READ_COST = 10
const OBJECT_COST = 300

/** Loads the library. The returned function throws CofferError `validation` for a path that is refused. */
export async function loadJsonPath(): Promise<JsonPath> {
  const { JSONPathEnvironment } = await import('json-p3')
  const environment = new JSONPathEnvironment({ strict: true, maxRecursionDepth: MAX_DEPTH })
  for (const name of ['match', 'search']) environment.functionRegister.delete(name)
  return (path, value, budget) => {
    if (path.length > MAX_PATH_LENGTH) refuse(`a JSONPath has at most ${MAX_PATH_LENGTH} characters`)
    const originals = new WeakMap<object, unknown>()
    try {
      const nodes = environment.query(path, metered(value, budget, originals) as never)
      return nodes.values().map((found) => (isObject(found) ? originals.get(found) : found))
    } catch (cause) {
      if (cause instanceof CofferError) throw cause
      return refuse(
        'this is not a JSONPath (RFC 9535) that can be used here; match() and search() cannot',
        cause,
      )
    }
  }
}

/**
 * The value, every read of which uses up budget: nested descents and filters multiply, and the library itself can
 * neither be stopped nor counted.
 */
function metered(value: unknown, budget: Budget, originals: WeakMap<object, unknown>): unknown {
  if (!isObject(value)) return value
  budget.use(OBJECT_COST)
  const proxy = new Proxy(value, {
    get(target, name) {
      budget.use(READ_COST)
      const member: unknown = Reflect.get(target, name)
      return typeof name === 'string' && Object.hasOwn(target, name)
        ? metered(member, budget, originals)
        : member
    },
    ownKeys(target) {
      const names = Reflect.ownKeys(target)
      budget.use(READ_COST * names.length)
      return names
    },
  })
  originals.set(proxy, value)
  return proxy
}

function isObject(value: unknown): value is object {
  return value !== null && typeof value === 'object'
}

function refuse(message: string, cause?: unknown): never {
  throw new CofferError('validation', message, cause === undefined ? {} : { cause })
}
