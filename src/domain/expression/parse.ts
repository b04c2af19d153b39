/** Parses text with outputs: `{{ value | filter: argument, argument | … }}`. */
import type { CofferError } from '../../errors.js'
import type { Budget } from './budget.js'
import { type FilterRule, syntaxError } from './filter.js'
import { OWN_FILTERS } from './own-filters.js'
import { STANDARD_FILTERS } from './standard-filters.js'

export const FILTERS: ReadonlyMap<string, FilterRule> = new Map([...STANDARD_FILTERS, ...OWN_FILTERS])

/**
 * `header`: a header of a call through a configured proxy. `call`: any other part of a call through a proxy. `request`,
 * `response`: the transforms of a proxy.
 */
export type ExpressionUse =
  | 'id'
  | 'mask'
  | 'fingerprint'
  | 'search_index'
  | 'detokenize'
  | 'call'
  | 'header'
  | 'request'
  | 'response'

/** A path begins with the name of a variable. `isWhole`: the value is the whole token instead of its data. */
export type Value =
  | { readonly constant: unknown }
  | { readonly path: readonly Value[] }
  | { readonly token: Reference; readonly isWhole: boolean }

/** An expression contains the kind of the record before the id: `{{ token_intent: id }}`. */
export const RECORD_KINDS = ['token', 'token_intent', 'network_token', 'google_pay', 'apple_pay'] as const
export type RecordKind = (typeof RECORD_KINDS)[number]

export type Reference = `${RecordKind | 'config' | 'transform_identifier' | 'encrypted'}:${string}`

export interface FilterCall {
  readonly name: string
  readonly at: number
  readonly rule: FilterRule
  readonly args: readonly Value[]
  readonly isDecimal: boolean
}

export interface Output {
  readonly initial: Value
  readonly filters: readonly FilterCall[]
}

/** A reference at the beginning of an output is not counted. */
const MAX_OUTPUT_LENGTH = 2000
/** In UTF-16 units. An id has at most 400 characters of two units each, and may have white space around it. */
const MAX_REFERENCE_LENGTH = 1000
const MAX_TRANSFORM_REFERENCE_LENGTH = 200
const COMPILED_STEPS = 300
const COMPILED_CHARACTER_STEPS = 20
const ROUNDING = ['ceil', 'floor', 'round']
const UNCLOSED = 'this "{{" has no closing "}}"'

const VARIABLES: Record<ExpressionUse, readonly string[]> = {
  id: ['data'],
  mask: ['data'],
  search_index: ['data'],
  fingerprint: ['data', 'metadata'],
  detokenize: [],
  call: [],
  header: ['proxy'],
  request: ['req', 'request'],
  response: ['res', 'response'],
}
/** In these uses, `{%`, `{{-` and `-}}` have no special meaning, and texts have no length limit. */
const WITHOUT_TAGS: readonly ExpressionUse[] = ['detokenize', 'call', 'header', 'request', 'response']
export const hasTags = (use: ExpressionUse) => !WITHOUT_TAGS.includes(use)
const isOfTransform = (use: ExpressionUse) => use === 'request' || use === 'response'

const LITERALS = new Map(
  Object.entries({ true: true, false: false, nil: null, null: null, empty: '', blank: '' }),
)
const BLANK = /\s*/y
const WORD = /(?:[\w?-]|(?!\s)[\u0080-\uffff])+/y
const NUMBER = /[+-]?\d+(?:\.(?!\.)\d*)?(?![\w?-]|\.(?!\.)|(?!\s)[\u0080-\uffff])/y
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'/sy
const VALUE = new RegExp(`(${STRING.source})|(${NUMBER.source})|(${WORD.source})`, 'sy')
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|(.))/gs
const ESCAPED: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }
const ALLOW_FALSE = /\s*allow_false\s*:/y
/** Finds the end of a token id. A comma is a part of the id, unless a filter follows the comma. */
const REFERENCE_END = /\||\}\}|,[ \t\r\n]*([a-z0-9_]{1,40})[ \t\r\n]*(?=[:|]|\}\})/g
const ENCRYPTED_REFERENCE = /^encrypted(?::|$)/
/** In these uses, `encrypted` is the decrypted data of a request header. */
const WITH_ENCRYPTED: readonly ExpressionUse[] = ['call', 'header']
const REFERENCE = new RegExp(`^(?:(${[...RECORD_KINDS, 'config'].join('|')}):)?\\s*(.*)$`, 's')
const REFERENCE_OF_TRANSFORM =
  /^\s*(?:transform_identifier\s*:\s*(?:'([^']*)'|"([^"]*)"|([^|{}'",]*[^|{}'",\s]))|encrypted)(?=\s*(?:[|,]|\}\}))/

