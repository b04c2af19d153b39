/** Keeps the latest requests, without secrets, and lets callers wait for requests. */
import { EventEmitter, once } from 'node:events'
import { BoundedMap } from '../bounded-map.js'
import { isObject, tryJson } from '../domain/json/json.js'
import { withoutRunKeysIn } from '../domain/reactor/run-key.js'
import type { NotEmulated, RequestFilter, RequestRecord } from '../framework/ports/control.js'
import type { RegisteredOperation } from '../framework/registry.js'
import type { HttpResponse } from '../http/exchange.js'
import type { LeftOut } from '../http/router.js'
import { describeLength, describeShape } from './shape.js'

const MAX_REQUESTS = 1000
/** At this number of distinct paths that are not emulated, the oldest path is dropped. */
const MAX_NOT_EMULATED = 1000
const MAX_SEGMENTS = 8
const MAX_BODY_LENGTH = 16_384
/**
 * The list of requests shows a value of these properties if the value matches the pattern. Other values are redacted,
 * because the caller may have put data into the property by mistake.
 */
const SHOWN: Readonly<Record<string, RegExp>> = {
  id: /./s,
  tenant_id: /./s,
  parent_id: /./s,
  child_id: /./s,
  type: /^[a-z_]{1,40}$/,
  containers: /^\/(?:[A-Za-z0-9_-]+\/)*$/,
  permissions: /^[a-z:-]{1,40}$/,
  operation: /^[a-z _-]{1,40}$/,
  entity_type: /^[a-z_]{1,40}$/,
  deduplicate_token: /^(?:true|false)$/,
}

/** Problems of this type may contain texts from reactor code. */
const REACTOR_FAILED = 'urn:coffer:problem:reactor-failed'

export class Requests {
  readonly #records: RequestRecord[] = []
  #count = 0
  readonly #added = new EventEmitter().setMaxListeners(0)
  #notEmulated = new BoundedMap<string, NotEmulated>(MAX_NOT_EMULATED)

  get count(): number {
    return this.#count
  }

  add(record: RequestRecord): void {
    this.#records.push(withoutRunKeysIn(record))
    this.#count++
    if (this.#records.length > MAX_REQUESTS) this.#records.shift()
    this.#added.emit('added')
  }

  addNotEmulated(method: string, path: string, { area, path: known }: LeftOut): void {
    const template = templateOf(path, known)
    const name = `${method} ${template}`
    const counted = this.#notEmulated.get(name)
    if (counted === undefined) this.#notEmulated.set(name, { method, path: template, area, count: 1 })
    else counted.count++
  }

  get notEmulated(): NotEmulated[] {
    return [...this.#notEmulated.values()].map((each) => ({ ...each }))
  }

  clear(): void {
    this.#records.length = 0
    this.#notEmulated = new BoundedMap(MAX_NOT_EMULATED)
  }

  /**
   * `count`: the number of records that the caller has read. Returns the later records, and the count for the next
   * call.
   */
  after(count: number): { count: number; first: number; records: RequestRecord[] } {
    const first = this.#count - this.#records.length
    return { count: this.#count, first, records: this.#records.slice(Math.max(0, count - first)) }
  }

  accepted(most: number): string[] {
    return this.#records
      .filter(({ status }) => status === 202)
      .slice(-most)
      .map(({ trace_id }) => trace_id)
  }

  findByTrace(id: string): RequestRecord | undefined {
    return this.#records.findLast(({ trace_id }) => trace_id === id)
  }

  async find(filter: RequestFilter, count: number, timeoutMs: number): Promise<RequestRecord[]> {
    const names = Object.keys(filter) as (keyof RequestFilter)[]
    const search = () =>
      this.#records.filter((record) => names.every((name) => record[name] === filter[name]))
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), timeoutMs)
    while (search().length < count && !late.signal.aborted)
      await once(this.#added, 'added', { signal: late.signal }).catch(() => undefined)
    clearTimeout(timer)
    return search()
  }
}

/**
 * Replaces segments below `known` with `{}` unless they are plain lower-case words, because every other
 * segment could be an id.
 */
function templateOf(path: string, known: string): string {
  const fixed = known.split('/')
  const segments = path.replace(/\/$/, '').split('/')
  const parts = segments.slice(fixed.length, MAX_SEGMENTS)
  const named = parts.map((part) => (/^[a-z]{1,30}(-[a-z]{1,30}){0,3}$/.test(part) ? part : '{}'))
  return [known, ...named, ...(segments.length > MAX_SEGMENTS ? ['…'] : [])].join('/')
}

/**
 * Replaces a body by its shape, which contains only property names in `names`. If `known` is given, keeps the
 * properties in `known`, and their values if {@link SHOWN} allows.
 */
export function redactBody(
  text: string,
  names: ReadonlySet<string>,
  known: readonly string[] | undefined,
  isProblem = false,
): unknown {
  if (text === '') return undefined
  const value = text.length > MAX_BODY_LENGTH ? undefined : tryJson(text)
  if (value === undefined) return describeLength(text)
  // A problem contains no data, unless reactor code has written its text.
  const { proxy_error: problem = value } = isObject(value) ? value : {}
  if (isProblem && isObject(problem) && problem.type !== REACTOR_FAILED) return problem
  if (isProblem && isObject(problem))
    return { ...propertiesOf(describeShape(problem, names)), type: REACTOR_FAILED }
  if (known === undefined || !isObject(value)) return describeShape(value, names)
  const entries = Object.entries(value).filter(([name]) => known.includes(name))
  return Object.fromEntries(
    entries.map(([name, item]) => [name, isShown(name, item) ? item : describeShape(item, names)]),
  )
}

const propertiesOf = (shape: unknown) => (isObject(shape) ? shape : {})

function isShown(name: string, value: unknown): boolean {
  const pattern = Object.hasOwn(SHOWN, name) ? SHOWN[name] : undefined
  return [value]
    .flat()
    .every((item) => item === null || (typeof item !== 'object' && pattern?.test(String(item)) === true))
}

/** Returns only declared names, because other names could contain data. */
export function queryNames(search: string, operation: RegisteredOperation | undefined): string[] | undefined {
  if (search === '') return undefined
  const sent = new Set(new URLSearchParams(search).keys())
  const names = Object.keys(operation?.endpoint?.query ?? {}).filter((name) => sent.has(name))
  return names.length === 0 ? undefined : names
}

export function redactResponse(
  { headers, body, mayTellData }: HttpResponse,
  operation: RegisteredOperation | undefined,
  names: ReadonlySet<string>,
) {
  const isOfCode = headers['content-security-policy'] === 'sandbox'
  const isOwn = headers['content-type']?.includes('problem') || operation?.name === 'proxy call'
  const isProblem = isOwn === true && !isOfCode && mayTellData !== true
  return redactBody(body, names, knownOf(operation, 'output'), isProblem)
}

/** Returns undefined if the body may be any JSON. */
export function knownOf(
  operation: RegisteredOperation | undefined,
  side: 'input' | 'output',
): string[] | undefined {
  const isOpen =
    operation?.http?.body?.whole !== undefined || ['reactor', 'proxy'].includes(operation?.noun ?? '')
  const schema = operation?.[side]
  return isOpen || schema?.type !== 'object' ? undefined : Object.keys(schema.properties ?? {})
}
