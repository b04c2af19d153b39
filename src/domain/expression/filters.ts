/** The filters that Coffer adds to standard Liquid: functions of plain JSON values. */
import { CofferError } from '../../errors.js'
import { canonicalJson, exactNumber } from '../json/json.js'
import type { Budget } from './budget.js'

/** Cryptographic randomness. */
export interface RandomSource {
  bytes(count: number): Uint8Array
}

/** All values that a JSONPath selects. */
export type JsonPath = (path: string, value: unknown, budget: Budget) => unknown[]

export interface FilterTools {
  readonly random: RandomSource
  readonly budget: Budget
  /** Present if the expression uses the `json` filter. */
  readonly jsonPath: JsonPath | undefined
}

export interface FilterRule {
  /** The minimum and maximum number of arguments. */
  readonly least: number
  readonly most: number
  /** The only use in which the filter is allowed. */
  readonly onlyIn?: 'id'
  /** @throws CofferError `validation` if the filter does not accept the value or the arguments. */
  run(value: unknown, args: readonly unknown[], tools: FilterTools): unknown
}

/** The maximum count, length and padded length that filters accept. */
export const MAX_FILTER_LENGTH = 10_000
/** The maximum length of an alias, which is that of ids. */
const MAX_ALIAS_LENGTH = 400

/** Every filter returns null for null. */
export const FILTERS: ReadonlyMap<string, FilterRule> = new Map<string, FilterRule>([
  ['reveal_last', rule(1, 2, revealLast)],
  ['reveal', rule(0, 4, reveal)],
  ['last4', rule(0, 0, (value) => [...asText(value)].slice(-4).join(''))],
  ['stringify', rule(0, 0, (value) => (typeof value === 'string' ? value : canonicalJson(value)))],
  ['json', rule(1, 1, selectJson)],
  ['alias_preserve_format', { ...rule(0, 2, aliasFormat), onlyIn: 'id' }],
  ['alias_preserve_length', { ...rule(0, 2, aliasLength), onlyIn: 'id' }],
  ['pad_left', rule(2, 2, (value, args) => padding(value, args) + asText(value))],
  ['pad_right', rule(2, 2, (value, args) => asText(value) + padding(value, args))],
  ['to_string', rule(0, 0, asText)],
  ['to_number', rule(0, 0, toNumber)],
  ['to_boolean', rule(0, 0, toBoolean)],
])

function rule(least: number, most: number, work: FilterRule['run']): FilterRule {
  return { least, most, run: (value, args, tools) => (value === null ? null : work(value, args, tools)) }
}

// ---------------------------------------------------------------- masks and padding, by code points

function revealLast(value: unknown, [countGiven, maskGiven]: readonly unknown[]): string {
  const count = asCount(countGiven, 'how many characters to reveal')
  const mask = asCharacter(maskGiven ?? 'X', 'the mask')
  const characters = [...asText(value)]
  const masked = characters.length - count
  if (masked <= 0) return characters.join('')
  return characters.map((character, at) => (at < masked && character !== '-' ? mask : character)).join('')
}

function reveal(value: unknown, [first, last, maskGiven, preservedGiven]: readonly unknown[]): string {
  const mask = asCharacter(maskGiven ?? 'X', 'the mask')
  const preserved = new Set(asText(preservedGiven ?? ''))
  const cover = (character: string) => (preserved.has(character) ? undefined : mask)
  return coverMiddle(asText(value), [first, last], cover, () => mask)
}

/** The replacement of a character, or undefined if the character stays. */
type Cover = (character: string, at: number) => string | undefined

/**
 * Replaces the characters between the first and last ones that are shown. If that replaces nothing, all characters are
 * replaced, so that the value is never returned unchanged.
 */
