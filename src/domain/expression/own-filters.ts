/** Filters that Coffer adds to standard Liquid. Each filter returns null for null. */
import { canonicalJson, exactNumber, isObject } from '../json/json.js'
import { binLength } from '../token/card-number.js'
import {
  type CallTools,
  type FilterRule,
  HMAC_ALGORITHMS,
  type RandomSource,
  refuse,
  textOf,
} from './filter.js'

const MAX_LENGTH = 400
const MAX_COUNT = 10_000

export const OWN_FILTERS: ReadonlyMap<string, FilterRule> = new Map<string, FilterRule>([
  ['reveal_last', rule(1, 2, revealLast, 4)],
  ['reveal', rule(0, 4, reveal, 4)],
  ['last4', rule(0, 0, (value) => [...asText(value)].slice(-4).join(''), 3)],
  ['stringify', rule(0, 0, (value) => (typeof value === 'string' ? value : canonicalJson(value)))],
  ['json', rule(1, 1, selectJson)],
  ['alias_preserve_format', { ...rule(0, 2, aliasFormat), onlyIn: 'id' }],
  ['alias_preserve_length', { ...rule(0, 2, aliasLength), onlyIn: 'id' }],
  ['pad_left', rule(2, 2, (value, args) => padding(value, args) + asText(value), 3)],
  ['pad_right', rule(2, 2, (value, args) => asText(value) + padding(value, args), 3)],
  ['to_string', rule(0, 0, asText)],
  ['to_number', rule(0, 0, toNumber)],
  ['to_boolean', rule(0, 0, (value) => asFlag(typeof value === 'string' ? value.toLowerCase() : value))],
  ['alias_card', { ...rule(0, 2, aliasCard), onlyIn: 'id' }],
  ['card_mask', rule(0, 4, maskCard, 10)],
  ['card_bin', rule(0, 1, selectBin, 3)],
  ['card_exp', rule(1, 1, formatExpiry)],
  ['to_base64', rule(0, 0, (value) => asBytes(value).toString('base64'))],
  ['to_base16', rule(0, 0, (value) => asBytes(value).toString('hex').toUpperCase())],
  ['hmac', { ...rule(1, 2, authenticate), followers: ['to_base64', 'to_base16'] }],
  ['json_stringify', { ...rule(0, 0, (value) => JSON.stringify(value)), followers: [''] }],
])

function rule(least: number, most: number, work: FilterRule['run'], steps = 0): FilterRule {
  return { least, most, steps, run: (value, ...rest) => (value === null ? null : work(value, ...rest)) }
}

function asText(value: unknown): string {
  if (value !== null && typeof value !== 'object') return textOf(value)
  return refuse('this filter takes text, a number or a boolean; use stringify or json on objects and arrays')
}

function asCount(value: unknown): number {
  const count = Number.isInteger(value) ? (value as number) : -1
  if (count >= 0 && count <= MAX_COUNT) return count
  return refuse(`a count must be an integer from 0 to ${MAX_COUNT}`)
}

function asFlag(value: unknown): boolean {
  if (value === true || value === 'true') return true
  return value === false || value === 'false' ? false : refuse('a flag must be true or false')
}

function asCharacter(value: unknown): string {
  if (typeof value === 'string' && [...value].length === 1) return value
  return refuse('a mask or padding must be one character in quotes')
}

function revealLast(value: unknown, [last, maskGiven]: readonly unknown[]): string {
  const mask = asCharacter(maskGiven ?? 'X')
  const characters = [...asText(value)]
  const masked = characters.length - asCount(last)
  return characters.map((character, at) => (at < masked && character !== '-' ? mask : character)).join('')
}

function reveal(value: unknown, [first, last, ...masking]: readonly unknown[]): string {
  return coverMiddle([...asText(value)], readEnds([first, last]), ...readMasking(masking))
}

function readEnds([first, last]: readonly unknown[]) {
  return { first: asCount(first ?? 0), last: asCount(last ?? 0) }
}

type Cover = (character: string, at: number) => string | undefined

function readMasking([maskGiven, preservedGiven]: readonly unknown[]): [Cover, Cover] {
  const mask = asCharacter(maskGiven ?? 'X')
  const preserved = asText(preservedGiven ?? '')
  return [(character) => (preserved.includes(character) ? undefined : mask), () => mask]
}

/**
 * Applies `cover` to the characters between the two visible ends. If this replaces nothing, applies `coverAll` to all
 * characters, so that the value does not stay visible.
 */
function coverMiddle(
  characters: readonly string[],
  { first, last }: ReturnType<typeof readEnds>,
  cover: Cover,
  coverAll = cover,
): string {
  const isHidden = (at: number) => at >= first && at < characters.length - last
  const covers = characters.map((character, at) => (isHidden(at) ? cover(character, at) : undefined))
  const isUnchanged = covers.every((character) => character === undefined)
  const final = isUnchanged ? characters.map(coverAll) : covers
  return characters.map((character, at) => final[at] ?? character).join('')
}

