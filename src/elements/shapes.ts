import { missing } from './errors.js'
import { parseDate } from './expiration-date.js'
import type { Shape } from './inside.js'
import { CARD_NUMBER, EXPIRATION_DATE, type Kind, TEXT, VERIFICATION_CODE } from './kinds.js'
import type { CardAutoComplete, CardPlaceholders, FieldOptions } from './options.js'
import { Part } from './part.js'

/** @throws MissingError for a type that these fields do not have, Error for a missing `targetId` */
export function findShape(type: string, { targetId }: FieldOptions): Shape {
  const shape = SHAPES.find((each) => each.type === type)
  if (shape === undefined) throw missing(`fields of the type ${type}`)
  if (shape !== CARD && (targetId === undefined || targetId === ''))
    throw new Error(`A field of the type ${type} needs the option targetId.`)
  return shape
}

function single(type: string, kind: Kind, textOf: (value: unknown) => string = String): Shape {
  return {
    type,
    createParts: (options) => [new Part(kind, options().targetId!, options)],
    valueOf: ([part]) => part!.read().value,
    textsOf: (value) => [textOf(value)],
    show([part], { 'aria-label': label, title, placeholder, autoComplete, targetId = type }) {
      const text = typeof placeholder === 'string' ? placeholder : kind.placeholder
      part!.show({
        label: label ?? kind.label ?? title ?? text ?? targetId,
        placeholder: text,
        autoComplete: typeof autoComplete === 'string' ? autoComplete : kind.autoComplete,
      })
    },
  }
}

const CARD: Shape = {
  type: 'card',
  createParts(options) {
    const number = new Part(CARD_NUMBER, 'cardNumber', options)
    const ofBrand = () => ({ ...options(), cardBrand: number.read().card?.cardBrand })
    return [
      number,
      new Part(EXPIRATION_DATE, 'expirationDate', options),
      new Part(VERIFICATION_CODE, 'cvc', ofBrand),
    ]
  },
  valueOf([number, date, code]) {
    const { month, year } = parseDate(date!.read().value) ?? {}
    return {
      number: number!.read().value,
      expiration_month: month,
      expiration_year: year,
      cvc: code!.read().value,
    }
  },
  textsOf(value) {
    const { number = '', expiration_month, expiration_year, cvc = '' } = value as Record<string, unknown>
    return [String(number), dateText({ month: expiration_month, year: expiration_year }), String(cvc)]
  },
  show(parts, { placeholder, autoComplete }) {
    const texts = (typeof placeholder === 'object' ? placeholder : {}) as CardPlaceholders
    const { cardNumber, cardExpirationDate, cardSecurityCode } = texts
    const placeholders = [cardNumber, cardExpirationDate, cardSecurityCode]
    const { number, expirationDate, csc } = (
      typeof autoComplete === 'object' ? autoComplete : {}
    ) as Partial<CardAutoComplete>
    const completions = [number, expirationDate, csc]
    for (const [at, part] of parts.entries())
      part.show({
        label: part.kind.label!,
        placeholder: placeholders[at] ?? part.kind.placeholder,
        autoComplete:
          typeof autoComplete === 'string' ? autoComplete : (completions[at] ?? part.kind.autoComplete),
      })
  },
}

function dateText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  const { month, year } = value as { month?: unknown; year?: unknown }
  if (month === undefined || year === undefined) return ''
  return `${String(month).padStart(2, '0')}/${String(year).slice(-2)}`
}

const SHAPES: readonly Shape[] = [
  CARD,
  single('text', TEXT),
  single('cardNumber', CARD_NUMBER),
  single('cardExpirationDate', EXPIRATION_DATE, dateText),
  single('cardVerificationCode', VERIFICATION_CODE),
]
