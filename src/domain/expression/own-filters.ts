/** The filters that Coffer adds to standard Liquid: functions of plain JSON values. */

import { canonicalJson, exactNumber, isObject } from '../json/json.js'
import { binLength } from '../token/card-number.js'
import { asCharacter, asCount, asFlag, asText, plain, refuse } from './filter-arguments.js'
import { type CallTools, type FilterRule, HMAC_ALGORITHMS, type RandomSource } from './filter-rule.js'

/** The maximum length of an alias, which is that of ids. */
const MAX_ALIAS_LENGTH = 400

const MAX_FORMAT_LENGTH = 400

/** Every filter returns null for null. */
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
  ['to_boolean', rule(0, 0, toBoolean)],
  ['alias_card', { ...rule(0, 2, aliasCard), onlyIn: 'id' }],
  ['card_mask', rule(0, 4, maskCard, 10)],
  ['card_bin', rule(0, 1, selectBin, 3)],
  ['card_exp', rule(1, 1, formatExpiry)],
  ['to_base64', rule(0, 0, (value) => asBytes(value).toString('base64'))],
  ['to_base16', rule(0, 0, (value) => asBytes(value).toString('hex').toUpperCase())],
  ['hmac', { ...rule(1, 2, authenticate), followers: ['to_base64', 'to_base16'] }],
  ['json_stringify', { ...rule(0, 0, (value) => JSON.stringify(value)), followers: [] }],
])

function rule(least: number, most: number, work: FilterRule['run'], perCharacter = 0): FilterRule {
  const run: FilterRule['run'] = (value, args, tools) => {
    const given = plain(value)
    return given === null ? null : work(given, args.map(plain), tools)
  }
  return { least, most, perCharacter, run }
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
  return coverMiddle([...asText(value)], readShown([first, last]), cover, () => mask)
}

/** How many characters are shown at the start and at the end. */
interface Shown {
  first: number
  last: number
}

function readShown([first, last]: readonly unknown[]): Shown {
  return {
    first: asCount(first ?? 0, 'how many first characters to reveal'),
    last: asCount(last ?? 0, 'how many last characters to reveal'),
  }
}

/** The replacement of a character, or undefined if the character stays. */
type Cover = (character: string, at: number) => string | undefined

