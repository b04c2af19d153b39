/**
 * Derives the values that a network gives out for a card. Each digest is made with a secret key of the tenant, so that
 * a digest does not reveal the card number.
 */
import { BASE58 } from '../text/base58.js'
import { isLuhnValid } from '../token/luhn.js'

const BRAND_DIGITS = 4
const PAR_CHARACTERS = 29
const DIGITS_AND_LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const LAST_MONTH = 12
const YEARS = 3
const LAST_YEAR = 9999

/**
 * Keeps the brand and length of the card. The result has a valid checksum and differs from `card`. `digest`: 32 bytes
 * in base58.
 */
export function deriveNumber(card: string, digest: string): string {
  const count = card.length - BRAND_DIGITS - 1
  const first = BigInt(10) ** BigInt(count)
  for (let value = readBase58(digest) % first; ; value = (value + 1n) % first) {
    const number = withCheckDigit(card.slice(0, BRAND_DIGITS) + value.toString().padStart(count, '0'))
    if (number !== card) return number
  }
}

/** Returns the payment account reference (PAR) of the card. `digest`: 32 bytes in base58. */
export function derivePar(digest: string): string {
  const base = BigInt(DIGITS_AND_LETTERS.length)
  let value = readBase58(digest)
  let par = ''
  for (; par.length < PAR_CHARACTERS; value /= base) par += DIGITS_AND_LETTERS[Number(value % base)]
  return par
}

export function deriveExpiry({ expiration_year }: { expiration_year: number }) {
  return { expiration_month: LAST_MONTH, expiration_year: Math.min(LAST_YEAR, expiration_year + YEARS) }
}

/** Returns 16 characters, such as `XXXXXXXXXXXX1111`, for a number of any length. */
export function maskNumber(number: string): string {
  return `XXXXXXXXXXXX${number.slice(-4)}`
}

function withCheckDigit(digits: string): string {
  const check = Array.from({ length: 10 }, (_, digit) => digits + digit)
  return check.find(isLuhnValid)!
}

function readBase58(base58: string): bigint {
  return [...base58].reduce((value, character) => value * 58n + BigInt(BASE58.indexOf(character)), 0n)
}
