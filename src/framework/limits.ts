/** The size limit and the form of an answer, which depend on its transport. */
import { CofferError, validationError } from '../errors.js'

export interface ResponseLimits {
  readonly maxBytes: number
  /** Whether the limit also applies to an answer that cannot be split into smaller pages. */
  readonly isStrict: boolean
  readonly wantsEncoded: boolean
  /**
   * Reserves this many bytes in all for an answer, before reads are logged. @throws CofferError `unavailable`
   */
  reserve(bytes: number): void
}

const MIB = 1024 * 1024
export const MAX_PAGE_BYTES = 16 * MIB

export const LOCAL_LIMITS: ResponseLimits = {
  maxBytes: MAX_PAGE_BYTES,
  isStrict: false,
  wantsEncoded: false,
  reserve: () => undefined,
}

export class EncodedJson {
  readonly text: string
  readonly bytes: number

  constructor(value: unknown, text = JSON.stringify(value)) {
    this.text = text
    this.bytes = Buffer.byteLength(this.text)
  }

  toJSON(): unknown {
    return JSON.parse(this.text)
  }
}

/**
 * Checks the answer's size and reserves its memory. @throws CofferError `validation` for a large answer,
 * `unavailable`
 */
export function toAnswer(result: unknown, limits: ResponseLimits): unknown {
  if (result === undefined || (!limits.wantsEncoded && !limits.isStrict)) return result
  const json = new EncodedJson(result)
  if (limits.isStrict && json.bytes > limits.maxBytes) throw pageTooLarge(limits, true)
  limits.reserve(json.bytes)
  return limits.wantsEncoded ? json : result
}

/** `isAlone`: the page has one item, so that a smaller page is not accepted either. */
export function pageTooLarge({ maxBytes }: ResponseLimits, isAlone: boolean): CofferError {
  const limit = `the limit of ${maxBytes / MIB} MiB`
  if (isAlone) return validationError(`The answer exceeds ${limit}.`)
  const message = `ask for a smaller size; this page exceeds ${limit}`
  return new CofferError('page_too_large', `size: ${message}`, { errors: { size: [message] } })
}
