/** Fault rules: which requests they match, how answers fail, and how requests to other servers fail. */
import { STATUS_CODES } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { isObject } from '../domain/json/json.js'
import { type DestinationFault, readDestinationFault } from '../domain/proxy/destination-fault.js'
import { matchesName } from '../domain/text/display-name.js'
import { CofferError, ERRORS, type ErrorCode } from '../errors.js'
import type { CountedRule, FaultRule, RequestRecord } from '../framework/ports/control.js'
import * as port from '../framework/ports/outbound.js'
import type { HttpResponse } from '../http/exchange.js'

interface Target {
  operation: string | undefined
  method: string
  path: string
  isRelayed: boolean
  header(name: string): string | undefined
  body(): Promise<unknown>
}

export class Faults {
  #rules: CountedRule[] = []

  get rules(): CountedRule[] {
    return this.#rules.map((rule) => ({ ...rule }))
  }

  set(rules: readonly FaultRule[]): void {
    this.#rules = rules.map((rule) => ({ ...rule, matched: 0, applied: 0 }))
  }

  async choose(target: Target): Promise<FaultRule[]> {
    const chosen: FaultRule[] = []
    for (const rule of this.#rules) {
      if (!(await fits(rule, target))) continue
      rule.matched++
      const { times, every } = rule
      const isChosen =
        times !== undefined ? rule.matched <= times : every === undefined || rule.matched % every === 0
      if (!isChosen) continue
      rule.applied++
      chosen.push(rule)
    }
    return chosen
  }
}

async function fits(rule: FaultRule, target: Target): Promise<boolean> {
  const { operation, method, path, kind, headers = {}, body = {} } = rule
  if (kind === 'destination' && !target.isRelayed) return false
  if (operation !== undefined && operation !== target.operation) return false
  if (method !== undefined && method !== target.method) return false
  if (path !== undefined && !(path.includes('*') ? matchesName(target.path, path) : target.path === path))
    return false
  if (Object.entries(headers).some(([name, value]) => target.header(name.toLowerCase()) !== value))
    return false
  const values = Object.entries(body)
  if (values.length === 0) return true
  const sent = await target.body()
  return values.every(([place, value]) => String(valueAt(sent, place)) === value)
}

function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => {
    const isThere = (isObject(at) || Array.isArray(at)) && Object.hasOwn(at, name)
    return isThere ? (at as Record<string, unknown>)[name] : undefined
  }, value)
}

export type Pause = (ms: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown>

/**
 * Records the destination of each request to another server. `fault`: the `destination` of a fault rule, which decides
 * how these requests fail. Undefined if no rule applies.
 */
export function watchDestination(
  fault: unknown,
  seen: Pick<RequestRecord, 'destination' | 'destination_status'>,
  pause: Pause = setTimeout,
): (outbound: port.Outbound) => port.Outbound {
  const failing = readDestinationFault(fault)
  return (outbound) => ({
    requireListed: (url) => outbound.requireListed(url),
    reach: (url) => {
      seen.destination = url.href
      const destination = outbound.reach(url)
      return {
        send: async (request, sending) => {
          const answer = await (failing === undefined
            ? destination.send(request, sending)
            : fail(failing, sending, () => destination.send(request, sending), pause))
          seen.destination_status = answer.status
          return answer
        },
      }
    },
  })
}

/**
 * Sends the request only if the fault is a delay that is shorter than `WAIT_MS`. If the client disconnects, the delay
 * ends with an error.
 */
async function fail(
  fault: DestinationFault,
  { sent, left }: Parameters<port.Destination['send']>[1],
  send: () => ReturnType<port.Destination['send']>,
  pause: Pause,
): ReturnType<port.Destination['send']> {
  const isLate = fault.kind === 'timeout' || (fault.kind === 'delay' && fault.ms >= port.WAIT_MS)
  if (isLate || fault.kind === 'status') sent()
  if (fault.kind === 'delay') {
    const gone = new AbortController()
    left?.(() => gone.abort())
    await pause(Math.min(fault.ms, port.WAIT_MS), undefined, { signal: gone.signal }).catch(() => {
      throw port.leftError()
    })
  }
  if (isLate) throw port.lateError(port.WAIT_MS)
  return fault.kind === 'status' ? port.answerWhole(fault.status, {}, new Uint8Array()) : send()
}

/** A fault never gets one of these codes, because each code has a more specific meaning than its HTTP status. */
const SPECIFIC: readonly ErrorCode[] = [
  'usage',
  'check_failed',
  'values_found',
  'seed_differs',
  'server_differs',
  'not_emulated',
  'threeds_failed',
  'card_refused',
]

function codeOfStatus(status: number): ErrorCode | undefined {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  return codes.find((code) => ERRORS[code].status === status && !SPECIFIC.includes(code))
}

export function problemOf({ status = 500, detail }: Pick<FaultRule, 'status' | 'detail'>): CofferError {
  const code = codeOfStatus(status) ?? 'internal'
  return new CofferError(code, detail ?? 'A fault rule of the control plane caused this answer.', { status })
}

/**
 * If Coffer has no error with the status of the answer, the title of the problem is the name of the status (RFC 7807,
 * 4.2).
 */
export function titleByStatus(answer: HttpResponse): void {
  if (codeOfStatus(answer.status) !== undefined) return
  const title = STATUS_CODES[answer.status] ?? 'Unknown Status'
  answer.body = JSON.stringify({ ...JSON.parse(answer.body), type: 'about:blank', title })
}

export async function* cutStream(stream: AsyncIterable<Uint8Array>, bytes: number) {
  let left = bytes
  for await (const chunk of stream) {
    yield chunk.subarray(0, left)
    left -= chunk.length
    if (left <= 0) throw new Error('A fault rule of the control plane cut this answer.')
  }
}

export async function closeStream({ stream }: HttpResponse): Promise<void> {
  await stream?.[Symbol.asyncIterator]().return?.()
}
