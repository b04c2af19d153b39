import { isLuhnValid } from '../domain/token/luhn.js'
import { BRANDS, type CardBrand, findBrand } from './brands.js'
import type { CardDetails, Reading } from './reading.js'

export interface NumberOptions {
  /** The accepted brands. Without this option, cards of unknown brands are accepted too. */
  cardTypes?: readonly CardBrand[] | undefined
  skipLuhnValidation?: boolean | undefined
}

/** The lengths of card numbers (ISO/IEC 7812-1). */
const ANY_LENGTH = [12, 13, 14, 15, 16, 17, 18, 19]
const GROUPS_OF_FOUR = [4, 8, 12, 16]
const PREFIX_LENGTH = 6
/** A number with at least this many digits has a bank identification number of eight digits. */
const LONG_BIN_FROM = 16

export function formatNumber(text: string, { cardTypes = BRANDS }: NumberOptions): string {
  const digits = onlyDigits(text)
  const { gaps = GROUPS_OF_FOUR, lengths = ANY_LENGTH } = findBrand(digits, cardTypes) ?? {}
  const kept = digits.slice(0, Math.max(...lengths))
  const starts = [0, ...gaps.filter((gap) => gap < kept.length)]
  return starts.map((start, at) => kept.slice(start, starts[at + 1])).join(' ')
}

export function readNumber(text: string, { cardTypes, skipLuhnValidation = false }: NumberOptions): Reading {
  const value = onlyDigits(text)
  const brand = findBrand(value, cardTypes)
  const isRefused = brand === undefined && cardTypes !== undefined && value.length >= PREFIX_LENGTH
  const isLong = (brand?.lengths ?? ANY_LENGTH).includes(value.length)
  const isValid = isLong && !isRefused && (skipLuhnValidation || isLuhnValid(value))
  const fault = isValid ? undefined : isLong || isRefused ? 'invalid' : 'incomplete'
  return {
    value,
    isEmpty: value === '',
    isComplete: isValid,
    isValid,
    fault,
    card: describeCard(value, brand, isValid),
  }
}

function describeCard(digits: string, brand: CardBrand | undefined, isComplete: boolean): CardDetails {
  const cardBrand = brand?.type ?? 'unknown'
  if (!isComplete) return { cardBrand }
  const cardBin = digits.slice(0, digits.length >= LONG_BIN_FROM ? 8 : PREFIX_LENGTH)
  return { cardBrand, cardLast4: digits.slice(-4), cardBin }
}

export const onlyDigits = (text: string) => text.replaceAll(/\D/g, '')
