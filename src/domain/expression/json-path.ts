/** JSONPath (RFC 9535) without `match` and `search`, because their regular expressions can take unlimited time. */
import { CofferError, validationError } from '../../errors.js'
import type { Budget } from './budget.js'
import type { JsonPath } from './filter.js'

const MAX_PATH_LENGTH = 400
/** Higher than the depth of JSON input, which has at most 64 levels. */
const MAX_DEPTH = 80
/** Costs are in steps. Reading an object or array costs `OBJECT_COST` in addition. */
const READ_COST = 40
const OBJECT_COST = 400
const COMPARED_CHARACTERS = 8
const RULE = `this must be a JSONPath (RFC 9535) of at most ${MAX_PATH_LENGTH} characters, without match() and search()`

export async function loadJsonPath(): Promise<JsonPath> {
  const { JSONPathEnvironment } = await import('json-p3')
  const environment = new JSONPathEnvironment({ strict: true, maxRecursionDepth: MAX_DEPTH })
  for (const name of ['match', 'search']) environment.functionRegister.delete(name)
  return (path, value, budget) => {
    const originals = new WeakMap<object, unknown>()
    try {
      if (path.length > MAX_PATH_LENGTH) throw validationError(RULE)
      const nodes = environment.query(quoteNames(path), metered(value, budget, originals) as never)
      return nodes.values().map((found) => originals.get(found as object) ?? found)
    } catch (cause) {
      throw cause instanceof CofferError ? cause : validationError(RULE, { cause })
    }
  }
}

/**
 * RFC 9535 requires brackets around a name with a hyphen, but the service documents paths such as
 * `$.request.headers.X-Date`.
 */
function quoteNames(path: string): string {
  return /^\$(?:\.[\w-]+|\[\d+\])+$/.test(path) ? path.replaceAll(/\.([\w-]*-[\w-]*)/g, "['$1']") : path
}

/** Charges the budget for each read, because the library does not limit its work. */
function metered(value: unknown, budget: Budget, originals: WeakMap<object, unknown>): unknown {
  if (value === null || typeof value !== 'object') return value
  budget.use(OBJECT_COST)
  const proxy = new Proxy(value, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      budget.use(READ_COST + (typeof member === 'string' ? member.length / COMPARED_CHARACTERS : 0))
      const isOwn = typeof name === 'string' && Object.hasOwn(target, name)
      return isOwn ? metered(member, budget, originals) : member
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
