/** Our own `Blob`, `File` and `FormData` for reactor code, and the format of forms (RFC 7578). */
import { Buffer as NodeBuffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { URLSearchParams as NodeParams } from 'node:url'
import { Pairs } from './pairs.js'
import { define, Hidden, viewMemory } from './shield.js'
import { type ReadableStream, streamOf } from './streams.js'

type Bytes = Uint8Array<ArrayBuffer>

const MAX_PARTS = 10_000
const contents = new Hidden<{ bytes: Bytes; type: string; size: number }>()

export class Blob {
  constructor(parts: unknown = [], options?: { type?: unknown } | null) {
    if (typeof parts !== 'object' || parts === null || !(Symbol.iterator in parts))
      throw new TypeError('The parts of a Blob must be an array')
    const all = Array.from(parts as Iterable<unknown>, toBytes)
    const type = toType(options?.type)
    const bytes = join(all)
    contents.set(this, { bytes, type, size: bytes.length })
  }
  slice(start?: number, end?: number, type?: unknown): Blob {
    const { bytes } = contents.get(this)
    return new Blob([bytes.subarray(Number(start ?? 0), end === undefined ? bytes.length : Number(end))], {
      type,
    })
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return contents.get(this).bytes.slice().buffer
  }
  async bytes(): Promise<Bytes> {
    return contents.get(this).bytes.slice()
  }
  async text(): Promise<string> {
    return NodeBuffer.from(contents.get(this).bytes)
      .toString('utf8')
      .replace(/^\uFEFF/, '')
  }
  stream(): ReadableStream {
    return streamOf(contents.get(this).bytes)
  }
}
contents.addMembers(Blob, { reads: 'type size' })
define(Blob.prototype, Symbol.toStringTag, 'Blob', false)

const { now } = Date
const files = new Hidden<{ name: string; lastModified: number }>()

export class File extends Blob {
  constructor(parts: unknown, name: unknown, options?: { type?: unknown; lastModified?: unknown } | null) {
    super(parts, options)
    files.set(this, { name: `${name}`, lastModified: Number(options?.lastModified ?? now()) })
  }
}
files.addMembers(File, { reads: 'name lastModified' })
define(File.prototype, Symbol.toStringTag, 'File', false)

/** Callers must not change the bytes. */
export function contentOf(blob: Blob): { bytes: Bytes; type: string } {
  return contents.get(blob)
}

function toBytes(part: unknown): Bytes {
  if (part instanceof Blob) return contents.get(part).bytes
  const memory = viewMemory(part)
  return new Uint8Array(memory ?? NodeBuffer.from(`${part}`))
}

function join(all: readonly Bytes[]): Bytes {
  const whole = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const each of all) {
    whole.set(each, at)
    at += each.length
  }
  return whole
}

/** A type with invalid characters counts as absent, because these characters could add a header to a form. */
function toType(given: unknown): string {
  const text = given === undefined ? '' : `${given}`
  return /^[\x20-\x7e]*$/.test(text) ? text.toLowerCase() : ''
}

type Value = string | File
type Entry = [name: string, value: Value]

/** Not a method, because reactor code can replace methods. */
let entriesOf: (form: FormData) => readonly Entry[]

export class FormData extends Pairs<Value> {
  #entries: Entry[] = []

