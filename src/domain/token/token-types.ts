/** Messages about token data never contain a value. */
import { type PropertyErrors, validationError } from '../../errors.js'
import { isObject } from '../json/json.js'
import { addError, refuseErrors } from '../property-errors.js'
import { isLuhnValid } from './luhn.js'
import { isAcceptedWithoutLuhn } from './test-cards.js'

interface TypeRules {
  readonly containers: readonly string[]
  readonly fingerprint_expression: string
  readonly mask?: unknown
  readonly search_indexes?: readonly string[]
  readonly isStructured?: true
  /** Members that a caller may give as integers. The vault stores text. */
  readonly textMembers?: readonly string[]
  /** Members that a caller may give as text of digits. The vault stores integers. */
  readonly integerMembers?: readonly string[]
  check(data: unknown): PropertyErrors
}

export type TokenTypeName = keyof typeof RULES

export type TokenType = TypeRules & { readonly name: TokenTypeName }

export const DATA_NOT_NULL = 'must not be null; a token holds a value'

export function validateData(type: TokenType, data: unknown): PropertyErrors {
  if (data === undefined) return { data: ['is required'] }
  return data === null ? { data: [DATA_NOT_NULL] } : type.check(data)
}

/** @throws CofferError `validation` with all errors */
export function readData(type: TokenType, data: unknown): unknown {
  refuseErrors(validateData(type, data))
  if (!type.isStructured) return data
  const { textMembers = [], integerMembers = [] } = type
  const convert = (name: string, value: unknown) => {
    if (textMembers.includes(name)) return String(value)
    return integerMembers.includes(name) ? Number(value) : value
  }
  const members = Object.entries(data as object).filter(([, value]) => value !== null)
  return Object.fromEntries(members.map(([name, value]) => [name, convert(name, value)]))
}

export function findTokenType(name: unknown): TokenType {
  const type = TOKEN_TYPES.find((candidate) => candidate.name === name)
  if (type !== undefined) return type
  if (name === undefined || name === null) throw validationError('is required')
  throw validationError(`must be one of ${TOKEN_TYPE_NAMES.join(', ')}`)
}

/** Whether nine digits are a valid ABA routing number. */
export function isAbaValid(digits: string): boolean {
  const weights = [3, 7, 1]
  const sum = [...digits].reduce((total, digit, index) => total + Number(digit) * weights[index % 3]!, 0)
  return sum % 10 === 0 && !/^0+$/.test(digits)
}

type Check = (value: unknown) => string | undefined

function check(isValid: (value: unknown) => boolean, rule: string): Check {
  return (value) => (isValid(value) ? undefined : `must be ${rule}`)
}

function matching(pattern: RegExp, rule: string, isValid = (_text: string) => true): Check {
  return check((value) => typeof value === 'string' && pattern.test(value) && isValid(value), rule)
}

function digitsBetween(least: number, most: number): Check {
  return matching(
    new RegExp(`^[0-9]{${least},${most}}$`),
    `a string of ${least} to ${most} digits, no separators`,
  )
}

/** Also accepts text with at most as many digits as `most` (see `integerMembers`). Leading zeros are allowed. */
function integerBetween(least: number, most: number): Check {
  const digits = new RegExp(`^[0-9]{1,${String(most).length}}$`)
  const isInteger = (value: unknown) =>
    typeof value === 'string' ? digits.test(value) : Number.isInteger(value)
  const isWithin = (value: unknown) => isInteger(value) && Number(value) >= least && Number(value) <= most
  return check(isWithin, `an integer from ${least} to ${most}, or its digits as text`)
}

const cardNumber = matching(
  /^[0-9]{12,19}$/,
  'a string of 12 to 19 digits, no separators, with a valid check digit (Luhn)',
  isLuhnValid,
)
/** Some published test cards fail the checksum. Only tokens of the type `card` may have these numbers. */
const numberOfCard: Check = (value) =>
  typeof value === 'string' && isAcceptedWithoutLuhn(value) ? undefined : cardNumber(value)
/** The published routing number of a disabled test account fails the checksum. */
const TEST_ROUTING_NUMBER = '021000020'
const routingNumber = matching(
  /^[0-9]{9}$/,
  'a string of 9 digits, no separators, with a valid checksum (ABA)',
  (digits) => isAbaValid(digits) || digits === TEST_ROUTING_NUMBER,
)
const verificationCode: Check = (value) =>
  digitsBetween(3, 4)(Number.isInteger(value) ? String(value) : value)

