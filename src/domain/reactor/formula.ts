import type { PropertyErrors } from '../../errors.js'
import { type ConfigurationElement, checkContract, type ParameterElement } from '../contract.js'
import type { Lenient } from '../omit-undefined.js'
import { addError, refuseErrors } from '../property-errors.js'

export const FORMULA_TYPES = ['official', 'private'] as const
export const MAX_NAME_LENGTH = 200
export const MAX_DESCRIPTION_LENGTH = 1_000
export const MAX_ICON_LENGTH = 50_000
export const MAX_CODE_BYTES = 256 * 1024
export const MAX_ELEMENTS = 100

export interface FormulaBody {
  name: string
  description?: string
  type: (typeof FORMULA_TYPES)[number]
  icon?: string
  code: string
  configuration: ConfigurationElement[]
  request_parameters: ParameterElement[]
}

const ICON = /^data:image\/(png|jpe?g);\s*base64\s*,\s*([A-Za-z0-9+/]+={0,2})$/
/** The first bytes of images; an icon that begins with none of these counts as what it says it is. */
const SIGNATURES: Readonly<Record<string, string>> = {
  png: '\x89PNG\r\n\x1a\n',
  jpeg: '\xff\xd8\xff',
  gif: 'GIF8',
  webp: 'RIFF',
}

/** @throws CofferError `validation` with an error for every invalid property. */
export function checkFormula(given: Lenient<FormulaBody>): void {
  const { icon, code, configuration = [], request_parameters = [] } = given
  const errors: PropertyErrors = {}
  if (new TextEncoder().encode(code).length > MAX_CODE_BYTES)
    addError(errors, 'code', `must have at most ${MAX_CODE_BYTES} bytes`)
  if (icon !== undefined && !isIcon(icon))
    addError(errors, 'icon', 'must be a data URL with base64 of a PNG or JPEG image: data:image/png;base64,…')
  checkContract(errors, configuration, request_parameters)
  refuseErrors(errors)
}

function isIcon(text: string): boolean {
  const [, type, base64 = ''] = ICON.exec(text) ?? []
  if (type === undefined || base64.length % 4 !== 0) return false
  // 24 characters of base64 are 18 bytes.
  const begins = (name: string) => atob(base64.slice(0, 24)).startsWith(SIGNATURES[name]!)
  const found = Object.keys(SIGNATURES).find(begins)
  return found === undefined || found === type.replace('jpg', 'jpeg')
}

/**
 * Whether `name` matches a search term. Case-insensitive; `*` matches any characters, and a term without `*` matches
 * any part of the name. Without a regular expression, no term makes this slower than the product of the lengths.
 */
export function matchesName(name: string, term: string): boolean {
  const text = name.toLowerCase()
  const pattern = term.toLowerCase()
  if (!pattern.includes('*')) return text.includes(pattern)
  const [first = '', ...parts] = pattern.split('*')
  const last = parts.pop() ?? ''
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
