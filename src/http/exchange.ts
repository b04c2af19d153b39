/**
 * A request and its answer without a socket, as plain objects: what the handler speaks and adapters translate. Nothing
 * here knows an operation.
 */
import { toProblem } from '../errors.js'
import { JsonText } from '../framework/recipient.js'
import type { Share } from './load.js'

/** A request as it came. */
export interface Ask {
  method: string
  /** What stood in the request line: path and query, or a whole URL. */
  target: string
  /** Names in lower case. */
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The address of the machine that asks; absent without a socket. */
  client?: string
  /** Where the bytes of body and answer are counted; absent without a socket. */
  share?: Share
  /** The body, or undefined as soon as it is known to be longer than `limitBytes`. Called at most once. */
  readBody(limitBytes: number): Promise<Uint8Array | undefined>
}

/** `headers` have names in lower case; an empty `body` is none. */
export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
  /** What follows `body`, where the whole would be a large text; emptied by who sends it. */
  more?: string[]
}

/** Characters of a piece, where it is not one value that has more. */
const PIECE = 64 * 1024

/** What every answer says about itself: never to be kept, never to be taken for anything else. */
const MANNERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

export const JSON_TYPE = 'application/json; charset=utf-8'
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

/** An answer of `contentType`. */
export function answerText(status: number, contentType: string, body: string): Answer {
  return { status, headers: { 'content-type': contentType, ...MANNERS }, body }
}

/** `result` as JSON; an empty body where there is none. */
export function answerResult(status: number, result: unknown): Answer {
  if (status === 204 || result === undefined) return { status, headers: { ...MANNERS }, body: '' }
  if (result instanceof JsonText) return answerText(status, JSON_TYPE, result.text)
  if (isListOfTexts(result)) {
    const [body = '', ...more] = spellList(result)
    return { ...answerText(status, JSON_TYPE, body), ...(more.length === 0 ? {} : { more }) }
  }
  return answerText(status, JSON_TYPE, JSON.stringify(result))
}

interface ListOfTexts {
  pagination: object
  data: readonly JsonText[]
}

function isListOfTexts(result: unknown): result is ListOfTexts {
  const data = (result as { data?: unknown } | null)?.data
  return Array.isArray(data) && data[0] instanceof JsonText
}

/** The JSON of a list, in pieces. */
function spellList({ pagination, data }: ListOfTexts): string[] {
  const pieces: string[] = []
  let piece = `{"pagination":${JSON.stringify(pagination)},"data":[`
  data.forEach(({ text }, index) => {
    piece += index === 0 ? text : `,${text}`
    if (piece.length < PIECE) return
    pieces.push(piece)
    piece = ''
  })
  return [...pieces, `${piece}]}`]
}

/** The problem that `error` is, in the type that `accept` asks for. */
export function answerProblem(error: unknown, traceId: string, accept?: string): Answer {
  const problem = toProblem(error, traceId)
  const type = wantsPlainJson(accept) ? JSON_TYPE : PROBLEM_TYPE
  return answerText(problem.status, type, JSON.stringify(problem))
}

/** Whether somebody names `application/json` and nothing that a problem would be. */
function wantsPlainJson(accept: string | undefined): boolean {
  if (accept === undefined || !accept.toLowerCase().includes('application/json')) return false
  const ranges = accept.split(',').map((range) => range.split(';')[0]!.trim().toLowerCase())
  return (
    ranges.includes('application/json') &&
    !ranges.some((range) => range === 'application/problem+json' || range.includes('*'))
  )
}