/** Replaces characters between the shown ends; all of them if that replaces none, so that no value stays unchanged. */
function coverMiddle(characters: readonly string[], { first, last }: Shown, cover: Cover, coverAll = cover) {
  const isHidden = (at: number) => at >= first && at < characters.length - last
  const covers = characters.map((character, at) => (isHidden(at) ? cover(character, at) : undefined))
  if (covers.every((character) => character === undefined))
    return characters.map((character, at) => coverAll(character, at) ?? character).join('')
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

function aliasFormat(value: unknown, shown: readonly unknown[], { random }: CallTools): string {
  const text = aliasSource(value)
  if (!/[\p{L}\p{Nd}]/u.test(text))
    refuse('alias_preserve_format needs a value with a letter or digit to replace')
  const letters = drawCharacters(random, LETTERS, text.length)
  const digits = drawCharacters(random, DIGITS, text.length)
  return coverMiddle([...text], readShown(shown), (character, at) => {
    if (/\p{L}/u.test(character)) return letters[at]
    return /\p{Nd}/u.test(character) ? digits[at] : undefined
  })
}

function aliasLength(value: unknown, shown: readonly unknown[], { random }: CallTools): string {
  const text = aliasSource(value)
  const drawn = drawCharacters(random, LETTERS + DIGITS, text.length)
  return coverMiddle([...text], readShown(shown), (_, at) => drawn[at])
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

// ---------------------------------------------------------------- cards

function aliasCard(value: unknown, shown: readonly unknown[], { random }: CallTools): string {
  const text = aliasSource(value)
  if (!/^[0-9 -]*$/.test(text)) refuse('alias_card takes a card number: digits, spaces and hyphens')
  const characters = [...text]
  const { digits, revealed, ...ends } = findShownDigits(characters, shown)
  if (digits.length < Math.max(revealed, 1)) refuse('alias_card needs at least as many digits as it reveals')
  const drawn = drawCharacters(random, DIGITS, characters.length)
  return coverMiddle(characters, ends, (character, at) => (isDigit(character) ? drawn[at] : undefined))
}

function maskCard(value: unknown, [bin, last, maskGiven, preservedGiven]: readonly unknown[]): string {
  const mask = asCharacter(maskGiven ?? 'X', 'the mask')
  const preserved = new Set(asText(preservedGiven ?? ''))
  const characters = [...asText(value)]
  const { digits, revealed, ...ends } = findShownDigits(characters, [bin, last])
  // Every digit would be shown, even if a separator between them is masked.
  if (revealed > 0 && digits.length <= revealed) return mask.repeat(characters.length)
  const cover = (character: string) => (preserved.has(character) ? undefined : mask)
  return coverMiddle(characters, ends, cover, () => mask)
}

/** `digits`: their positions. `first` and `last`: how many characters at each end contain the `revealed` digits. */
function findShownDigits(characters: readonly string[], [binGiven, lastGiven]: readonly unknown[]) {
  const digits = [...characters.keys()].filter((at) => isDigit(characters[at]!))
  const bin = asFlag(binGiven ?? false, 'whether to reveal the BIN') ? binLength(digits.length) : 0
  const end = asFlag(lastGiven ?? false, 'whether to reveal the last 4 digits') ? 4 : 0
  return {
    digits,
    revealed: bin + end,
    first: bin === 0 ? 0 : (digits[bin - 1] ?? characters.length) + 1,
    last: end === 0 ? 0 : characters.length - (digits.at(-end) ?? 0),
  }
}

/** Separators are removed whether they are given or not. */
function selectBin(value: unknown, [separator]: readonly unknown[]): string {
  asText(separator ?? '')
  const digits = asText(value).replaceAll(/[^0-9]/g, '')
  const length = binLength(digits.length)
  return digits.length < length
    ? refuse('card_bin takes a card number of at least 6 digits')
    : digits.slice(0, length)
}

/** Null if a part that the format names is absent. */
function formatExpiry(value: unknown, [format]: readonly unknown[]): string | null {
  if (typeof format !== 'string' || format.length > MAX_FORMAT_LENGTH)
    refuse(`card_exp takes a format of at most ${MAX_FORMAT_LENGTH} characters such as 'MM/YY'`)
  if (!isObject(value)) refuse('card_exp takes the data of a card')
  let isComplete = true
  const text = format.replaceAll(/YYYY|YY|MM/g, (part) => {
    const given = value[part === 'MM' ? 'expiration_month' : 'expiration_year'] ?? undefined
    if (given === undefined) isComplete = false
    const [least, most] = part === 'MM' ? [1, 12] : [1000, 9999]
    if (
      given !== undefined &&
      !(Number.isInteger(given) && Number(given) >= least! && Number(given) <= most!)
    )
      refuse('card_exp takes a month from 1 to 12 and a year of four digits')
    return String(given).padStart(2, '0').slice(-part.length)
  })
  return isComplete ? text : null
}

function isDigit(character: string): boolean {
  return character >= '0' && character <= '9' && character.length === 1
}

// ---------------------------------------------------------------- bytes

/** The algorithm is the first argument, and may be left out. */
function authenticate(value: unknown, args: readonly unknown[], { hmac }: CallTools): Uint8Array {
  const [algorithmGiven, keyGiven] = args.length === 1 ? ['sha-256', args[0]] : args
  const algorithm = HMAC_ALGORITHMS.find((name) => name === algorithmGiven)
  if (algorithm === undefined)
    refuse(`hmac takes one of the algorithms ${HMAC_ALGORITHMS.join(', ')}, then a key`)
  if (args.length === 1 && HMAC_ALGORITHMS.some((name) => name === keyGiven)) refuse('hmac needs a key')
  if (typeof keyGiven !== 'string' || keyGiven === '')
    refuse('the key of hmac must be text that is not empty')
  return hmac(algorithm, keyGiven, asText(value))
}

function asBytes(value: unknown): Buffer {
  return value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(asText(value), 'utf8')
}

// ---------------------------------------------------------------- selection and casts

function selectJson(value: unknown, [path]: readonly unknown[], { jsonPath, budget }: CallTools): unknown {
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
