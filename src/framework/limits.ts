import { CofferError, validationError } from '../errors.js'

export interface ResponseLimits {
  readonly maxBytes: number
  /** Whether the limit also applies if the answer cannot be split into smaller pages. */
  readonly isStrict: boolean
  readonly wantsEncoded: boolean
  /**
   * Reserves memory for an answer of this total size. A list reserves memory before it logs its reads.
   * @throws CofferError `unavailable`
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
 * Checks the size and reserves the memory of the answer.
 * @throws CofferError `validation` if the answer is too large, or `unavailable`
 */
export function toAnswer(result: unknown, limits: ResponseLimits): unknown {
  if (result === undefined || (!limits.wantsEncoded && !limits.isStrict)) return result
  const json = new EncodedJson(result)
  if (limits.isStrict && json.bytes > limits.maxBytes) throw pageTooLarge(limits, true)
  limits.reserve(json.bytes)
  return limits.wantsEncoded ? json : result
}

/** `isAlone`: the page has only one item, so a smaller page would not help. */
export function pageTooLarge({ maxBytes }: ResponseLimits, isAlone: boolean): CofferError {
  const limit = `the limit of ${maxBytes / MIB} MiB`
  if (isAlone) return validationError(`The answer exceeds ${limit}.`)
  const message = `ask for a smaller size; this page exceeds ${limit}`
  return new CofferError('page_too_large', `size: ${message}`, { errors: { size: [message] } })
}
