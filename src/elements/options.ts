/** Each type of field uses some of these options. */
import type { CardBrand } from './brands.js'
import { missing } from './errors.js'
import type { Mask, TextOptions } from './text.js'

export interface CardPlaceholders {
  cardNumber?: string
  cardExpirationDate?: string
  cardSecurityCode?: string
}

export interface CardAutoComplete {
  number: string
  expirationDate: string
  csc: string
}

export interface FieldOptions {
  targetId?: string | undefined
  'aria-label'?: string | undefined
  title?: string | undefined
  placeholder?: string | CardPlaceholders | undefined
  autoComplete?: string | CardAutoComplete | undefined
  inputMode?: string | undefined
  disabled?: boolean | undefined
  readOnly?: boolean | undefined
  password?: boolean | undefined
  style?: { base?: Record<string, unknown> } | undefined
  validateOnChange?: boolean | undefined
  value?: unknown
  cardTypes?: CardBrand[] | undefined
  skipLuhnValidation?: boolean | undefined
  maxElapsedExpirationYear?: number | undefined
  showSpacing?: boolean | undefined
  cardBrand?: string | undefined
  mask?: Mask | undefined
  maxLength?: number | undefined
  validation?: RegExp | undefined
  transform?: TextOptions['transform']
}

/**
 * Options of the hosted fields that the fields of Coffer do not have and refuse. Other unknown options are ignored, as
 * by the hosted fields.
 */
const MISSING = ['enableCopy', 'binLookup', 'coBadgedSupport', 'preSelectedNetworks']

/** @throws MissingError that names an option which these fields do not have */
export function checkOptions(options: object): void {
  const asked = Object.entries(options).find(([name, value]) => MISSING.includes(name) && isOn(value))
  if (asked !== undefined) throw missing(`the option ${asked[0]}`)
}

function isOn(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value)
}
