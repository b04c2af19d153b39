/** The objects that the page gets for fields. No property of these objects contains a value. */

import type { Listener } from './events.js'
import { parseDate, printDate } from './expiration-date.js'
import { Inside, type State } from './inside.js'
import type { FieldOptions } from './options.js'
import type { CardDetails } from './reading.js'
import { type Reference, resolveReference } from './references.js'
import { findShape } from './shapes.js'

/** Stored outside of the fields, so that the page cannot reach the inside of a field. */
const insides = new WeakMap<object, Inside>()

/** A part of a date field, for example the month, as a page writes this part in a payload. */
export interface Wrapper<Element extends object = object> {
  element: Element
  method?: string
  formattingOptions?: { format: string }
}

export function insideOf(value: unknown): Inside | undefined {
  return typeof value === 'object' && value !== null ? insides.get(value) : undefined
}

type Metadata = Pick<State, 'empty' | 'complete' | 'valid' | 'maskSatisfied' | 'errors'>

class BaseElement {
  constructor(inside: Inside) {
    insides.set(this, inside)
  }

  get mounted(): boolean {
    return inside(this).isMounted
  }

  get metadata(): Metadata {
    const { empty, complete, valid, maskSatisfied, errors } = inside(this).state
    return {
      empty,
      complete,
      valid,
      ...(maskSatisfied === undefined ? {} : { maskSatisfied }),
      ...(errors === undefined ? {} : { errors }),
    }
  }

  mount(place: string | Element): Promise<void> {
    return inside(this).mount(place)
  }

  async update(options: FieldOptions): Promise<void> {
    inside(this).update(options)
  }

  validate(): void {
    inside(this).validate()
  }

  clear(): void {
    inside(this).setTexts([])
  }

  focus(): void {
    inside(this).parts[0]!.focus()
  }

  blur(): void {
    for (const part of inside(this).parts) part.blur()
  }

  unmount(): void {
    inside(this).unmount()
  }

  on(type: string, listener: Listener): { unsubscribe(): void } {
    return inside(this).listeners.add(type, listener)
  }
}

export class TextElement extends BaseElement {
  setValueRef(source: object): void {
    const followed = insideOf(source)
    if (followed === undefined) throw new TypeError('setValueRef takes a field.')
    inside(this).follow(followed)
  }

  setValue(reference: Reference, validate = false): void {
    setTexts(inside(this), resolveReference(reference), validate)
  }
}

export class NumberElement extends TextElement {
  get cardMetadata(): CardDetails {
    return cardOf(inside(this))
  }
}

export class DateElement extends BaseElement {
  setValueRef(source: object): void {
    TextElement.prototype.setValueRef.call(this, source)
  }

  setValue({ month, year }: { month: Reference; year: Reference }, validate = false): void {
    const date = { month: resolveReference(month), year: resolveReference(year) }
    setTexts(inside(this), date, validate)
  }

  month(): Wrapper<this> {
    return { element: this, method: 'month' }
  }

  year(): Wrapper<this> {
    return { element: this, method: 'year' }
  }

  /** @throws MissingError for a pattern that is not supported */
  format(dateFormat: string): Wrapper<this> {
    printDate({ month: 1, year: 2000 }, dateFormat)
    return { element: this, method: 'format', formattingOptions: { format: dateFormat } }
  }
}

export class CardElement extends BaseElement {
  get cardMetadata(): CardDetails {
    return cardOf(inside(this))
  }

  setValue(references: Record<string, Reference>, validate = false): void {
    const pairs = Object.entries(references).map(([name, each]) => [name, resolveReference(each)])
    setTexts(inside(this), Object.fromEntries(pairs), validate)
  }
}

function inside(element: BaseElement): Inside {
  return insides.get(element)!
}

function cardOf({ state }: Inside): CardDetails {
  const { cardBrand = 'unknown', cardLast4, cardBin } = state
  return { cardBrand, ...(cardLast4 && { cardLast4 }), ...(cardBin && { cardBin }) }
}

function setTexts(field: Inside, value: unknown, validate: boolean): void {
  field.setTexts(field.shape.textsOf(value))
  if (validate) field.validate()
}

const CLASSES: Record<string, new (inside: Inside) => BaseElement> = {
  card: CardElement,
  cardNumber: NumberElement,
  cardExpirationDate: DateElement,
}

/** @throws MissingError, Error */
export function createElement(type: string, options: FieldOptions, hasFrame: boolean): BaseElement {
  const field = new Inside(findShape(type, options), options, hasFrame)
  return new (CLASSES[type] ?? TextElement)(field)
}

/** Returns the value that a request contains for a field, or for a part of a date field. */
export function valueIn({ element, method, formattingOptions }: Wrapper): unknown {
  const { value } = insides.get(element)!
  if (method === undefined) return value
  const date = parseDate(String(value))!
  if (method === 'month') return date.month
  return method === 'year' ? date.year : printDate(date, formattingOptions!.format)
}
