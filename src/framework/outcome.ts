/**
 * The result of an operation: its own answer, an entity that exists already, or an HTTP answer of a reactor or of
 * another server.
 */
import type { CodeAnswer, HeaderMap } from '../domain/proxy/code-answer.js'

export interface Outcome<Result = unknown> {
  /**
   * The HTTP status: the status of the operation, 200 for {@link Existing}, or the status of the {@link
   * HttpAnswer}.
   */
  status: number
  result: Result
  headers?: HeaderMap
  isReplayed?: true
}

/**
 * An HTTP answer of code or of another server. The status, headers and body of an HttpAnswer are passed on to the
 * client.
 */
export class HttpAnswer {
  readonly answer: CodeAnswer
  constructor(answer: CodeAnswer) {
    this.answer = answer
  }
}

export function resultOf({ status, headers, result }: Outcome): unknown {
  return headers === undefined ? result : { res: { statusCode: status, headers, body: result } }
}

export class Existing<T> {
  readonly result: T
  constructor(result: T) {
    this.result = result
  }
}
