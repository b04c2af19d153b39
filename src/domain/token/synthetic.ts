/** Generates valid token data. Equal seeds give equal data. The numbers belong to nobody. */
import { mapScalars } from '../json/find-texts.js'
import { isObject } from '../json/json.js'
import { isLuhnValid } from './luhn.js'
import { isAbaValid, type TokenTypeName } from './token-types.js'

type Draw = (below: number) => number

/** A pseudorandom generator (mulberry32, seeded by FNV-1a), not for secrets. */
export function createDraw(seed: string): Draw {
  let state = 0x811c9dc5
  for (let at = 0; at < seed.length; at++) state = Math.imul(state ^ seed.charCodeAt(at), 0x01000193)
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** Published test ranges: the first digits, the length of the number, and the length of the verification code. */
const CARD_RANGES = [
  ['42424242', 16, 3],
  ['41111111', 16, 3],
  ['55555555', 16, 3],
  ['22230000', 16, 3],
  ['60111111', 16, 3],
  ['378282', 15, 4],
] as const
/** No Federal Reserve district issues a number that begins with these digits. */
const ROUTING_PREFIX = '1100000'
const NAMES = 'Ada Alan Barbara Edsger Grace John Katherine Linus Margaret Tim'.split(' ')
const SURNAMES = 'Example Fixture Mock Placeholder Sample Stub Template Test'.split(' ')

const GENERATORS: Readonly<Record<TokenTypeName, (draw: Draw) => unknown>> = {
  token: (draw) => {
    const [first, last] = [NAMES[draw(NAMES.length)]!, SURNAMES[draw(SURNAMES.length)]!]
    const email = `${first}.${last}.${digits(draw, 4)}@example.com`.toLowerCase()
    // Numbers from 555-0100 to 555-0199 are reserved for fiction.
    return { name: `${first} ${last}`, email, phone: `(212) 555-01${digits(draw, 2)}` }
  },
  card: (draw) => {
    const { number, codeLength } = cardNumber(draw)
    return {
      number,
      expiration_month: 1 + draw(12),
      expiration_year: 2040 + draw(40),
      cvc: digits(draw, codeLength),
    }
  },
  bank: (draw) => ({ routing_number: routingNumber(draw), account_number: accountNumber(draw) }),
  card_number: (draw) => cardNumber(draw).number,
  us_bank_account_number: accountNumber,
  us_bank_routing_number: routingNumber,
  // Areas from 900 on are never issued, and no taxpayer number has a group from 10 to 49.
  social_security_number: (draw) => `9${digits(draw, 2)}-${10 + draw(40)}-${digits(draw, 4)}`,
  // The tax authority (IRS) never issues the prefix 00.
  employer_id_number: (draw) => `00-${digits(draw, 7)}`,
}

export function generateData(type: TokenTypeName, draw: Draw): unknown {
  return GENERATORS[type](draw)
}

export function replaceData(type: TokenTypeName, data: unknown, draw: Draw): unknown {
  if (type === 'token') return mapScalars(data, (scalar) => replaceScalar(scalar, draw))
  const generated = generateData(type, draw)
  if (!isObject(generated) || !isObject(data)) return generated
  return Object.fromEntries(Object.entries(generated).filter(([name]) => Object.hasOwn(data, name)))
}

function replaceScalar(value: unknown, draw: Draw): unknown {
  if (typeof value === 'string')
    return value.replaceAll(/\p{L}|\p{N}/gu, (each) => replaceCharacter(each, draw))
  if (typeof value === 'number') return Number.isInteger(value) ? draw(1_000_000) : draw(1_000_000) / 100
  return typeof value === 'boolean' ? draw(2) === 1 : value
}

function replaceCharacter(character: string, draw: Draw): string {
  if (/\p{N}/u.test(character)) return String(draw(10))
  const letter = String.fromCharCode(97 + draw(26))
  return /\p{Lu}/u.test(character) ? letter.toUpperCase() : letter
}

function cardNumber(draw: Draw): { number: string; codeLength: number } {
  const [prefix, length, codeLength] = CARD_RANGES[draw(CARD_RANGES.length)]!
  return { number: complete(prefix + digits(draw, length - prefix.length - 1), isLuhnValid), codeLength }
}

function routingNumber(draw: Draw): string {
  return complete(ROUTING_PREFIX + digits(draw, 1), isAbaValid)
}

function accountNumber(draw: Draw): string {
  return `000${digits(draw, 9)}`
}

function digits(draw: Draw, count: number): string {
  let text = ''
  while (text.length < count) text += draw(10)
  return text
}

function complete(start: string, isValid: (digits: string) => boolean): string {
  for (let digit = 0; ; digit++) if (isValid(`${start}${digit}`)) return `${start}${digit}`
}
