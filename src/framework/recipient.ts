/** Whom an answer is for: how much of it they take, and in which form. The door makes one; `perform` and pages ask it. */
import { CofferError, invalid } from '../errors.js'

export interface Recipient {
  /** Most bytes of an answer, as JSON in UTF-8. */
  readonly mostBytes: number
  /** Whether that counts for an answer too that cannot be asked for in smaller pages. */
  readonly isStrict: boolean
  /** Values are wanted as {@link JsonText}, to be sent on as they are. */
  readonly wantsText: boolean
  /**
   * Makes room for an answer of so many bytes, in the place of what was said of it before, so that asking again changes
   * nothing; asked before what was read is noted. @throws CofferError `unavailable`
   */
  reserve(bytes: number): void
}

const MIB = 1024 * 1024
/** A page of any list, whoever asks. */
export const MOST_PAGE_BYTES = 16 * MIB

/** Who gets the answer as it is, in this process. */
export const ANYBODY: Recipient = {
  mostBytes: MOST_PAGE_BYTES,
  isStrict: false,
  wantsText: false,
  reserve: () => undefined,
}

/** A value as the JSON text that is sent of it, with the length of that in UTF-8. */
export class JsonText {
  readonly text: string
  readonly bytes: number

  constructor(value: unknown) {
    this.text = JSON.stringify(value)
    this.bytes = Buffer.byteLength(this.text)
  }

  toJSON(): unknown {
    return JSON.parse(this.text)
  }
}

/**
 * The answer as `recipient` wants it, once there is room for it.
 * @throws CofferError `validation` for one that is too large, `unavailable`
 */
export function hand(result: unknown, recipient: Recipient): unknown {
  if (result === undefined || (!recipient.wantsText && !recipient.isStrict)) return result
  const json = new JsonText(result)
  if (recipient.isStrict && json.bytes > recipient.mostBytes) throw refuseOne(recipient)
  recipient.reserve(json.bytes)
  return recipient.wantsText ? json : result
}

export function refuseOne(recipient: Recipient): CofferError {
  return new CofferError('validation', `The answer is larger than ${inMib(recipient)}, the most given here.`)
}

/** How the refusal of a page begins that would be taken in smaller ones. */
export const ASK_SMALLER = 'ask for a smaller size'

export function refusePage(recipient: Recipient): CofferError {
  return invalid('size', `${ASK_SMALLER}; this page is larger than ${inMib(recipient)}`)
}

function inMib({ mostBytes }: Recipient): string {
  return `${mostBytes / MIB} MiB`
}
