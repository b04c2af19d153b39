import { isObject } from '../domain/json/json.js'
import { matchesName } from '../domain/reactor/formula.js'
import type { CountedRule, FaultRule } from '../framework/ports/control.js'

/** A request, as rules see it. */
export interface Target {
  operation: string | undefined
  method: string
  path: string
  /** Whether the request is passed on to another server. */
  isRelayed: boolean
  header(name: string): string | undefined
  /** The body as JSON; read only where a rule asks for it. */
  body(): Promise<unknown>
}

export class Faults {
  #rules: CountedRule[] = []

  get rules(): CountedRule[] {
    return this.#rules.map((rule) => ({ ...rule }))
  }

  set(rules: readonly FaultRule[]): void {
    this.#rules = rules.map((rule) => ({ ...rule, matched: 0, applied: 0 }))
  }

  /** The rules that apply to the request, which are counted. */
  async choose(target: Target): Promise<FaultRule[]> {
    const chosen: FaultRule[] = []
    for (const rule of this.#rules) {
      if (!(await fits(rule, target))) continue
      rule.matched++
      const { times, every } = rule
      const isChosen =
        times !== undefined ? rule.matched <= times : every === undefined || rule.matched % every === 0
      if (!isChosen) continue
      rule.applied++
      chosen.push(rule)
    }
    return chosen
  }
}

async function fits(rule: FaultRule, target: Target): Promise<boolean> {
  const { operation, method, path, kind, headers = {}, body = {} } = rule
  if (kind === 'destination' && !target.isRelayed) return false
  if (operation !== undefined && operation !== target.operation) return false
  if (method !== undefined && method !== target.method) return false
  // Without a star only the path itself matches.
  if (path !== undefined && !(path.includes('*') ? matchesName(target.path, path) : target.path === path))
    return false
  if (Object.entries(headers).some(([name, value]) => target.header(name.toLowerCase()) !== value))
    return false
  const values = Object.entries(body)
  if (values.length === 0) return true
  const sent = await target.body()
  return values.every(([place, value]) => String(valueAt(sent, place)) === value)
}

function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => {
    const isThere = (isObject(at) || Array.isArray(at)) && Object.hasOwn(at, name)
    return isThere ? (at as Record<string, unknown>)[name] : undefined
  }, value)
}
