/** `URL` and `URLSearchParams` for reactor code: our own classes over hidden instances of Node's. */
import { URLSearchParams as NodeParams, URL as NodeURL } from 'node:url'
import { Pairs } from '../pairs.js'
import { guard, Hidden } from '../shield.js'

const params = new Hidden<NodeParams>()
const urls = new Hidden<NodeURL>()

export class URLSearchParams extends Pairs {
  constructor(init?: unknown) {
    super()
    params.set(this, new NodeParams(toPairs(init)))
  }
  *[Symbol.iterator](): Generator<[string, string]> {
    for (const [name, value] of Array.from(params.get(this))) yield [name, value]
  }
  get [Symbol.toStringTag](): string {
    return 'URLSearchParams'
  }
}
params.addMembers(URLSearchParams, {
  reads: 'size',
  methods: 'append delete get getAll has set sort toString',
})

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

export class URL {
  #params: URLSearchParams | undefined

  constructor(url: unknown, base?: unknown) {
    const texts = toTexts(url, base)
    urls.set(
      this,
      guard(() => new NodeURL(...texts)),
    )
  }
  static canParse(url: unknown, base?: unknown): boolean {
    return NodeURL.canParse(...toTexts(url, base))
  }
  static parse(url: unknown, base?: unknown): URL | null {
    return URL.canParse(url, base) ? new URL(url, base) : null
  }
  get searchParams(): URLSearchParams {
    if (this.#params === undefined) {
      this.#params = new URLSearchParams()
      params.set(this.#params, urls.get(this).searchParams)
    }
    return this.#params
  }
  get [Symbol.toStringTag](): string {
    return 'URL'
  }
}
urls.addMembers(URL, {
  reads: 'origin',
  sets: 'href protocol username password host hostname port pathname search hash',
  methods: 'toString toJSON',
})

function toTexts(url: unknown, base: unknown): [string, string?] {
  return base === undefined ? [`${url}`] : [`${url}`, `${base}`]
}
