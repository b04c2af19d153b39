/** The kinds of inputs: the attributes of each kind, and how each kind formats and reads the text. */
import { formatNumber, readNumber } from './card-number.js'
import { formatDate, readDate } from './expiration-date.js'
import type { FieldOptions } from './options.js'
import type { Reading } from './reading.js'
import { formatText, readText } from './text.js'
import { formatCode, readCode } from './verification-code.js'

export interface Kind {
  /** The accessible name, unless an option gives another. */
  readonly label?: string
  readonly autoComplete?: string
  readonly inputMode?: string
  readonly placeholder?: string
  format(text: string, options: FieldOptions): string
  /** `now`: the time of the page. */
  read(text: string, options: FieldOptions, now: Date): Reading
}

export const CARD_NUMBER: Kind = {
  label: 'Card Number',
  autoComplete: 'cc-number',
  inputMode: 'numeric',
  placeholder: '1234 1234 1234 1234',
  format: formatNumber,
  read: readNumber,
}

export const EXPIRATION_DATE: Kind = {
  label: 'Expiration Date',
  autoComplete: 'cc-exp',
  inputMode: 'numeric',
  placeholder: 'MM/YY',
  format: formatDate,
  read: readDate,
}

export const VERIFICATION_CODE: Kind = {
  label: 'CVC',
  autoComplete: 'cc-csc',
  inputMode: 'numeric',
  placeholder: 'CVC',
  format: formatCode,
  read: readCode,
}

export const TEXT: Kind = { format: formatText, read: readText }
