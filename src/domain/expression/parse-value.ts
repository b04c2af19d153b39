/** Parses values: constants, and paths such as `data.lines[0]`. */
import type { CofferError } from '../../errors.js'
import type { ExpressionUse } from './expression-value.js'
import { Emptiness } from './filter-arguments.js'
import { syntaxError } from './syntax-error.js'

/** A constant, or a path from a variable, whose parts are values too. `isDecimal`: written as `7.0`. */
export type Value =
  | { readonly constant: unknown; readonly isDecimal: boolean }
  | { readonly path: readonly Value[] }

const VARIABLES: Record<ExpressionUse, readonly string[]> = {
  id: ['data'],
  mask: ['data'],
  search_index: ['data'],
  fingerprint: ['data', 'metadata'],
  detokenize: [],
}

const LITERALS = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['nil', null],
  ['null', null],
  ['empty', new Emptiness(false)],
  ['blank', new Emptiness(true)],
])
const BLANK = /\s*/y
export const WORD = /(?:[\w?-]|(?!\s)[\u0080-\uffff])+/y
const NUMBER = /[+-]?\d+(?:\.(?!\.)\d*)?(?![\w?-]|\.(?!\.)|(?!\s)[\u0080-\uffff])/y
const ESCAPE = /\\(?:u([0-9a-fA-F]{0,4})|([0-7]{1,3})|(.))/gs
const ESCAPED: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** The path of a property that a text begins with: `address.city`, `lines[0]`. @throws CofferError `validation` */
export function parsePath(text: string): Value | undefined {
  return new ValueParser(text, 0, undefined).readPath()
}

export class ValueParser {
  protected readonly text: string
  protected readonly use: ExpressionUse | undefined
  protected position: number

  /** Without a `use`, a path may begin with any name. */
  constructor(text: string, from: number, use: ExpressionUse | undefined) {
    this.text = text
    this.position = from
    this.use = use
  }

  protected refuse(at: number, reason: string): CofferError {
    return syntaxError(this.text, at, reason)
  }

  protected take(pattern: RegExp): string {
    pattern.lastIndex = this.position
    const found = pattern.exec(this.text)?.[0] ?? ''
    this.position += found.length
    return found
  }

  protected skipBlank(): string {
    this.take(BLANK)
    return this.text.charAt(this.position)
  }

  readInitial(): Value {
    const value = this.readValue()
    if (value === undefined) throw this.refuse(this.position, 'expected a value such as data.number')
    return value
  }

  protected readValue(): Value | undefined {
    const next = this.skipBlank()
    const begin = this.position
    if (next === '(') throw this.refuse(begin, 'ranges and parentheses are not supported')
    const constant = this.readConstant(next)
    if (/[.[]/.test(this.text.charAt(this.position)) && !(constant === undefined && next !== '['))
      throw this.refuse(begin, 'expected a value such as data.number')
    return constant ?? this.readPath()
  }

  readPath(): Value | undefined {
    this.skipBlank()
    const begin = this.position
    const root = this.take(WORD)
    if (root === '') return undefined
    const variables = this.use === undefined ? [root] : VARIABLES[this.use]
    if (!variables.includes(root)) {
      const known = variables.length === 0 ? 'variables cannot be used here' : `use ${variables.join(' or ')}`
      throw this.refuse(begin, `unknown variable; ${known}`)
    }
    return { path: [nameValue(root), ...this.readParts()] }
  }

  private readParts(): Value[] {
    const parts: Value[] = []
    for (;;) {
      const next = this.text.charAt(this.position)
      if (next === '[') parts.push(this.readIndex())
      else if (next === '.' && this.text.charAt(this.position + 1) !== '.') {
        this.position++
        this.skipBlank()
        const name = this.take(WORD)
        if (name === '') throw this.refuse(this.position, 'expected a property name after "."')
        parts.push(nameValue(name))
      } else return parts
    }
  }

  private readIndex(): Value {
    this.position++
    const value = this.readValue()
    if (value === undefined) throw this.refuse(this.position, 'expected a name or index between "[" and "]"')
    const end = this.position
    if (!this.text.includes(']', end)) throw this.refuse(this.text.length, 'this "[" has no closing "]"')
    if (this.skipBlank() !== ']') throw this.refuse(end, 'expected "]"')
    this.position++
    return value
  }

  private readConstant(next: string): Value | undefined {
    const begin = this.position
    if (next === '"' || next === "'") {
      let end = begin + 1
      while (end < this.text.length && this.text[end] !== next) end += this.text[end] === '\\' ? 2 : 1
      this.position = Math.min(end + 1, this.text.length)
      return nameValue(this.text.slice(begin + 1, end).replaceAll(ESCAPE, unescapeCharacter))
    }
    const number = this.take(NUMBER)
    if (number !== '') {
      const constant = Number(number)
      if (!Number.isFinite(constant)) throw this.refuse(begin, 'this number is too large')
      return { constant, isDecimal: /\.\d/.test(number) }
    }
    const word = this.take(WORD)
    if (LITERALS.has(word)) return { constant: LITERALS.get(word), isDecimal: false }
    this.position = begin
    return undefined
  }
}

function nameValue(constant: string): Value {
  return { constant, isDecimal: false }
}

function unescapeCharacter(
  _: string,
  hex: string | undefined,
  octal: string | undefined,
  other = '',
): string {
  if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex || '0', 16))
  return octal === undefined ? (ESCAPED[other] ?? other) : String.fromCharCode(Number.parseInt(octal, 8))
}
