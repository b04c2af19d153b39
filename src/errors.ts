/**
 * The message of a {@link CofferError} never contains a key or a passphrase. The message contains a token's data only
 * if {@link ErrorDetails.mayTellData} is set.
 */

export const ERRORS = {
  usage: { status: 400, exit: 2, title: 'Bad Request' },
  validation: { status: 400, exit: 2, title: 'Bad Request' },
  page_too_large: { status: 400, exit: 2, title: 'Bad Request' },
  too_much_work: { status: 400, exit: 2, title: 'Too Much Work' },
  unauthenticated: { status: 401, exit: 4, title: 'Unauthorized' },
  forbidden: { status: 403, exit: 4, title: 'Forbidden' },
  not_found: { status: 404, exit: 3, title: 'Not Found' },
  not_emulated: { status: 501, exit: 3, title: 'Not Emulated' },
  method_not_allowed: { status: 405, exit: 2, title: 'Method Not Allowed' },
  request_timeout: { status: 408, exit: 9, title: 'Request Timeout' },
  reactor_timeout: { status: 408, exit: 8, title: 'Request Timeout' },
  conflict: { status: 409, exit: 5, title: 'Conflict' },
  too_large: { status: 413, exit: 2, title: 'Content Too Large' },
  unsupported_media_type: { status: 415, exit: 2, title: 'Unsupported Media Type' },
  misdirected: { status: 421, exit: 2, title: 'Misdirected Request' },
  unprocessable: { status: 422, exit: 2, title: 'Unprocessable Content' },
  card_refused: { status: 422, exit: 2, title: 'Unprocessable Content' },
  google_pay_refused: { status: 422, exit: 2, title: 'Unprocessable Google Pay Token' },
  apple_pay_refused: { status: 422, exit: 2, title: 'Unprocessable Apple Pay Token' },
  formula_invalid: { status: 422, exit: 8, title: 'Unprocessable Content' },
  headers_too_large: { status: 431, exit: 2, title: 'Request Header Fields Too Large' },
  rate_limited: { status: 429, exit: 9, title: 'Too Many Requests' },
  check_failed: { status: 500, exit: 1, title: 'Check Failed' },
  values_found: { status: 500, exit: 10, title: 'Values Found' },
  seed_differs: { status: 500, exit: 11, title: 'Seed Differs' },
  server_differs: { status: 500, exit: 12, title: 'Server Differs' },
  internal: { status: 500, exit: 1, title: 'Internal Server Error' },
  reactor_failed: { status: 500, exit: 8, title: 'Reactor Runtime Error' },
  proxy_invalid: { status: 400, exit: 2, title: 'Invalid proxy request' },
  bad_gateway: { status: 502, exit: 9, title: 'Bad Gateway' },
  threeds_unsupported: { status: 400, exit: 2, title: '3DS Service Validation Error' },
  threeds_failed: { status: 424, exit: 9, title: '3DS Service Error' },
  unavailable: { status: 503, exit: 9, title: 'Service Unavailable' },
  vault_missing: { status: 503, exit: 6, title: 'Vault Missing' },
  vault_locked: { status: 503, exit: 6, title: 'Vault Locked' },
  vault_unsupported: { status: 503, exit: 6, title: 'Vault Of Another Format' },
  vault_exposed: { status: 503, exit: 6, title: 'Vault Exposed' },
  vault_damaged: { status: 500, exit: 7, title: 'Vault Damaged' },
  storage_failed: { status: 503, exit: 1, title: 'Storage Failed' },
  interrupted: { status: 503, exit: 130, title: 'Interrupted' },
} as const satisfies Record<string, { status: number; exit: number; title: string }>

export type ErrorCode = keyof typeof ERRORS

/** The message if reactor code failed without choosing a status. The text that the code threw is in `errors`. */
const RUNTIME_ERROR = 'Reactor Runtime Error'
const WITH_ERRORS = 'One or more validation errors occurred.'

export const AFTER_DAMAGE =
  'Run `coffer vault verify`. Then restore a backup, or copy what can be read into a new vault: ' +
  '`coffer vault copy --skip-damaged --to NEW`.'

/** Messages, by the path of the property in the caller's input, such as `data.number` or `rules[0].container`. */
export type PropertyErrors = Record<string, string[]>

/** An error of 3-D Secure. `service_status`: the HTTP status as text. */
export interface ServiceError {
  service_status: string
  session_id: string
  error_source: '3DS Server' | 'Directory Server' | 'Access Control Server'
  message: string
  detail: string
}

export interface ErrorDetails {
  errors?: PropertyErrors
  cause?: unknown
  /** Overrides the status of the error code. From 400 to 599. */
  status?: number
  /** Overrides the exit code of the error code. */
  exit?: number
  retryAfterSeconds?: number
  traceId?: string
  /** Only for `threeds_failed`. */
  service?: ServiceError
  /** Only for `card_refused`: the reason, such as `CARD_DECLINED`, which is also the title of the problem document. */
  refusal?: string
  /** Replaces `message` for callers with an API key, who must not see paths on the disk. */
  toCallers?: string
  /**
   * The message and `errors` contain text that code or a template made. This text may contain data, so only the caller
   * may see it.
   */
  mayTellData?: boolean
}