function coverMiddle(
  text: string,
  [firstGiven, lastGiven]: readonly unknown[],
  cover: Cover,
  coverAll = cover,
): string {
  const first = asCount(firstGiven ?? 0, 'how many first characters to reveal')
  const last = asCount(lastGiven ?? 0, 'how many last characters to reveal')
  const characters = [...text]
  const isHidden = (at: number) => at >= first && at < characters.length - last
  const covers = characters.map((character, at) => (isHidden(at) ? cover(character, at) : undefined))
  if (covers.every((character) => character === undefined)) {
    return characters.map((character, at) => coverAll(character, at) ?? character).join('')
  }
  return characters.map((character, at) => covers[at] ?? character).join('')
}

function padding(value: unknown, [lengthGiven, characterGiven]: readonly unknown[]): string {
  const length = asCount(lengthGiven, 'the length')
  const character = asCharacter(characterGiven, 'the padding')
  return character.repeat(Math.max(0, length - [...asText(value)].length))
}

// ---------------------------------------------------------------- aliases

const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const DIGITS = '0123456789'

function aliasFormat(value: unknown, shown: readonly unknown[], { random }: FilterTools): string {
  const text = aliasSource(value)
  if (!/[\p{L}\p{Nd}]/u.test(text))
    refuse('alias_preserve_format needs a value with a letter or digit to replace')
  const letters = drawCharacters(random, LETTERS, text.length)
  const digits = drawCharacters(random, DIGITS, text.length)
  return coverMiddle(text, shown, (character, at) => {
    if (/\p{L}/u.test(character)) return letters[at]
    return /\p{Nd}/u.test(character) ? digits[at] : undefined
  })
}

function aliasLength(value: unknown, shown: readonly unknown[], { random }: FilterTools): string {
  const text = aliasSource(value)
  const drawn = drawCharacters(random, LETTERS + DIGITS, text.length)
  return coverMiddle(text, shown, (_, at) => drawn[at])
}

function aliasSource(value: unknown): string {
  const text = asText(value)
  if (text.length > MAX_ALIAS_LENGTH) refuse(`an alias is made of at most ${MAX_ALIAS_LENGTH} characters`)
  return text
}

function drawCharacters(random: RandomSource, alphabet: string, count: number): string {
  const fair = 256 - (256 % alphabet.length)
  let drawn = ''
  while (drawn.length < count) {
    for (const byte of random.bytes(count - drawn.length)) {
      if (byte < fair) drawn += alphabet[byte % alphabet.length]
    }
  }
  return drawn
}

// ---------------------------------------------------------------- selection and casts

function selectJson(value: unknown, [path]: readonly unknown[], { jsonPath, budget }: FilterTools): unknown {
  if (typeof path !== 'string' || jsonPath === undefined)
    refuse('json takes a JSONPath such as "$.address.city"')
  const found = jsonPath(path, value, budget)
  if (found.length > 1) refuse('the JSONPath selects several values; it must select one')
  return found[0] ?? null
}

function toNumber(value: unknown): number {
  if (typeof value === 'number') return value
  const number = typeof value === 'string' ? exactNumber(value) : undefined
  return number ?? refuse('to_number takes the text of a number that can be kept exactly')
}

function toBoolean(value: unknown): boolean {
  if (typeof value === 'boolean') return value
  const word = typeof value === 'string' ? value.toLowerCase() : ''
  if (word !== 'true' && word !== 'false') refuse('to_boolean takes true or false')
  return word === 'true'
}

// ---------------------------------------------------------------- arguments

function asText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return canonicalJson(value)
  return refuse('this filter takes text, a number or a boolean; use stringify or json on objects and arrays')
}

function asCount(value: unknown, meaning: string): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_FILTER_LENGTH)
    return value as number
  return refuse(`${meaning} must be an integer from 0 to ${MAX_FILTER_LENGTH}`)
}

function asCharacter(value: unknown, meaning: string): string {
  if (typeof value === 'string' && [...value].length === 1) return value
  return refuse(`${meaning} must be one character in quotes`)
}

function refuse(message: string): never {
  throw new CofferError('validation', message)
}
