/** Whether some order of overlapping operations on one token explains what each was answered (Wing and Gong). */

export interface Operation {
  kind: 'create' | 'update' | 'delete' | 'read'
  /** What it writes, or has read; undefined for no token. */
  value?: string | undefined
  /** `refused`: there was no token, or for a creation there was one. `unknown`: it may have happened, or will. */
  outcome: 'done' | 'refused' | 'unknown'
  /** Of the clock that all operations have in common. */
  began: number
  ended: number
}

/** The token after the operation; `impossible` if this is not what it would have been answered. */
function apply({ kind, value, outcome }: Operation, token: string | undefined): string | undefined | symbol {
  if (kind === 'read') return outcome === 'unknown' || token === value ? token : IMPOSSIBLE
  const isPossible = kind === 'create' ? token === undefined : token !== undefined
  if (outcome === 'refused') return isPossible ? IMPOSSIBLE : token
  if (!isPossible) return outcome === 'done' ? IMPOSSIBLE : token
  return kind === 'delete' ? undefined : value
}

const IMPOSSIBLE = Symbol('impossible')

/** Contract: at first there is no token, and there are few operations at once. */
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