/** An expected error. `message` says what happened and what to do. */
export class CofferError extends Error {
  override readonly name = 'CofferError'
  readonly code: ErrorCode
  readonly status: number
  readonly exit: number
  readonly errors: PropertyErrors | undefined
  readonly retryAfterSeconds: number | undefined
  readonly traceId: string | undefined
  readonly service: ServiceError | undefined
  readonly refusal: string | undefined
  readonly toCallers: string | undefined
  readonly mayTellData: boolean

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.status = details.status ?? ERRORS[code].status
    this.exit = details.exit ?? ERRORS[code].exit
    this.errors = details.errors
    this.retryAfterSeconds = details.retryAfterSeconds
    this.traceId = details.traceId
    this.service = details.service
    this.refusal = details.refusal
    this.toCallers = details.toCallers
    this.mayTellData = details.mayTellData === true
  }
}

/** Returns a copy with {@link ErrorDetails.mayTellData}. An error that is no CofferError is returned unchanged. */
export function markAsTelling(error: unknown): unknown {
  if (!(error instanceof CofferError)) return error
  const { code, message, errors, status } = error
  const details = { status, mayTellData: true, cause: error }
  return new CofferError(code, message, errors === undefined ? details : { ...details, errors })
}

/** A command, or a function of the library, was called incorrectly. */
export function usage(message: string, details?: ErrorDetails): CofferError {
  return new CofferError('usage', message, details)
}

/** The stored state, or a concurrent change, prevents the operation. */
export function conflict(message: string): CofferError {
  return new CofferError('conflict', message)
}

/** A signal, or Ctrl-C at a prompt, ends the operation. */
export function interrupted(details?: ErrorDetails): CofferError {
  return new CofferError('interrupted', 'Interrupted.', details)
}

export function validationError(message: string, details?: ErrorDetails): CofferError {
  return new CofferError('validation', message, details)
}

export function bodyIsNoObject(): CofferError {
  return validationError('The request body must be a JSON object.')
}

export function invalid(path: string, message: string): CofferError {
  return validationError(`${path}: ${message}`, { errors: { [path]: [message] } })
}

export function noRevealError(what: string): CofferError {
  return new CofferError(
    'forbidden',
    `No-reveal mode refuses ${what}. To see what turned this mode on: coffer doctor`,
  )
}

/** `what`: the damage, without a full stop. */
export function damaged(what: string): CofferError {
  const toCallers = 'The vault is damaged. The owner of the vault can see details with: coffer vault verify'
  return new CofferError('vault_damaged', `${what}. ${AFTER_DAMAGE}`, { toCallers })
}

export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** An error as it is stored or sent to another process, without its cause. */
export interface SentError {
  code: ErrorCode
  message: string
  status: number
  errors?: PropertyErrors
  service?: ServiceError
  refusal?: string
  mayTellData?: boolean
}

/** Omits the message of an unexpected error, because the message may contain data. */
export function toSent(error: unknown): SentError {
  const known =
    error instanceof CofferError ? error : new CofferError('internal', 'Something went wrong on our side.')
  const { code, message, status, errors, service, refusal, mayTellData } = known
  const marked = mayTellData ? { mayTellData } : {}
  const served = { ...(service && { service }), ...(refusal !== undefined && { refusal }) }
  return { code, message, status, ...(errors === undefined ? {} : { errors }), ...served, ...marked }
}

export function fromSent({ code, message, ...details }: SentError): CofferError {
  return new CofferError(code, message, details)
}

/** A problem document (RFC 7807). `instance` is the trace id, with which the owner can find the log record. */
export interface Problem {
  type: string
  title: string
  status: number
  detail: string
  instance: string
  errors?: PropertyErrors
  error?: ServiceError
}

/** For an unexpected error, `detail` contains the trace id instead of the message, which may contain data. */
export function toProblem(error: unknown, traceId: string, reader: 'caller' | 'owner' = 'caller'): Problem {
  const known = error instanceof CofferError ? error : undefined
  const code = known?.code ?? 'internal'
  const message = reader === 'owner' ? known?.message : (known?.toCallers ?? known?.message)
  const problem: Problem = {
    type: `urn:coffer:problem:${code.replaceAll('_', '-')}`,
    title: titleOf(code, known),
    status: known?.status ?? ERRORS[code].status,
    detail: message ?? `Something went wrong on our side. Reference: ${traceId}`,
    instance: known?.traceId ?? traceId,
  }
  if (known?.service !== undefined) return { ...problem, error: known.service }
  return known?.errors === undefined ? problem : { ...problem, errors: known.errors }
}

function titleOf(code: ErrorCode, known: CofferError | undefined): string {
  if (known?.refusal !== undefined) return known.refusal
  if (code !== 'reactor_failed' || known?.errors === undefined) return ERRORS[code].title
  const isBadGateway = known.status === ERRORS.bad_gateway.status && known.message === RUNTIME_ERROR
  return isBadGateway ? ERRORS.bad_gateway.title : WITH_ERRORS
}

export type FailureStatus = 500 | 502

/** Reactor code failed without choosing a status. `status`: depends on the reactor's image. */
export function codeFailed(message: string, status?: FailureStatus): CofferError {
  return new CofferError('reactor_failed', RUNTIME_ERROR, {
    errors: { error: [message] },
    ...(status === undefined ? {} : { status }),
  })
}
