/** Finds syntax errors and unsafe content in JSON text, without building the value. */

export const MAX_JSON_DEPTH = 64

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const WORD = /true|false|null/y
const PLAIN = /[^"\\\u0000-\u001f]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const QUOTE = 0x22

class Fault extends Error {
  readonly at: number
  constructor(at: number, reason: string) {
    super(reason)
    this.at = at
  }
}

/** Takes linear time. `maxValues` limits values and property names together. */
export function findFault(text: string, maxValues = Number.POSITIVE_INFINITY): Fault | undefined {
  if (text.charCodeAt(0) === 0xfeff) return new Fault(0, 'it starts with a byte order mark; send plain UTF-8')
  if (!text.isWellFormed()) return new Fault(text.search(/\p{Cs}/u), 'half of a surrogate pair stands alone')
  try {
    new JsonScanner(text, maxValues).scan()
    return undefined
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
}

class JsonScanner {
  readonly #text: string
  readonly #maxValues: number
  #values = 0
  #at = 0

  constructor(text: string, maxValues: number) {
    this.#text = text
    this.#maxValues = maxValues
  }

  scan(): void {
    this.#value(0, false)
    this.#skipSpace()
    if (this.#at < this.#text.length) this.#refuse('expected nothing more after the value')
  }

  /**
   * `isConstructor`: the value belongs to a property `constructor`. A property `prototype` in the value could change
   * the prototype of a class.
   */
  #value(depth: number, isConstructor: boolean): void {
    const code = this.#skipSpace()
    this.#count()
    if (code === QUOTE) this.#string()
    else if (code === 0x7b) this.#object(depth + 1, isConstructor)
    else if (code === 0x5b) this.#array(depth + 1)
    else if (!this.#match(WORD)) this.#number()
  }

  #object(depth: number, isConstructor: boolean): void {
    this.#enter(depth)
    if (this.#take(0x7d)) return
    const names = new Set<string>()
    do {
      const name = this.#name(names, isConstructor)
      names.add(name)
      if (!this.#take(0x3a)) this.#refuse('expected ":" after the property name')
      this.#value(depth, name === 'constructor')
    } while (this.#take(0x2c))
    if (!this.#take(0x7d)) this.#refuse('expected "," or "}"')
  }

  #array(depth: number): void {
    this.#enter(depth)
    if (this.#take(0x5d)) return
    do this.#value(depth, false)
    while (this.#take(0x2c))
    if (!this.#take(0x5d)) this.#refuse('expected "," or "]"')
  }

  #name(names: ReadonlySet<string>, isConstructor: boolean): string {
    if (this.#skipSpace() !== QUOTE) this.#refuse('expected a property name in double quotes')
    this.#count()
    const from = this.#at
    this.#string()
    const raw = this.#text.slice(from, this.#at)
    const name = raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1)
    if (names.has(name)) this.#refuse('this property occurs twice in one object; keep one of them', from)
    if (name === '__proto__' || (isConstructor && name === 'prototype'))
      this.#refuse('a property of this name could change object prototypes and is refused', from)
    return name
  }

  #number(): void {
    const from = this.#at
    if (!this.#match(NUMBER)) this.#refuse('expected a JSON value (strings and names in double quotes)')
    if (exactNumber(this.#text.slice(from, this.#at)) === undefined)
      this.#refuse('this number cannot be stored exactly; send it as a string', from)
  }

  #string(): void {
    const from = this.#at++
    let isEscaped = false
    for (;;) {
      // This pattern always matches, possibly an empty text.
      this.#match(PLAIN)
      if (this.#text.charCodeAt(this.#at) === QUOTE) break
      if (!this.#match(ESCAPE))
        this.#refuse('expected a closing quote, or an escape such as \\n; control characters must be escaped')
      isEscaped = true
    }
    this.#at++
    if (isEscaped && !(JSON.parse(this.#text.slice(from, this.#at)) as string).isWellFormed())
      this.#refuse('half of a surrogate pair stands alone in this string', from)
  }

  #enter(depth: number): void {
    if (depth > MAX_JSON_DEPTH) this.#refuse(`nested more than ${MAX_JSON_DEPTH} levels deep`)
    this.#at++
  }

  #count(): void {
    if (++this.#values > this.#maxValues)
      this.#refuse(`it has more than ${this.#maxValues} values and property names`)
  }

  #skipSpace(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code
      this.#at++
    }
  }

  #take(code: number): boolean {
    if (this.#skipSpace() !== code) return false
    this.#at++
    return true
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    const isFound = pattern.test(this.#text)
    if (isFound) this.#at = pattern.lastIndex
    return isFound
  }

  #refuse(reason: string, at = this.#at): never {
    const isAtEnd = at === this.#text.length
    throw new Fault(at, isAtEnd ? `the text ends too early; ${reason}` : reason)
  }
}

const NUMBER_TEXT = /^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/
/** Longer numbers are refused without parsing. A double has at most 767 significant digits. */
const MAX_NUMBER_LENGTH = 1100

/**
 * Accepts leading zeros. Returns undefined if the text is no number, or if a double would be printed as another number.
 * Examples are 2^53 + 1 and 1e400.
 */
export function exactNumber(text: string): number | undefined {
  if (text.length > MAX_NUMBER_LENGTH || !NUMBER_TEXT.test(text)) return undefined
  const value = Number(text)
  if (String(value) === text || (text.length <= 15 && !/[eE]/.test(text))) return value
  return Number.isFinite(value) && significant(text) === significant(String(value)) ? value : undefined
}

/** Returns the same text for all spellings of a number. Ignores the sign. */
function significant(text: string): string {
  const [mantissa = '', power = '0'] = text.replace(/^-/, '').toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = (whole + fraction).replace(/^0+/, '')
  // A regular expression would take quadratic time here.
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return end === 0 ? '0' : `${digits.slice(0, end)}e${Number(power) - fraction.length + digits.length - end}`
}
