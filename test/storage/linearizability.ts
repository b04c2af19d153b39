/**
 * Checks whether the answers of overlapping operations on one token can be explained by some order of the operations
 * (algorithm of Wing and Gong).
 */

export interface Operation {
  kind: 'create' | 'update' | 'delete' | 'read'
  /** The value that the operation wrote or read, or undefined if there was no token. */
  value?: string | undefined
  /**
   * `refused`: the token of the operation was missing, or a token to create already existed. `unknown`: the operation
   * got no answer. An operation without an answer may have taken effect, or may still take effect.
   */
  outcome: 'done' | 'refused' | 'unknown'
  /** The time at which the operation began, on a clock that all operations share. The time can have any unit. */
  began: number
  ended: number
}

/** Returns the token after the operation, or `impossible` if the operation cannot have this answer. */
function apply({ kind, value, outcome }: Operation, token: string | undefined): string | undefined | symbol {
  if (kind === 'read') return outcome === 'unknown' || token === value ? token : IMPOSSIBLE
  const isPossible = kind === 'create' ? token === undefined : token !== undefined
  if (outcome === 'refused') return isPossible ? IMPOSSIBLE : token
  if (!isPossible) return outcome === 'done' ? IMPOSSIBLE : token
  return kind === 'delete' ? undefined : value
}

const IMPOSSIBLE = Symbol('impossible')

/** Requires: there is no token before the first operation, and few operations overlap. */
export function isLinearizable(operations: readonly Operation[]): boolean {
  const all = [...operations].sort((one, other) => one.began - other.began)
  const tried = new Set<string>()
  const search = (left: readonly number[], token: string | undefined): boolean => {
    if (left.every((index) => all[index]!.outcome === 'unknown')) return true
    const name = `${left.join()} ${token}`
    if (tried.has(name)) return false
    tried.add(name)
    const certain = left.filter((index) => all[index]!.outcome !== 'unknown')
    const first = Math.min(...certain.map((index) => all[index]!.ended))
    return left.some((index) => {
      if (all[index]!.began > first) return false
      const next = apply(all[index]!, token)
      const rest = left.filter((other) => other !== index)
      return typeof next !== 'symbol' && search(rest, next)
    })
  }
  return search([...all.keys()], undefined)
}
