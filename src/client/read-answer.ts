/**
 * Reads answers of servers: results, problems, and answers that reactor code or the destination of a proxy has written.
 */
import { DEFAULT_CONTENT_TYPE } from '../domain/document/content-type.js'
import { isObject, parseJson, parseJsonOrNothing } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { passAnswerHeaders } from '../domain/proxy/code-answer.js'
import { CofferError, ERRORS, type ErrorCode, type PropertyErrors, type ServiceError } from '../errors.js'
import { Content } from '../framework/content.js'
import { IDEMPOTENCY_KEY } from '../framework/declaration.js'
import type { Outcome } from '../framework/outcome.js'
import type { RegisteredOperation } from '../framework/registry.js'

export interface WholeAnswer {
  readonly status: number
  readonly headers: Iterable<readonly [string, string]> & { get(name: string): string | null | undefined }
  readonly text: string
  /** Replaces `text` if the answer is a file. */
  readonly pieces?: AsyncIterable<Uint8Array>
}

/** Headers that the server adds to an answer of reactor code or of a destination. */
const ADDED = ['cache-control', 'content-security-policy', 'date', 'x-content-type-options']
const PLAIN = 'text/plain; charset=utf-8'

/** The limit for each text of a problem. */
const MAX_CHARACTERS = 4000
const MAX_PROPERTIES = 100
const MAX_MESSAGES = 10

const PROBLEM_TYPE = /^urn:coffer:problem:([a-z-]{1,40})$/
/** The codes of errors that concern only this process. An answer of a server cannot have these codes. */
const OWN: readonly string[] = ['usage', 'interrupted'] satisfies ErrorCode[]
/** Matches the title of an error with the code `card_refused`. */
const REFUSAL = /^[A-Z_]{1,60}$/
const TRACE_ID = /^[\x21-\x7e]{1,128}$/

/**
 * Returns the outcome of the operation, or the error that the server has sent.
 * @throws CofferError `unavailable` if the answer does not follow the interface
 */
export function readAnswer(
  definition: RegisteredOperation,
  answer: WholeAnswer,
  prefix: string,
): Outcome | CofferError {
  const { status, headers, text } = answer
  const passed = readPassed(definition, answer, prefix)
  if (passed !== undefined) return passed
  // A redirect is not followed, because the request would send the key to another address.
  if (status >= 300 && status < 400)
    throw new CofferError(
      'unavailable',
      'The server redirects to another address. Give the address of the vault itself.',
    )
  if (status >= 300) return readProblem(definition, answer)
  if (answer.pieces !== undefined) {
    const size = Number(headers.get('content-length') ?? Number.NaN)
    const type = headers.get('content-type') ?? DEFAULT_CONTENT_TYPE
    return { status, result: new Content(type, Number.isInteger(size) ? size : undefined, answer.pieces) }
  }
  if (status === 204 || text === '') return { status, result: undefined }
  if (headers.get('content-type')?.includes('json')) return { status, result: readJson(text) }
  throw new CofferError(
    'unavailable',
    'The answer of the server is not JSON. Check the address of the server.',
  )
}

function readJson(text: string): unknown {
  return parseJson(text, { source: 'the answer of the server' })
}

/**
 * Returns undefined for an answer of the server itself. A server of Coffer adds the policy `sandbox` to answers that
 * reactor code or a destination has written.
 */
function readPassed(
  { http }: RegisteredOperation,
  { status, headers, text }: WholeAnswer,
  prefix: string,
): Outcome | undefined {
  const all = new Map([...headers].map(([name, value]) => [name.toLowerCase(), value]))
  if (http?.mayAnswer !== 'anything' || all.get('content-security-policy') !== 'sandbox') return undefined
  const type = all.get('content-type') ?? ''
  const isJson = type.startsWith('application/json')
  for (const name of isJson || type === PLAIN ? [...ADDED, 'content-type'] : ADDED) all.delete(name)
  const result = text === '' ? undefined : isJson ? readJson(text) : text
  return { status, headers: passAnswerHeaders(Object.fromEntries(all), prefix), result }
}

function readProblem(definition: RegisteredOperation, { status, headers, text }: WholeAnswer): CofferError {
  const body = parseJsonOrNothing(text)
  const { proxy_error = body } = isObject(body) ? body : {}
  const problem = isObject(proxy_error) ? proxy_error : {}
  const { type, detail, title, instance, errors, error } = problem
  const told = [detail, title].find((each) => typeof each === 'string' && each !== '')
  const message = (told as string | undefined) ?? `The server answered ${status} without a reason.`
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  const code = findCode(definition, status, type)
  const details = omitUndefined({
    status,
    traceId: typeof instance === 'string' && TRACE_ID.test(instance) ? instance : undefined,
    retryAfterSeconds: Number.isFinite(seconds) && seconds >= 0 ? Math.ceil(seconds) : undefined,
    errors: readErrors(definition, errors),
    service: readServiceError(error),
    refusal: code === 'card_refused' && REFUSAL.test(String(title)) ? String(title) : undefined,
  })
  return new CofferError(code, message.slice(0, MAX_CHARACTERS), details)
}

/** In an error of 3-D Secure, finds the part about a failure of a bank, directory or 3DS server. */
function readServiceError(error: unknown): ServiceError | undefined {
  if (!isObject(error)) return undefined
  const { service_status, session_id, error_source, message, detail } = error
  const service = { service_status, session_id, error_source, message, detail }
  const isComplete = Object.values(service).every((value) => typeof value === 'string')
  return isComplete && JSON.stringify(service).length <= MAX_CHARACTERS
    ? (service as ServiceError)
    : undefined
}

/** Servers of Coffer send the code of an error. For other servers, the code follows from the status. */
function findCode({ noun, verb }: RegisteredOperation, status: number, type: unknown): ErrorCode {
  const named = PROBLEM_TYPE.exec(String(type))?.[1]?.replaceAll('-', '_')
  if (named !== undefined && Object.hasOwn(ERRORS, named) && !OWN.includes(named)) return named as ErrorCode
  const all = Object.keys(ERRORS) as ErrorCode[]
  const codes = all.filter((code) => ERRORS[code].status === status && !OWN.includes(code))
  const ofReactor = noun === 'reactor' && verb === 'react' && codes.find((code) => ERRORS[code].exit === 8)
  return ofReactor || (codes[0] ?? (status >= 500 ? 'unavailable' : 'validation'))
}

/** Replaces the names of query parameters and headers by names of properties, as in errors of a local vault. */
function readErrors({ endpoint }: RegisteredOperation, errors: unknown): PropertyErrors | undefined {
  if (!isObject(errors)) return undefined
  const entries = Object.entries(errors).slice(0, MAX_PROPERTIES)
  const nameOf = (path: string) => {
    if (/^[A-Z0-9]+-IDEMPOTENCY-KEY$/.test(path)) return IDEMPOTENCY_KEY
    const bare = path.replace(/^query\./, '')
    return Object.hasOwn(endpoint?.query ?? {}, /^[^.[]*/.exec(bare)![0]) ? bare : path
  }
  const named = entries.map(([path, messages]) => {
    const texts = [messages].flat().filter((text) => typeof text === 'string')
    const kept = texts.slice(0, MAX_MESSAGES).map((text) => text.slice(0, MAX_CHARACTERS))
    return [nameOf(path).slice(0, MAX_CHARACTERS), kept] as const
  })
  return named.length === 0 ? undefined : Object.fromEntries(named)
}
