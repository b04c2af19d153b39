/** The options of fields, for all types of fields. Each type uses some of them. */
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

/** They change only how the hosted fields look. */
const WITHOUT_EFFECT = ['iconPosition', 'copyIconStyles']

/** The names are as in `FieldOptions`. */
const KNOWN = [
  'targetId',
  'aria-label',
  'title',
  'placeholder',
  'autoComplete',
  'inputMode',
  'disabled',
  'readOnly',
  'password',
  'style',
  'validateOnChange',
  'value',
  'cardTypes',
  'skipLuhnValidation',
  'maxElapsedExpirationYear',
  'showSpacing',
  'cardBrand',
  'mask',
  'maxLength',
  'validation',
  'transform',
] as const satisfies readonly (keyof FieldOptions)[]

/** @throws MissingError that names an option which these fields do not have */
export function checkOptions(options: object): void {
  const given = Object.entries(options).filter(([, value]) => isAsked(value))
  const known: readonly string[] = [...KNOWN, ...WITHOUT_EFFECT]
  const other = given.find(([name]) => !known.includes(name))
  if (other !== undefined) throw missing(`the option ${other[0]}`)
}

/** An option that is switched off asks for nothing. */
function isAsked(value: unknown): boolean {
  return (
    value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0)
  )
}