export class ExpressionParser {
  readonly #text: string
  readonly #use: ExpressionUse
  readonly #budget: Budget
  #source = ''
  #at = 0
  #isDecimal = false

  constructor(text: string, use: ExpressionUse, budget: Budget) {
    this.#text = text
    this.#use = use
    this.#budget = budget
  }

  /** @throws CofferError `validation` or `too_much_work` */
  *parts(): Generator<string | Output> {
    const text = this.#text
    const isLiquid = hasTags(this.#use)
    for (let trims = false; this.#at < text.length; ) {
      const found = text.slice(this.#at).search(isLiquid ? /\{[{%]/ : /\{\{/)
      const open = found < 0 ? text.length : this.#at + found
      if (text[open + 1] === '%') throw this.#refuse(open, 'tags ({% … %}) are not supported; use {{ … }}')
      const trimsBefore = isLiquid && text.startsWith('{{-', open)
      let plain = text.slice(this.#at, open)
      if (trims) plain = plain.trimStart()
      if (trimsBefore) plain = plain.trimEnd()
      if (plain !== '') yield plain
      if (open === text.length) return
      this.#at = open + (trimsBefore ? 3 : 2)
      const token = isLiquid ? undefined : this.#readReference(open)
      const from = this.#at
      const end = this.#findClosing(open)
      trims = isLiquid && end > from && text[end - 1] === '-'
      yield this.#readOutput(trims ? end - 1 : end, token)
      this.#at = end + 2
    }
  }

  #readOutput(end: number, token: Value | undefined): Output {
    const length = end - this.#at
    if (length > MAX_OUTPUT_LENGTH)
      throw this.#refuse(this.#at, `an expression has at most ${MAX_OUTPUT_LENGTH} characters`)
    this.#budget.use(COMPILED_STEPS + length * COMPILED_CHARACTER_STEPS)
    this.#source = this.#text.slice(0, end)
    this.#isDecimal = false
    return { initial: token ?? this.#readValue(), filters: this.#readFilters() }
  }

  #refuse(at: number, reason: string): CofferError {
    return syntaxError(this.#text, at, reason)
  }

  #readReference(open: number): Value | undefined {
    const text = this.#text
    const from = this.#at
    if (isOfTransform(this.#use)) {
      const near = text.slice(from, from + MAX_TRANSFORM_REFERENCE_LENGTH)
      const [found = '', ...quoted] = REFERENCE_OF_TRANSFORM.exec(near) ?? []
      this.#at += found.length
      const name = quoted.find((each) => each !== undefined)
      const kind = name === undefined ? 'encrypted' : 'transform_identifier'
      return found === '' ? undefined : { token: `${kind}:${name ?? ''}`, isWhole: true }
    }
    REFERENCE_END.lastIndex = from
    let end = REFERENCE_END.exec(text)
    while (end?.[1] !== undefined && !FILTERS.has(end[1])) end = REFERENCE_END.exec(text)
    if (end === null || end.index > from + MAX_REFERENCE_LENGTH) throw this.#refuse(open, UNCLOSED)
    const given = text.slice(from, end.index).trim()
    if (this.#use === 'header' && /^proxy(?![^.[])/.test(given)) return undefined
    this.#at = end.index
    if (given === 'encrypted' && WITH_ENCRYPTED.includes(this.#use))
      return { token: 'encrypted:', isWhole: true }
    if (ENCRYPTED_REFERENCE.test(given))
      throw this.#refuse(
        text.indexOf(given, from),
        'give the id of a token or token intent instead of "encrypted"',
      )
    const [, kind, id = ''] = REFERENCE.exec(given)!
    if (id === '') throw this.#refuse(from, 'expected a token id')
    return { token: `${kind ?? 'token'}:${id}` as Reference, isWhole: kind !== undefined }
  }

  #findClosing(open: number): number {
    const text = this.#text
    for (let at = this.#at; at < text.length; at++) {
      if (text.startsWith('}}', at)) return at
      if (text[at] !== '"' && text[at] !== "'") continue
      STRING.lastIndex = at
      if (!STRING.test(text)) throw this.#refuse(at, 'this quote is not closed')
      at = STRING.lastIndex - 1
    }
    throw this.#refuse(open, UNCLOSED)
  }

  #match(pattern: RegExp): readonly (string | undefined)[] {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#source) ?? []
    this.#at += found[0]?.length ?? 0
    return found
  }

  #take(pattern: RegExp): string {
    return this.#match(pattern)[0] ?? ''
  }

  #skipBlank(): string {
    this.#take(BLANK)
    return this.#source.charAt(this.#at)
  }

  #readFilters(): FilterCall[] {
    const calls: FilterCall[] = []
    for (let next = this.#skipBlank(); next !== ''; next = this.#skipBlank()) {
      if (next !== '|' && !(next === ',' && calls.length === 0))
        throw this.#refuse(this.#at, 'expected "|" and a filter, or "}}"')
      this.#at++
      this.#skipBlank()
      const call = this.#readCall()
      this.#checkFollower(calls.at(-1), call.name)
      calls.push(call)
    }
    this.#checkFollower(calls.at(-1), '')
    return calls
  }

