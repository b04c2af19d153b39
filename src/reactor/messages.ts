/** Messages between host and guest. Values in them are JSON text, so that the host can refuse a value alone. */

/** A request or an answer for a transform, without its UTF-8 body. */
export interface TransformedMessage {
  direction: 'request' | 'response'
  headers: Readonly<Record<string, string>>
  method?: string
  path?: string
  query?: string
  hasBody: boolean
}

export type HostMessage =
  | {
      kind: 'run'
      /** Absent if the guest ran the same code last. */
      code?: string
      args: unknown
      rest?: object | undefined
      /** The message to transform, instead of arguments. A body that is not empty is the next frame. */
      message?: TransformedMessage | undefined
      configuration: unknown
      prefix: string
      hasClient: boolean
      resultBytes: number
      /** The time that the code sees; absent for the real time. */
      time?: { offsetMs?: number; frozenMs?: number } | undefined
    }
  | { kind: 'check'; code: string }
  | { kind: 'reply'; call: number; value: unknown }
  | { kind: 'refusal'; call: number; message: string; status?: number; data?: unknown }

/** A position in the code as given; both numbers start at 1. */
export interface Position {
  line: number
  column: number
}

/** Why code gave no result. `invalid`: it could not be started. */
export type GuestFailure =
  | ({ kind: 'invalid'; message: string } & Position)
  | {
      kind: 'thrown'
      message: string
      status?: number
      errors?: Record<string, string[]>
      stack?: string
    }

export type GuestMessage =
  | { kind: 'ready' }
  | { kind: 'log'; level: string; text: string }
  | { kind: 'call'; call: number; name: string; args: string }
  /** `hasBody`: the body that a transform returned is the next frame. */
  | { kind: 'done'; raw?: string; tokenize?: string; res?: string; hasBody?: boolean; body?: Uint8Array }
  | { kind: 'failed'; failure: GuestFailure }
  | { kind: 'report'; failure?: GuestFailure; args: string[]; configuration: string[]; unknown: string[] }
  /** The run is over and the event loop is not blocked: ready for the next run. */
  | { kind: 'idle' }

/** A request that the host sends for the guest. Bodies travel as base64. */
export interface FetchRequest {
  url: string
  method: string
  headers: [string, string][]
  body?: string
  redirect: 'follow' | 'manual' | 'error'
}

export interface FetchResponse {
  url: string
  status: number
  statusText: string
  redirected: boolean
  headers: [string, string][]
  body: string
}

/** No client call has this name. */
export const FETCH_CALL = 'fetch'

export const CLIENT_CALLS: readonly string[] =
  `tokens.create tokens.retrieve tokens.list tokens.update tokens.delete tokens.createAssociation
  tokens.deleteAssociation tokens.createChild tokens.listChildren tokens.search tokenize`.split(/\s+/)

/** Parses and validates a message from a guest. Returns undefined if it is invalid; the guest must then be killed. */
export function readGuestMessage(text: string): GuestMessage | undefined {
  const message = parse(text)
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return undefined
  const check = SHAPES[(message as { kind: string }).kind]
  if (check === undefined || !Object.entries(check).every(([name, fits]) => fits(message[name])))
    return undefined
  return message as unknown as GuestMessage
}

function parse(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

type Fits = (value: unknown) => boolean
const isText: Fits = (value) => typeof value === 'string'
const isCount: Fits = (value) => Number.isSafeInteger(value)
const isTexts: Fits = (value) => Array.isArray(value) && value.every(isText)
const isPerhaps =
  (fits: Fits): Fits =>
  (value) =>
    value === undefined || fits(value)
const isErrors: Fits = (value) =>
  typeof value === 'object' && value !== null && Object.values(value).every(isTexts)
const isFailure: Fits = (value) => {
  if (typeof value !== 'object' || value === null) return false
  const failure = value as Record<string, unknown>
  if (failure.kind === 'invalid')
    return isText(failure.message) && isCount(failure.line) && isCount(failure.column)
  const { kind, message, status, errors, stack } = failure
  return (
    kind === 'thrown' &&
    isText(message) &&
    isPerhaps(isCount)(status) &&
    isPerhaps(isErrors)(errors) &&
    isPerhaps(isText)(stack)
  )
}

const SHAPES: Readonly<Record<string, Record<string, Fits>>> = {
  __proto__: null as never,
  ready: {},
  log: { level: isText, text: isText },
  call: { call: isCount, name: isText, args: isText },
  done: {
    ...{ raw: isPerhaps(isText), tokenize: isPerhaps(isText), res: isPerhaps(isText) },
    hasBody: isPerhaps((value) => typeof value === 'boolean'),
    body: (value) => value === undefined,
  },
  failed: { failure: isFailure },
  report: { failure: isPerhaps(isFailure), args: isTexts, configuration: isTexts, unknown: isTexts },
  idle: {},
}
