/** In bytes. A shorter value would occur by chance in many texts. */
export const SHORTEST_VALUE = 6
/** In bytes. Only the beginning of a longer value is searched for. */
export const LONGEST_VALUE = 1024
export const MAX_DEPTH = 2

const SEPARATED = /^\d(?:[ .-]?\d){7,}$/
const DIGITS = /\d(?:[ .-]?\d){7,}/g
const BASE64 = /[A-Za-z0-9+/_-]{8,}/g
/**
 * Long runs of hexadecimal digits are not decoded as base64, because base64 of a long text contains other characters
 * too.
 */
const LONG_HEX = /^[\da-f]{32,}$/i
const PERCENT = /%([\da-f]{2})/gi
const ESCAPED = /(?:\\u[\da-fA-F]{4}|\\["\\/bfnrt])+/g

interface Value {
  text: string
  ids: Set<string>
  /** The number of the last `find` call that found this value. */
  foundBy: number
}

/** Finds values in text, plain or encoded. The text is `latin1`, so that any bytes can be searched. */
export class ValueFinder {
  omitted = 0
  readonly #byText = new Map<string, Value>()
  /** `#byStart`: the values by their first six bytes. `#starts`: one bit for the first three bytes of each value. */
  readonly #byStart = new Map<string, Value[]>()
  readonly #starts = new Uint8Array(1 << 21)
  #calls = 0

  /** Adds the values in `data` that do not occur in `shown`. */
  add(id: string, data: unknown, shown: unknown = []): void {
    const known = listValues(shown)
    for (const text of listValues(data)) {
      if (known.some((each) => each.includes(text))) continue
      this.#addText(id, text)
      if (SEPARATED.test(text)) this.#addText(id, text.replaceAll(/\D/g, ''))
    }
  }

  /** Returns the ids of the values that occur in `text`. Only the longest line of each value is searched for. */
  find(text: string, depth = MAX_DEPTH): Set<string> {
    this.#calls++
    const found = new Set<string>()
    this.#search(text, found, depth)
    return found
  }

  #addText(id: string, text: string): void {
    const lines = Buffer.from(text)
      .toString('latin1', 0, LONGEST_VALUE)
      .split(/[\r\n]+/)
    const line = lines.reduce((longest, each) => (each.length > longest.length ? each : longest))
    if (line.length < SHORTEST_VALUE) {
      this.omitted++
      return
    }
    const known = this.#byText.get(line)
    if (known !== undefined) return void known.ids.add(id)
    const value = { text: line, ids: new Set([id]), foundBy: 0 }
    this.#byText.set(line, value)
    const key = line.slice(0, SHORTEST_VALUE)
    const alike = this.#byStart.get(key) ?? []
    alike.push(value)
    this.#byStart.set(key, alike)
    const start = Buffer.from(key, 'latin1').readUIntBE(0, 3)
    this.#starts[start >> 3]! |= 1 << (start & 7)
  }

  #search(text: string, found: Set<string>, depth: number): void {
    let start = 0
    for (let at = -2; at + SHORTEST_VALUE <= text.length; at++) {
      start = ((start << 8) | text.charCodeAt(at + 2)) & 0xffffff
      if (at < 0 || (this.#starts[start >> 3]! & (1 << (start & 7))) === 0) continue
      for (const value of this.#byStart.get(text.slice(at, at + SHORTEST_VALUE)) ?? []) {
        if (value.foundBy === this.#calls || !text.startsWith(value.text, at)) continue
        value.foundBy = this.#calls
        for (const id of value.ids) found.add(id)
      }
    }
    if (depth > 0) for (const decoded of decodings(text)) this.#search(decoded, found, depth - 1)
  }
}

function* decodings(text: string): Generator<string> {
  for (const [run] of text.matchAll(DIGITS)) {
    const digits = run.replaceAll(/\D/g, '')
    if (digits !== run) yield digits
  }
  if (text.includes('%')) yield decodePercent(text)
  // Forms encode a space as a plus sign.
  if (text.includes('+')) yield decodePercent(text.replaceAll('+', ' '))
  if (text.includes('\\')) yield unescapeJson(text)
  yield* decodeBase64(text)
}

function decodePercent(text: string): string {
  return text.replaceAll(PERCENT, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

export function unescapeJson(text: string): string {
  return text.replaceAll(ESCAPED, (run) => Buffer.from(JSON.parse(`"${run}"`) as string).toString('latin1'))
}

/**
 * Decodes each run of base64 to its own line. Yields four texts, which skip zero to three characters of each run,
 * because other characters may come directly before the base64.
 */
export function* decodeBase64(text: string): Generator<string> {
  const runs = (text.match(BASE64) ?? []).filter((run) => !LONG_HEX.test(run))
  if (runs.length === 0) return
  for (let first = 0; first < 4; first++)
    yield runs.map((run) => Buffer.from(run.slice(first), 'base64').toString('latin1')).join('\n')
}

function listValues(value: unknown): string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(listValues)
  return typeof value === 'string' || typeof value === 'number' ? [String(value)] : []
}
