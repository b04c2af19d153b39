import type { CodeAnswer, HeaderMap } from '../domain/proxy/code-answer.js'

export interface Outcome<Result = unknown> {
  /** The HTTP status, which is 200 for {@link Existing}. */
  status: number
  result: Result
  headers?: HeaderMap
  isReplayed?: true
}

/** An HTTP answer of code or of another server. The answer is passed on to the client. */
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
