/** The abstract values of the data flow analysis in `usage.ts`: parts of the request, objects and functions. */
import type { Node } from 'acorn'
import { locate } from './source.js'

export interface Usage {
  /** Dotted names below `args`. */
  args: string[]
  /** Names below `configuration`. */
  configuration: string[]
  /** Parts that are passed on as a whole or read by a computed name, with their lines: more may be read there. */
  unknown: string[]
}

/** A part of the request as its dotted path (the request itself is ''), or an object or function that can lead to one. */
export type Value = string | Shape | Callable
export type Values = Iterable<Value>

/** An object or array that the code creates. */
export class Shape {
  readonly members = new Map<string, Set<Value>>()
  /** The values that were spread into it. */
  readonly rest = new Set<Value>()
}

/** A function: its variables (of all blocks together), possible arguments by position, and possible results. */
export class Callable {
  readonly names = new Map<string, Set<Value>>()
  readonly given = new Shape()
  readonly returns = new Set<Value>()
  readonly parent: Callable | undefined
  /** Its first argument is the request. */
  isEntry = false

  constructor(parent?: Callable) {
    this.parent = parent
  }

  find(name: string): Set<Value> | undefined {
    return this.names.get(name) ?? this.parent?.find(name)
  }
}

const PARTS = ['args', 'configuration', 'req']
/** Limits of the analysis, far above what ordinary code needs. */
const MOST_LEVELS = 8
const MOST_VALUES = 500
const MOST_LINES = 3

/** The results of the analysis. `isLoose`: any function may get the request, so uses of the whole are not reported. */
export class Findings {
  readonly #isLoose: boolean
  readonly #read = new Set<string>()
  /** Offsets by path. */
  readonly #missed = new Map<string, Set<number>>()
  /** Set by the caller before a pass; false once a value was added. */
  isSettled = false
  #isCut = false

  constructor(isLoose: boolean) {
    this.#isLoose = isLoose
  }

  report(code: string): Usage {
    const below = (part: string) =>
      [...this.#read].filter((path) => path.startsWith(`${part}.`)).map((path) => path.slice(part.length + 1))
    const names = below('configuration').map((path) => path.split('.', 1)[0]!)
    const missed = [...this.#missed].map(([path, offsets]) => {
      const lines = new Set([...offsets].slice(0, MOST_LINES).map((offset) => locate(code, offset).line))
      return `${path || 'the request'} (line ${[...lines].sort((a, b) => a - b).join(', ')})`
    })
    const isAll = this.isSettled && !this.#isCut
    return {
      args: withoutParents(below('args')),
      configuration: [...new Set(names)].sort(),
      unknown: isAll ? missed : [...missed, 'the code is too involved to be followed to its end'],
    }
  }

  add(target: Set<Value>, values: Values): void {
    for (const value of values) {
      if (target.has(value)) continue
      if (target.size >= MOST_VALUES) this.#isCut = true
      else {
        target.add(value)
        this.isSettled = false
      }
    }
  }

  /** Reports that `values` are used in a way that the analysis does not follow. */
  lose(values: Values, at: Node, seen = new Set<Value>()): void {
    for (const value of values) {
      if (typeof value === 'string') {
        if (!value.includes('.')) this.#miss(value, at)
      } else if (value instanceof Shape && !seen.has(value)) {
        seen.add(value)
        for (const inner of [value.rest, ...value.members.values()]) this.lose(inner, at, seen)
      }
    }
  }

  #miss(path: string, { start }: Node): void {
    if (path !== '' || !this.#isLoose) getOrAdd(this.#missed, path).add(start)
  }

  /** The members of `values` under `name`; all members if the name is computed (undefined). */
  get(values: Values, name: string | undefined, at: Node, seen = new Set<Value>()): Set<Value> {
    const found = new Set<Value>()
    for (const value of values) {
      if (value instanceof Shape && !seen.has(value)) {
        seen.add(value)
        const own = name === undefined ? [...value.members.values()] : [value.members.get(name) ?? []]
        for (const each of [...own, this.get(value.rest, name, at, seen)])
          for (const one of each) found.add(one)
      } else if (typeof value === 'string') {
        const path = name === undefined ? this.#miss(value, at) : this.#follow(value, name)
        if (path !== undefined) found.add(path)
      }
    }
    return found
  }

  #follow(path: string, name: string): string | undefined {
    if (path === '') return PARTS.includes(name) ? name : undefined
    // Only the arguments are declared: req is the whole request.
    if (path === 'req') return name === 'args' ? name : undefined
    const levels = path.split('.').length
    // An index and the length of a value are not parameters.
    if (/^\d+$/.test(name) || (name === 'length' && levels > 1) || levels > MOST_LEVELS) return undefined
    this.#read.add(`${path}.${name}`)
    return `${path}.${name}`
  }
}

/** Removes `card` if `card.number` is in the list. */
function withoutParents(paths: readonly string[]): string[] {
  const parents = new Set(
    paths.flatMap((path) => [...path.matchAll(/\./g)].map(({ index }) => path.slice(0, index))),
  )
  return paths.filter((path) => !parents.has(path)).sort()
}

export function getOrAdd<K, V>(map: Map<K, Set<V>>, key: K): Set<V> {
  const found = map.get(key) ?? new Set<V>()
  map.set(key, found)
  return found
}
