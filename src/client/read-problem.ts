/** Converts the problem in an answer of any server to an error, whose code decides the exit code of a command. */
import { isObject } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError, ERRORS, type ErrorCode, type ErrorDetails, type PropertyErrors } from '../errors.js'
import { IDEMPOTENCY_KEY } from '../framework/idempotency/idempotency-key.js'
import type { RoutedOperation } from '../framework/registry.js'

/** Limits of the text that a problem may print on a terminal. */
const MOST_CHARACTERS = 4000
const MOST_PROPERTIES = 100
const MOST_MESSAGES = 10

const PROBLEM_TYPE = /^urn:coffer:problem:([a-z-]{1,40})$/
/** Codes about this process, which no server can give. */
const OWN: readonly string[] = ['usage', 'interrupted'] satisfies ErrorCode[]
const TRACE_ID = /^[\x21-\x7e]{1,128}$/

/** `body` is the parsed answer, undefined if it was not JSON. */
export function readProblem(
  definition: RoutedOperation,
  { status, body, retryAfter }: { status: number; body: unknown; retryAfter?: number | undefined },
  prefix?: string,
): CofferError {
  const problem = isObject(body) ? body : {}
  const { detail, title, instance } = problem
  const told = [detail, title].find((text) => typeof text === 'string' && text !== '')
  const message = (told as string | undefined) ?? `The server answered ${status} without a reason.`
  const named =
    status === 401 ? /\b([A-Z][A-Z0-9]{0,19})-API-KEY\b/.exec(message)?.[1]?.toLowerCase() : undefined
  const advice = named === undefined || named === prefix ? '' : ` Add --prefix ${named}.`
  const traceId = typeof instance === 'string' && TRACE_ID.test(instance) ? instance : undefined
  const details: ErrorDetails = omitUndefined({
    status,
    traceId,
    retryAfterSeconds: retryAfter,
    errors: readErrors(definition, problem.errors),
  })
  const code = findCode(definition, status, problem)
  return new CofferError(code, message.slice(0, MOST_CHARACTERS) + advice, details)
}

/** Our servers name the code; for other servers the status decides. */
function findCode(
  { noun, verb }: RoutedOperation,
  status: number,
  problem: Record<string, unknown>,
): ErrorCode {
  const named = PROBLEM_TYPE.exec(String(problem.type))?.[1]?.replaceAll('-', '_')
  if (named !== undefined && Object.hasOwn(ERRORS, named) && !OWN.includes(named)) return named as ErrorCode
  const isReact = noun === 'reactor' && verb === 'react'
  const fits = (code: string) => !isReact || ERRORS[code as ErrorCode].exit === 8
  const isAlike = (code: ErrorCode) => ERRORS[code].status === status && !OWN.includes(code)
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter(isAlike)
  return codes.find(fits) ?? codes[0] ?? (status >= 500 ? 'unavailable' : 'validation')
}

/** Names query parameters as the input does, like errors of a local vault. */
function readErrors({ endpoint }: RoutedOperation, errors: unknown): PropertyErrors | undefined {
  if (!isObject(errors)) return undefined
  const entries = Object.entries(errors)
    .slice(0, MOST_PROPERTIES)
    .map(([path, messages]) => {
      const bare = path.replace(/^query\.|^[A-Z0-9]+-IDEMPOTENCY-KEY$/, (start) =>
        start === 'query.' ? '' : IDEMPOTENCY_KEY,
      )
      const isQuery = Object.hasOwn(endpoint.query, /^[^.[]*/.exec(bare)![0])
      const texts = [messages].flat().filter((text) => typeof text === 'string')
      const kept = texts.slice(0, MOST_MESSAGES).map((text) => text.slice(0, MOST_CHARACTERS))
      return [(isQuery || bare === IDEMPOTENCY_KEY ? bare : path).slice(0, MOST_CHARACTERS), kept] as const
    })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