  static {
    entriesOf = (form) => form.#entries
  }
  constructor(form?: unknown) {
    super()
    if (form !== undefined) throw new TypeError('FormData takes no argument')
  }
  append(name: unknown, value: unknown, fileName?: unknown): void {
    if (this.#entries.length >= MAX_PARTS) throw new RangeError(`A form may have at most ${MAX_PARTS} parts`)
    this.#entries.push([`${name}`, toValue(value, fileName)])
  }
  set(name: unknown, value: unknown, fileName?: unknown): void {
    const [key, made] = [`${name}`, toValue(value, fileName)]
    const at = this.#entries.findIndex(([each]) => each === key)
    if (at === -1) {
      this.append(key, made)
      return
    }
    this.#entries = this.#entries.filter(([each], index) => each !== key || index === at)
    this.#entries[at] = [key, made]
  }
  get(name: unknown): Value | null {
    return this.getAll(name)[0] ?? null
  }
  getAll(name: unknown): Value[] {
    const key = `${name}`
    return this.#entries.filter(([each]) => each === key).map(([, value]) => value)
  }
  has(name: unknown): boolean {
    return this.getAll(name).length > 0
  }
  delete(name: unknown): void {
    const key = `${name}`
    this.#entries = this.#entries.filter(([each]) => each !== key)
  }
  *[Symbol.iterator](): Generator<[string, Value]> {
    for (const [name, value] of [...this.#entries]) yield [name, value]
  }
}
define(FormData.prototype, Symbol.toStringTag, 'FormData', false)

/** Nobody can guess the boundary, so no value contains it. */
export function encodeForm(form: FormData): { bytes: Bytes; type: string } {
  const boundary = `----form-${randomBytes(18).toString('hex')}`
  const parts = entriesOf(form).flatMap(([name, value]) => [
    toBytes(`--${boundary}\r\n${describePart(name, value)}\r\n\r\n`),
    typeof value === 'string' ? toBytes(value.replaceAll(/\r\n|\r|\n/g, '\r\n')) : contentOf(value).bytes,
    toBytes('\r\n'),
  ])
  const bytes = join([...parts, toBytes(`--${boundary}--\r\n`)])
  return { bytes, type: `multipart/form-data; boundary=${boundary}` }
}

function toValue(value: unknown, fileName: unknown): Value {
  if (!(value instanceof Blob)) return `${value}`
  if (value instanceof File && fileName === undefined) return value
  const { name, lastModified } =
    value instanceof File ? files.get(value) : { name: 'blob', lastModified: now() }
  const { type } = contents.get(value)
  return new File([value], fileName === undefined ? name : fileName, { type, lastModified })
}

function describePart(name: string, value: Value): string {
  const disposition = `Content-Disposition: form-data; name="${escapeName(name.replaceAll(/\r\n|\r|\n/g, '\r\n'))}"`
  if (typeof value === 'string') return disposition
  const type = contentOf(value).type || 'application/octet-stream'
  return `${disposition}; filename="${escapeName(files.get(value).name)}"\r\nContent-Type: ${type}`
}

const ESCAPES: Readonly<Record<string, string>> = { '"': '%22', '\r': '%0D', '\n': '%0A' }
const escapeName = (name: string) => name.replaceAll(/["\r\n]/g, (each) => ESCAPES[each]!)

/** @throws TypeError if `contentType` is no type of a form, or if the body is no form */
export function parseForm(body: Bytes, contentType: string): FormData {
  const form = new FormData()
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) {
    for (const [name, value] of Array.from(new NodeParams(NodeBuffer.from(body).toString())))
      form.append(name, value)
    return form
  }
  const boundary = /^multipart\/form-data\b.*;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType)
  if (boundary === null) throw new TypeError('The body is not a form')
  const bytes = NodeBuffer.concat([NodeBuffer.from('\r\n'), body])
  const mark = NodeBuffer.from(`\r\n--${boundary[1] ?? boundary[2]}`)
  const first = bytes.indexOf(mark)
  if (first === -1) throw new TypeError('The body does not contain the boundary of the form')
  for (let at = first + mark.length; ; ) {
    if (bytes.toString('latin1', at, at + 2) === '--') return form
    const end = bytes.indexOf(mark, at)
    const head = bytes.indexOf('\r\n\r\n', at)
    if (end === -1 || head === -1 || head > end) throw new TypeError('The form has no end')
    addPart(form, bytes.toString('utf8', at, head), bytes.subarray(head + 4, end))
    at = end + mark.length
  }
}

function addPart(form: FormData, head: string, bytes: NodeBuffer): void {
  const unquote = (text: string) =>
    text.replaceAll(/%(?:22|0D|0A)/gi, (each) => String.fromCharCode(Number.parseInt(each.slice(1), 16)))
  const name = /;\s*name="([^"]*)"/i.exec(head)?.[1]
  if (name === undefined) throw new TypeError('A part of the form has no name')
  const fileName = /;\s*filename="([^"]*)"/i.exec(head)?.[1]
  const type = /^content-type:[\t ]*(.*)$/im.exec(head)?.[1]?.trim()
  const value =
    fileName === undefined ? bytes.toString('utf8') : new File([bytes], unquote(fileName), { type })
  form.append(unquote(name), value)
}
