/** The size limit and the form of an answer, which depend on its transport. */
import { type CofferError, invalid, validationError } from '../errors.js'

export interface Recipient {
  /** The largest answer, in bytes of JSON (UTF-8). */
  readonly mostBytes: number
  /** Whether the limit applies also to an answer that cannot be split into smaller pages. */
  readonly isStrict: boolean
  /** Whether values are answered as {@link JsonText}. */
  readonly wantsText: boolean
  /** Reserves so many bytes in all for an answer; called before reads are logged. @throws CofferError `unavailable` */
  reserve(bytes: number): void
}

const MIB = 1024 * 1024
export const MOST_PAGE_BYTES = 16 * MIB

export const LOCAL_RECIPIENT: Recipient = {
  mostBytes: MOST_PAGE_BYTES,
  isStrict: false,
  wantsText: false,
  reserve: () => undefined,
}

/** A value as JSON text, with its length in UTF-8. */
export class JsonText {
  readonly text: string
  readonly bytes: number

  /** @param text the JSON of `value`, where it is known already */
  constructor(value: unknown, text = JSON.stringify(value)) {
    this.text = text
    this.bytes = Buffer.byteLength(this.text)
  }

  toJSON(): unknown {
    return JSON.parse(this.text)
  }
}

/** The answer for `recipient`, its memory reserved. @throws CofferError `validation` for one too large, `unavailable` */
export function toAnswer(result: unknown, recipient: Recipient): unknown {
  if (result === undefined || (!recipient.wantsText && !recipient.isStrict)) return result
  const json = new JsonText(result)
  if (recipient.isStrict && json.bytes > recipient.mostBytes) throw refuseOne(recipient)
  recipient.reserve(json.bytes)
  return recipient.wantsText ? json : result
}

export function refuseOne(recipient: Recipient): CofferError {
  return validationError(`The answer exceeds the limit of ${inMib(recipient)}.`)
}

/** The beginning of the error of a page that is accepted if it is smaller. */
export const ASK_SMALLER = 'ask for a smaller size'

export function refusePage(recipient: Recipient): CofferError {
  return invalid('size', `${ASK_SMALLER}; this page exceeds the limit of ${inMib(recipient)}`)
}

function inMib({ mostBytes }: Recipient): string {
  return `${mostBytes / MIB} MiB`
}
