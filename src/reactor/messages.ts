/**
 * Messages between host and guest. A message contains the results of code as JSON texts, so that the host can refuse an
 * invalid result without refusing the message.
 */
import { isObject, tryJson } from '../domain/json/json.js'
import type { ApplicationOptions, GuestTime, TransformInput } from '../framework/ports/reactors.js'
import { splitFrame } from '../ipc/frames.js'

export type TransformedMessage = Omit<TransformInput, 'body'>

export type HostMessage =
  | {
      kind: 'run'
      /** Absent if the last run of the guest had the same code. */
      code?: string
      args: unknown
      /** The other members of the request. An object if the request has `args`. */
      rest?: unknown
      message?: TransformedMessage | undefined
      configuration: unknown
      prefix: string
      applicationOptions?: ApplicationOptions | undefined
      image?: string | undefined
      hasClient: boolean
      resultBytes: number
      time?: GuestTime | undefined
    }
  /** `isCompiledOnly`: compiles the code, but does not load its module. */
  | { kind: 'check'; code: string; isCompiledOnly?: boolean }
  /** A package for the next run and all later runs of the guest. The body of the message is the text of the package. */
  | { kind: 'package'; name: string }
  | {
      kind: 'reply'
      call: number
      value?: unknown
      error?: { message: string; status?: number; data?: unknown }
    }

/** A position in the code of the user. `line` and `column` start at 1. */
export type Position = Record<'line' | 'column', number>

export type Fault = Position & { message: string }

export interface Thrown {
  kind: 'thrown'
  message: string
  status?: number
  errors?: Record<string, string[]>
  stack?: string
}

export type Invalid = { kind: 'invalid'; others?: readonly Fault[] } & Fault

export type GuestFailure = Invalid | Thrown

/** Ends a run or a check. `isThrown`: the code threw the response `res`. `body`: the body that a transform returned. */
export interface Done {
  kind: 'done'
  raw?: string
  tokenize?: string
  res?: string
  isThrown?: true
  failure?: GuestFailure
  body?: Uint8Array
}

export type GuestMessage =
  | { kind: 'ready' }
  | { kind: 'log'; level: string; text: string }
  | { kind: 'call'; call: number; name: string; args: string }
  | Done
  /** The guest has loaded the code and its packages. */
  | { kind: 'loaded' }
  /** The run is over and the event loop is not blocked, so the guest can run more work. */
  | { kind: 'idle' }

/** `body` is base64. */
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

export const FETCH_CALL = 'fetch'

export const CLIENT_CALLS: readonly string[] =
  `tokens.create tokens.retrieve tokens.list tokens.update tokens.delete tokens.createAssociation
  tokens.deleteAssociation tokens.createChild tokens.listChildren tokens.search tokenize
  networkTokens.create networkTokens.get networkTokens.cryptogram networkTokens.suspend networkTokens.resume
  networkTokens.delete`.split(/\s+/)

export type MessageLimits = Record<'maxBytes' | 'maxBodyBytes', number>

/** Returns undefined if the message is invalid. The host must then kill the guest. */
export function readGuestMessage(frame: Buffer, { maxBytes, maxBodyBytes }: MessageLimits) {
  const [text, body] = splitFrame(frame)
  if (text.length > maxBytes || (body?.length ?? 0) > maxBodyBytes) return undefined
  const message = tryJson(text.toString())
  if (!isObject(message) || 'body' in message || SHAPES.get(message.kind)?.(message) !== true)
    return undefined
  if (body === undefined) return message as unknown as GuestMessage
  return message.kind === 'done' && maxBodyBytes > 0 ? { ...(message as unknown as Done), body } : undefined
}

type Check = (value: unknown) => boolean
const isText: Check = (value) => typeof value === 'string'
const isCount: Check = (value) => Number.isSafeInteger(value)
const isTexts: Check = (value) => Array.isArray(value) && value.every(isText)
const isErrors: Check = (value) =>
  typeof value === 'object' && value !== null && Object.values(value).every(isTexts)
/** Names of optional properties end with `?`. */
const hasShape =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) &&
    Object.entries(checks).every(([name, check]) => {
      const property = value[name.replace('?', '')]
      return (name.endsWith('?') && property === undefined) || check(property)
    })
const FAULT = { message: isText, line: isCount, column: isCount }
const isFault = hasShape(FAULT)
const isFaults: Check = (value) => Array.isArray(value) && value.every(isFault)
const isInvalid = hasShape({ ...FAULT, 'others?': isFaults })
const isThrown = hasShape({ message: isText, 'status?': isCount, 'errors?': isErrors, 'stack?': isText })
const isFailure: Check = (value) =>
  isObject(value) &&
  (value.kind === 'invalid' ? isInvalid(value) : value.kind === 'thrown' && isThrown(value))

const SHAPES = new Map<unknown, Check>([
  ['ready', () => true],
  ['log', hasShape({ level: isText, text: isText })],
  ['call', hasShape({ call: isCount, name: isText, args: isText })],
  [
    'done',
    hasShape({
      'raw?': isText,
      'tokenize?': isText,
      'res?': isText,
      'isThrown?': (value) => value === true,
      'failure?': isFailure,
    }),
  ],
  ['loaded', () => true],
  ['idle', () => true],
])