  #readCall(): FilterCall {
    const at = this.#at
    const name = this.#take(WORD)
    if (name === '') throw this.#refuse(at, 'expected the name of a filter')
    const rule = FILTERS.get(name)
    if (rule === undefined) {
      const own = [...OWN_FILTERS.keys()].join(', ')
      throw this.#refuse(at, `unknown filter "${name}"; use the filters of standard Liquid, or ${own}`)
    }
    if (rule.onlyIn !== undefined && rule.onlyIn !== this.#use)
      throw this.#refuse(at, `filter "${name}" works in token ids only`)
    const args = this.#readArguments(name)
    const { least, most } = rule
    if (args.length < least || args.length > most) {
      const amount = least === most ? `${least}` : `${least} to ${most}`
      throw this.#refuse(at, `filter "${name}" takes ${amount} argument${most === 1 ? '' : 's'}`)
    }
    if (ROUNDING.includes(name) && args.length === 0) this.#isDecimal = false
    return { name, at, rule, args, isDecimal: this.#isDecimal }
  }

  #checkFollower(call: FilterCall | undefined, next: string): void {
    const { followers } = call?.rule ?? {}
    if (call === undefined || followers === undefined || followers.includes(next)) return
    const expected = followers.join(' or ') || 'no other filter'
    throw this.#refuse(call.at, `after filter "${call.name}" comes ${expected}`)
  }

  #readArguments(name: string): Value[] {
    const args: Value[] = []
    if (this.#skipBlank() !== ':') return args
    do {
      this.#at++
      if (name === 'default' && this.#take(ALLOW_FALSE) !== '') args[1] = this.#readValue()
      else args.push(this.#readValue())
    } while (this.#skipBlank() === ',')
    return Array.from(args, (argument = { constant: null }) => argument)
  }

  #readValue(): Value {
    this.#skipBlank()
    const begin = this.#at
    const [found, quoted, number, word = ''] = this.#match(VALUE)
    const isPath = word !== '' && !LITERALS.has(word)
    if (found === undefined || (!isPath && /[.[]/.test(this.#source.charAt(this.#at))))
      throw this.#refuse(begin, 'expected a value such as data.number')
    if (isPath) return this.#readPath(word, begin)
    if (quoted !== undefined) return { constant: quoted.slice(1, -1).replaceAll(ESCAPE, unescapeCharacter) }
    if (number === undefined) return { constant: LITERALS.get(word) }
    const constant = Number(number)
    if (!Number.isFinite(constant)) throw this.#refuse(begin, 'this number is too large')
    this.#isDecimal ||= /\.\d/.test(number)
    return { constant }
  }

  #readPath(root: string, begin: number): Value {
    const variables = VARIABLES[this.#use]
    if (!variables.includes(root)) {
      const known = variables.length === 0 ? 'variables cannot be used here' : `use ${variables.join(' or ')}`
      throw this.#refuse(begin, `unknown variable; ${known}`)
    }
    const path: Value[] = [{ constant: isOfTransform(this.#use) ? 'body' : root }]
    for (let next = this.#source[this.#at]; next === '[' || next === '.'; next = this.#source[this.#at]) {
      this.#at++
      if (next === '[') {
        path.push(this.#readValue())
        if (this.#skipBlank() !== ']') throw this.#refuse(this.#at, 'expected "]"')
        this.#at++
        continue
      }
      this.#skipBlank()
      const constant = this.#take(WORD)
      if (constant === '') throw this.#refuse(this.#at, 'expected a property name after "."')
      path.push({ constant })
    }
    return { path }
  }
}

function unescapeCharacter(_: string, hex?: string, other = ''): string {
  return hex === undefined ? (ESCAPED[other] ?? other) : String.fromCharCode(Number.parseInt(hex, 16))
}
