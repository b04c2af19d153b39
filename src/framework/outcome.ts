/** How an operation ended: its answer, an entity that exists already, or an HTTP answer that somebody else made. */
import type { CodeAnswer, HeaderMap } from '../domain/proxy/code-answer.js'

export interface Outcome<Result = unknown> {
  /** The HTTP status: the operation's own, 200 for {@link Existing}, or that of {@link HttpAnswer}. */
  status: number
  result: Result
  headers?: HeaderMap
  /** It is the answer kept for the idempotency key; nothing was run. */
  isReplayed?: true
}

/** An HTTP answer that code or another server made: its status, headers and body are the answer itself. */
export class HttpAnswer {
  readonly answer: CodeAnswer
  constructor(answer: CodeAnswer) {
    this.answer = answer
  }
}

/** The result; for an {@link HttpAnswer} also its status and headers, as reactor code returns them. */
export function resultOf({ status, headers, result }: Outcome): unknown {
  return headers === undefined ? result : { res: { statusCode: status, headers, body: result } }
}

/** An answer that is an existing entity instead of a created one: status 200 instead of 201. */
export class Existing<T> {
  readonly result: T
  constructor(result: T) {
    this.result = result
  }
}
