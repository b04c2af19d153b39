import { BRANDS, type CardBrand } from './brands.js'
import { onlyDigits } from './card-number.js'
import type { Reading } from './reading.js'

export interface CodeOptions {
  /** The type of a brand, such as `visa`. Without a known brand, a code has three or four digits. */
  cardBrand?: string | undefined
  cardTypes?: readonly CardBrand[] | undefined
}

const SIZES = [3, 4]

export function formatCode(text: string, options: CodeOptions): string {
  return onlyDigits(text).slice(0, Math.max(...findSizes(options)))
}

export function readCode(text: string, options: CodeOptions): Reading {
  const value = onlyDigits(text)
  const isComplete = findSizes(options).includes(value.length)
  return {
    value,
    isEmpty: value === '',
    isComplete,
    isValid: isComplete,
    fault: isComplete ? undefined : 'incomplete',
  }
}

function findSizes({ cardBrand, cardTypes = BRANDS }: CodeOptions): readonly number[] {
  const brand = cardTypes.find(({ type }) => type === cardBrand)
  return brand === undefined ? SIZES : [brand.code.size]
}