function primitive(check: Check): TypeRules['check'] {
  return (data) => {
    const complaint = check(data)
    return complaint === undefined ? {} : { data: [complaint] }
  }
}

function structure(required: Record<string, Check>, optional: Record<string, Check> = {}) {
  const checks = { ...required, ...optional }
  const names = Object.keys(checks).join(', ')
  const allowed = `only these properties are allowed: ${names}`
  return (data: unknown): PropertyErrors => {
    if (!isObject(data)) return { data: [`must be an object with the properties ${names}`] }
    const errors: PropertyErrors = {}
    for (const [name, check] of Object.entries(checks)) {
      const isRequired = Object.hasOwn(required, name)
      const value = Object.hasOwn(data, name) ? data[name] : undefined
      const isAbsent = value === undefined || (value === null && !isRequired)
      const complaint = isAbsent ? (isRequired ? 'is required' : undefined) : check(value)
      if (complaint !== undefined) addError(errors, `data.${name}`, complaint)
    }
    for (const name of Object.keys(data))
      if (!Object.hasOwn(checks, name))
        addError(errors, SHOWABLE_NAME.test(name) ? `data.${name}` : 'data', allowed)
    return errors
  }
}

/** Errors contain only property names of this form. Another name may itself be sensitive, such as a card number. */
const SHOWABLE_NAME = /^[A-Za-z_][A-Za-z_-]{0,63}$/

const REVEAL_LAST_4 = '{{ data | reveal_last: 4 }}'
const WITHOUT_HYPHENS = "{{ data | remove: '-' }}"
const PLAIN = { fingerprint_expression: '{{ data }}', mask: REVEAL_LAST_4 }
const HYPHENATED = {
  containers: ['/pii/high/'],
  fingerprint_expression: WITHOUT_HYPHENS,
  mask: REVEAL_LAST_4,
  search_indexes: ['{{ data }}', WITHOUT_HYPHENS, '{{ data | last4 }}'],
}

const RULES = {
  token: {
    containers: ['/general/high/'],
    fingerprint_expression: '{{ data | stringify }}',
    check: () => ({}),
  },
  card: {
    containers: ['/pci/high/'],
    fingerprint_expression: '{{ data.number }}',
    mask: {
      number: '{{ data.number | reveal_last: 4 }}',
      expiration_month: '{{ data.expiration_month }}',
      expiration_year: '{{ data.expiration_year }}',
    },
    isStructured: true,
    check: structure(
      { number: numberOfCard },
      {
        expiration_month: integerBetween(1, 12),
        expiration_year: integerBetween(1000, 9999),
        cvc: verificationCode,
      },
    ),
    textMembers: ['cvc'],
    integerMembers: ['expiration_month', 'expiration_year'],
  },
  bank: {
    containers: ['/bank/high/'],
    fingerprint_expression: '{{ data.account_number }}|{{ data.routing_number }}',
    mask: {
      routing_number: '{{ data.routing_number }}',
      account_number: '{{ data.account_number | reveal_last: 4 }}',
    },
    isStructured: true,
    check: structure({ routing_number: routingNumber, account_number: digitsBetween(1, 17) }),
  },
  card_number: { containers: ['/pci/high/'], ...PLAIN, check: primitive(cardNumber) },
  us_bank_account_number: { containers: ['/bank/high/'], ...PLAIN, check: primitive(digitsBetween(3, 17)) },
  us_bank_routing_number: { containers: ['/bank/low/'], ...PLAIN, check: primitive(routingNumber) },
  social_security_number: {
    ...HYPHENATED,
    check: primitive(
      matching(
        /^(?:[0-9]{9}|[0-9]{3}-[0-9]{2}-[0-9]{4})$/,
        'a string of nine digits, plain or as 3-2-4 with hyphens',
      ),
    ),
  },
  employer_id_number: {
    ...HYPHENATED,
    check: primitive(
      matching(/^(?:[0-9]{9}|[0-9]{2}-[0-9]{7})$/, 'a string of nine digits, plain or as 2-7 with a hyphen'),
    ),
  },
} satisfies Record<string, TypeRules>

export const TOKEN_TYPE_NAMES = Object.keys(RULES) as readonly TokenTypeName[]
export const TOKEN_TYPES: readonly TokenType[] = TOKEN_TYPE_NAMES.map((name) => ({ name, ...RULES[name] }))
