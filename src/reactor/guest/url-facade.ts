/** `URL` and `URLSearchParams` for reactor code: our own classes over private instances of Node's. */
import { URLSearchParams as NodeParams, URL as NodeURL } from 'node:url'
import { type Any, guard } from './shield.js'

const PARTS = 'href protocol username password host hostname port pathname search hash'.split(' ')

/** Replaces the instance under `made`; for this file only. */
let link: (made: URLSearchParams, raw: NodeParams) => void

export class URLSearchParams {
  #raw: NodeParams

  constructor(init?: unknown) {
    this.#raw = new NodeParams(toPairs(init))
  }
  static {
    link = (made, raw) => {
      made.#raw = raw
    }
  }
  get size(): number {
    return this.#raw.size
  }
  append(name: unknown, value: unknown): void {
    this.#raw.append(`${name}`, `${value}`)
  }
  delete(name: unknown, value?: unknown): void {
    this.#raw.delete(`${name}`, ...toOptional(value))
  }
  get(name: unknown): string | null {
    return this.#raw.get(`${name}`)
  }
  getAll(name: unknown): string[] {
    return [...this.#raw.getAll(`${name}`)]
  }
  has(name: unknown, value?: unknown): boolean {
    return this.#raw.has(`${name}`, ...toOptional(value))
  }
  set(name: unknown, value: unknown): void {
    this.#raw.set(`${name}`, `${value}`)
  }
  sort(): void {
    this.#raw.sort()
  }
  toString(): string {
    return this.#raw.toString()
  }
  forEach(see: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void {
    for (const [name, value] of this) Reflect.apply(see, self, [value, name, this])
  }
  *keys(): Generator<string> {
    for (const [name] of this) yield name
  }
  *values(): Generator<string> {
    for (const [, value] of this) yield value
  }
  *entries(): Generator<[string, string]> {
    yield* this
  }
  *[Symbol.iterator](): Generator<[string, string]> {
    const pairs = Array.from(this.#raw)
    for (const [name, value] of pairs) yield [name, value]
  }
  get [Symbol.toStringTag](): string {
    return 'URLSearchParams'
  }
}

/** Converts text, pairs or a record, with all parts converted to strings. */
function toPairs(init: unknown): string | [string, string][] {
  if (init === undefined) return []
  if ((typeof init !== 'object' && typeof init !== 'function') || init === null) return `${init as string}`
  if (!(Symbol.iterator in init)) return Object.entries(init).map(([name, value]) => [name, `${value}`])
  return Array.from(init as Iterable<Iterable<unknown>>, (pair) => {
    const [name, value, ...more] = pair
    if (value === undefined || more.length > 0) throw new TypeError('Each pair must be a name and a value')
    return [`${name}`, `${value}`]
  })
}

function toOptional(value: unknown): [] | [string] {
  return value === undefined ? [] : [`${value}`]
}

export class URL {
  readonly #raw: Any
  #params: URLSearchParams | undefined

  constructor(url: unknown, base?: unknown) {
    const [text, from] = [`${url}`, ...toOptional(base)] as const
    this.#raw = guard(() => new NodeURL(text, from))
  }
  static canParse(url: unknown, base?: unknown): boolean {
    return NodeURL.canParse(`${url}`, ...toOptional(base))
  }
  static parse(url: unknown, base?: unknown): URL | null {
    return URL.canParse(url, base) ? new URL(url, base) : null
  }
  get origin(): string {
    return this.#raw.origin
  }
  get searchParams(): URLSearchParams {
    if (this.#params === undefined) {
      this.#params = new URLSearchParams()
      link(this.#params, this.#raw.searchParams)
    }
    return this.#params
  }
  toString(): string {
    return this.#raw.href
  }
  toJSON(): string {
    return this.#raw.href
  }
  get [Symbol.toStringTag](): string {
    return 'URL'
  }
  static {
    for (const name of PARTS) {
      const part = {
        get [name](): unknown {
          return (this as unknown as URL).#raw[name]
        },
        set [name](value: unknown) {
          const text = `${value}`
          const raw = (this as unknown as URL).#raw
          guard(() => {
            raw[name] = text
          })
        },
      }
      Object.defineProperty(URL.prototype, name, Object.getOwnPropertyDescriptor(part, name)!)
    }
  }
}
