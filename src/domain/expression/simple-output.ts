/** Common outputs without the Liquid library, with equal results: loading it takes most of a short command's time. */
import type { OutputPiece } from './expression-text.js'
import type { ExpressionUse, Output } from './expression-value.js'
import { callFilter, type FilterPlace } from './filter-call.js'
import { FILTERS, type FilterRule, type RandomSource } from './filters.js'
import { SIMPLE_FILTERS } from './simple-filters.js'

/** Plain names after dots, and filters with numbers and quoted texts as arguments. */
const ARGUMENT = /[ \t\n]*(?:([0-9]{1,9}|-[1-9][0-9]{0,8})|'([^'\\]*)'|"([^"\\]*)")[ \t\n]*/y
const PATH = /[ \t\n]*data((?:\.[A-Za-z_][A-Za-z0-9_]*)*)[ \t\n]*/y
const FILTER = /\|[ \t\n]*([a-z0-9_]+)[ \t\n]*/y
/** Names with a special meaning in Liquid. */
const SPECIAL_NAMES = new Set(['size', 'first', 'last'])

interface Step {
  place: FilterPlace
  rule: FilterRule
  args: unknown[]
}

/** The output, or undefined if it is not simple or not valid; the caller then uses Liquid, which reports errors. */
export function readSimpleOutput(
  text: string,
  piece: OutputPiece,
  use: ExpressionUse,
  random: RandomSource,
): Output | undefined {
  if (piece.reference !== undefined) return undefined
  const content = text.slice(0, piece.to)
  const cursor = { text: content, at: piece.from }
  const path = take(cursor, PATH)?.[1]?.split('.').slice(1)
  if (path === undefined || path.some((name) => SPECIAL_NAMES.has(name))) return undefined
  const steps: Step[] = []
  while (cursor.at < piece.to) {
    const step = takeStep(cursor, text, use)
    if (step === undefined) return undefined
    steps.push(step)
  }
  return {
    evaluate({ data }, budget) {
      const tools = { random, budget, jsonPath: undefined }
      return steps.reduce(
        (value, { place, rule, args }) =>
          callFilter(place, [value, ...args], budget, () => rule.run(value, args, tools)),
        readPath(data, path),
      )
    },
  }
}

interface Cursor {
  text: string
  at: number
}

function takeStep(cursor: Cursor, text: string, use: ExpressionUse): Step | undefined {
  const start = cursor.at
  const found = take(cursor, FILTER)
  const name = found?.[1]
  const rule =
    name === undefined || name === 'json' ? undefined : (FILTERS.get(name) ?? SIMPLE_FILTERS.get(name))
  if (name === undefined || rule === undefined) return undefined
  const args: unknown[] = []
  for (let mark = ':'; cursor.text[cursor.at] === mark; mark = ',') {
    cursor.at++
    const argument = take(cursor, ARGUMENT)
    if (argument === undefined) return undefined
    args.push(argument[1] === undefined ? (argument[2] ?? argument[3]) : Number(argument[1]))
  }
  const isFit = args.length >= rule.least && args.length <= rule.most
  if (!isFit || (rule.onlyIn !== undefined && rule.onlyIn !== use)) return undefined
  return { place: { text, at: start + found![0].indexOf(name), name }, rule, args }
}

function take(cursor: Cursor, pattern: RegExp): RegExpExecArray | undefined {
  pattern.lastIndex = cursor.at
  const found = pattern.exec(cursor.text) ?? undefined
  if (found !== undefined) cursor.at += found[0].length
  return found
}

function readPath(data: unknown, path: readonly string[]): unknown {
  let value = data
  for (const name of path) {
    if (value === undefined || value === null || !Object.hasOwn(Object(value), name)) return null
    value = (value as Record<string, unknown>)[name]
  }
  return value ?? null
}