function padding(value: unknown, [length, character]: readonly unknown[]): string {
  return asCharacter(character).repeat(Math.max(0, asCount(length) - [...asText(value)].length))
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const DIGITS = '0123456789'

function aliasFormat(value: unknown, shown: readonly unknown[], { random }: CallTools): string {
  const text = aliasSource(value, /[\p{L}\p{Nd}]/u)
  const letters = randomCharacters(random, LETTERS, text.length)
  const digits = randomCharacters(random, DIGITS, text.length)
  return coverMiddle([...text], readEnds(shown), (character, at) => {
    if (/\p{L}/u.test(character)) return letters[at]
    return /\p{Nd}/u.test(character) ? digits[at] : undefined
  })
}

function aliasLength(value: unknown, shown: readonly unknown[], { random }: CallTools): string {
  const text = aliasSource(value, /^/)
  const drawn = randomCharacters(random, LETTERS + DIGITS, text.length)
  return coverMiddle([...text], readEnds(shown), (_, at) => drawn[at])
}

function aliasSource(value: unknown, pattern: RegExp): string {
  const text = asText(value)
  if (text.length <= MAX_LENGTH && pattern.test(text)) return text
  return refuse(
    `an alias filter takes at most ${MAX_LENGTH} characters, and must be able to replace at least one of them`,
  )
}

/** Skips random bytes that would make some characters more likely. */
function randomCharacters(random: RandomSource, alphabet: string, count: number): string {
  const fair = 256 - (256 % alphabet.length)
  let drawn = ''
  while (drawn.length < count)
    for (const byte of random.bytes(count - drawn.length))
      if (byte < fair) drawn += alphabet[byte % alphabet.length]
  return drawn
}

function aliasCard(value: unknown, shown: readonly unknown[], { random }: CallTools): string {
  const characters = [...aliasSource(value, /^[0-9 -]*$/)]
  const { digits, revealed, ...ends } = findShownDigits(characters, shown)
  if (digits.length < Math.max(revealed, 1)) refuse('alias_card needs at least as many digits as it reveals')
  const drawn = randomCharacters(random, DIGITS, characters.length)
  return coverMiddle(characters, ends, (character, at) => (isDigit(character) ? drawn[at] : undefined))
}

function maskCard(value: unknown, [bin, last, ...masking]: readonly unknown[]): string {
  const [cover, coverAll] = readMasking(masking)
  const characters = [...asText(value)]
  const { digits, revealed, ...ends } = findShownDigits(characters, [bin, last])
  // Without this check, every digit of a short number would stay visible.
  const isTooShort = revealed > 0 && digits.length <= revealed
  return isTooShort ? characters.map(coverAll).join('') : coverMiddle(characters, ends, cover, coverAll)
}

function findShownDigits(characters: readonly string[], [binGiven, lastGiven]: readonly unknown[]) {
  const digits = [...characters.keys()].filter((at) => isDigit(characters[at]!))
  const bin = asFlag(binGiven ?? false) ? binLength(digits.length) : 0
  const end = asFlag(lastGiven ?? false) ? 4 : 0
  return {
    digits,
    revealed: bin + end,
    first: bin === 0 ? 0 : (digits[bin - 1] ?? characters.length) + 1,
    last: end === 0 ? 0 : characters.length - (digits.at(-end) ?? 0),
  }
}

function selectBin(value: unknown, [separator]: readonly unknown[]): string {
  asText(separator ?? '')
  const digits = asText(value).replaceAll(/[^0-9]/g, '')
  const bin = digits.slice(0, binLength(digits.length))
  return bin.length < 6 ? refuse('card_bin takes a card number of at least 6 digits') : bin
}

function formatExpiry(value: unknown, [format]: readonly unknown[]): string | null {
  if (typeof format !== 'string' || format.length > MAX_LENGTH || !isObject(value))
    refuse(
      `card_exp takes the data of a card, and a format of at most ${MAX_LENGTH} characters such as 'MM/YY'`,
    )
  let isComplete = true
  const text = format.replaceAll(/YYYY|YY|MM/g, (part) => {
    const given = value[part === 'MM' ? 'expiration_month' : 'expiration_year'] ?? undefined
    if (given === undefined) isComplete = false
    const [least, most] = part === 'MM' ? [1, 12] : [1000, 9999]
    const isFit = Number.isInteger(given) && Number(given) >= least! && Number(given) <= most!
    if (given !== undefined && !isFit) refuse('card_exp takes a month from 1 to 12 and a year of four digits')
    return String(given).padStart(2, '0').slice(-part.length)
  })
  return isComplete ? text : null
}

function isDigit(character: string): boolean {
  return /^[0-9]$/.test(character)
}

function authenticate(value: unknown, args: readonly unknown[], { hmac }: CallTools): Uint8Array {
  const [given, key] = args.length === 1 ? ['sha-256', args[0]] : args
  const algorithm = HMAC_ALGORITHMS.find((name) => name === given)
  const isAlgorithm = args.length === 1 && HMAC_ALGORITHMS.includes(key as never)
  if (algorithm === undefined || typeof key !== 'string' || key === '' || isAlgorithm)
    refuse(`hmac takes one of the algorithms ${HMAC_ALGORITHMS.join(', ')}, and a key that is not empty`)
  return hmac(algorithm, key, asText(value))
}

function asBytes(value: unknown): Buffer {
  return value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(asText(value), 'utf8')
}

const QUOTED = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g

function selectJson(value: unknown, [path]: readonly unknown[], { jsonPath, budget }: CallTools): unknown {
  if (typeof path !== 'string') refuse('json takes a JSONPath such as "$.address.city"')
  const found = jsonPath!(path, value, budget)
  if (found.length > 1) refuse('the JSONPath selects several values; it must select one')
  const isDescent = path.replaceAll(QUOTED, '').includes('..')
  if (found.length === 0 && isDescent)
    refuse('the JSONPath selects nothing; a JSONPath with ".." must select one value')
  return found[0]
}

function toNumber(value: unknown): number {
  const number = typeof value === 'string' ? exactNumber(value) : value
  if (typeof number === 'number') return number
  return refuse('to_number takes the text of a number that can be stored exactly')
}
