/** Parses one output, `value | filter: arguments | …`. Operators, ranges and unknown names are refused. */
import type { OutputPiece } from './expression-text.js'
import type { ExpressionUse } from './expression-value.js'
import type { FilterRule } from './filter-rule.js'
import { FILTERS } from './filters.js'
import { OWN_FILTERS } from './own-filters.js'
import { type Value, ValueParser, WORD } from './parse-value.js'

export interface FilterCall {
  readonly name: string
  /** The position of the name. */
  readonly at: number
  readonly rule: FilterRule
  readonly args: readonly Value[]
  /** The named argument of `default`. */
  readonly allowFalse: Value | undefined
  /** Whether an operand before or in this call is written as a decimal: standard Liquid then does not round down. */
  readonly isDecimal: boolean
}

/** Filters after which a number is an integer again. */
const ROUNDING = ['ceil', 'floor', 'round']

/** The initial value (undefined if that is a token id) and the filters. @throws CofferError `validation` with the column */
export function parseOutput(text: string, { from, to, reference }: OutputPiece, use: ExpressionUse) {
  const parser = new OutputParser(text.slice(0, to), from, use)
  const initial = reference === undefined ? parser.readInitial() : undefined
  return { initial, filters: parser.readFilters(initial) }
}

class OutputParser extends ValueParser {
  readFilters(initial: Value | undefined): FilterCall[] {
    const calls: FilterCall[] = []
    let isDecimal = isWrittenDecimal(initial)
    for (let next = this.skipBlank(); next !== ''; next = this.skipBlank()) {
      if (next !== '|') {
        const isOperator = !/[\w'"),.]/.test(next)
        const reason = 'expected "|" and a filter, or "}}"'
        throw this.refuse(this.position, isOperator ? `${reason}; operators are not supported` : reason)
      }
      const bar = this.position++
      this.skipBlank()
      const at = this.position
      const name = this.take(WORD)
      if (name === '') throw this.refuse(bar + 1, 'expected the name of a filter after "|"')
      const rule = this.findRule(name, at)
      const { args, allowFalse } = this.readArguments(name, at)
      const { least, most } = rule
      const count = args.length + (allowFalse === undefined ? 0 : 1)
      if (count < least || count > most) {
        const amount = least === most ? `${least}` : `${least} to ${most}`
        throw this.refuse(at, `filter "${name}" takes ${amount} argument${most === 1 ? '' : 's'}`)
      }
      isDecimal = isDecimal || args.some(isWrittenDecimal)
      if (ROUNDING.includes(name) && args.length === 0) isDecimal = false
      calls.push({ name, at, rule, args, allowFalse, isDecimal })
    }
    for (const [index, call] of calls.entries()) this.checkFollower(call, calls[index + 1])
    return calls
  }

  private findRule(name: string, at: number): FilterRule {
    const rule = FILTERS.get(name)
    if (rule === undefined) {
      const own = [...OWN_FILTERS.keys()].join(', ')
      throw this.refuse(at, `unknown filter "${name}"; there are those of standard Liquid, and ${own}`)
    }
    if (rule.onlyIn !== undefined && rule.onlyIn !== this.use)
      throw this.refuse(at, `filter "${name}" works in token ids only`)
    return rule
  }

  private readArguments(name: string, at: number): Pick<FilterCall, 'args' | 'allowFalse'> {
    const args: Value[] = []
    let allowFalse: Value | undefined
    const first = this.skipBlank()
    if (!['', ':', '|', ',', ')'].includes(first))
      throw this.refuse(this.position, 'expected ":" before the arguments of a filter')
    if (first !== ':') return { args, allowFalse }
    do {
      this.position++
      const begun = this.position
      const key = /^\s*(\w+)\s*:/.exec(this.text.slice(begun))
      if (key !== null) {
        this.position = begun + key[0].length
        const value = this.readValue()
        if (name !== 'default' || key[1] !== 'allow_false' || value === undefined)
          throw this.refuse(at, `filter "${name}" takes no named argument like this one`)
        allowFalse = value
      } else {
        const value = this.readValue()
        if (value !== undefined) args.push(value)
      }
      if (!['', ',', '|', ')'].includes(this.skipBlank()))
        throw this.refuse(this.position, 'expected "," or "|" after an argument')
    } while (this.text.charAt(this.position) === ',')
    return { args, allowFalse }
  }

  private checkFollower({ name, at, rule: { followers } }: FilterCall, next: FilterCall | undefined): void {
    if (followers === undefined) return
    if (followers.length === 0 && next !== undefined)
      throw this.refuse(next.at, `filter "${name}" must be the last`)
    if (followers.length > 0 && (next === undefined || !followers.includes(next.name)))
      throw this.refuse(at, `after filter "${name}" comes ${followers.join(' or ')}`)
  }
}

function isWrittenDecimal(value: Value | undefined): boolean {
  return value !== undefined && 'constant' in value && value.isDecimal
}
