/** Listens to the events of a vault or server, for webhooks that only this machine or this process can receive. */
import { createForwarder } from '../client/forward.js'
import {
  type ListenedAnswer,
  type ListenedEvent,
  listen as listenTo,
  type Outcome,
} from '../client/listen.js'
import { pause } from '../client/pause.js'
import type { Control } from './clients.js'

const ADDRESS_OF_FUNCTION = 'http://localhost/'

export interface WebhookOptions {
  /**
   * Receives the signed requests: an address, or a function from request to response. If `to` is absent, each event
   * counts as delivered.
   */
  to?: string | ((request: Request) => Response | Promise<Response>)
  /** The types of events. Default: all. */
  events?: readonly string[]
  onEvent?(event: WebhookAttempt): unknown
  /** Called when the server stops answering, and when it answers again. */
  onProblem?(text: string): unknown
}

/** An attempt to deliver an event. `retryMs`: the time until the next attempt, ms. */
export interface WebhookAttempt extends Omit<Outcome, 'event'> {
  readonly type: string
  /** The body that was sent, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: the attributes of an event depend on its type.
  readonly payload: any
  readonly attempt: number
}

export interface WebhookListener extends AsyncDisposable {
  readonly id: string
  /** The key that verifies the signatures, PEM. */
  readonly publicKey: string
  /** Deletes the webhook. Rejects if the listener has failed before. */
  stop(): Promise<void>
}

/**
 * Creates a webhook and delivers its events from this process, so the server needs no `allowNet`. If an event
 * gets no 2xx answer, it is sent again later. `stop` deletes the webhook.
 * @throws CofferError
 */
export async function listen(
  { listeners }: Pick<Control<unknown>, 'listeners'>,
  { to, events, onEvent, onProblem }: WebhookOptions = {},
): Promise<WebhookListener> {
  const stopping = new AbortController()
  const { signal } = stopping
  const forwarder = typeof to === 'string' ? createForwarder(to, { signal }) : undefined
  const send = typeof to === 'function' ? (event: ListenedEvent) => callFunction(to, event) : forwarder?.send
  const calls: Record<string, (input: never) => Promise<unknown>> = { ...listeners }
  let open: (webhook: { id: string; publicKey: string }) => void
  let fail: (error: unknown) => void
  const opening = new Promise<{ id: string; publicKey: string }>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  const url = forwarder?.url ?? ADDRESS_OF_FUNCTION
  const listening = listenTo({
    ask: (operation, input) => calls[operation.split(' ').at(-1)!]!(input as never),
    ...{ url, events, send, signal, wait: pause },
    opened: ({ id, public_key: publicKey }) => open({ id, publicKey }),
    delivered: ({ event, ...answer }) => {
      const { type, attempt, body } = event
      return onEvent?.({ ...answer, type, attempt, payload: JSON.parse(body) })
    },
    problem: (text) => onProblem?.(text),
  }).finally(() => forwarder?.close())
  listening.catch((error: unknown) => fail(error))
  const stop = async () => {
    stopping.abort()
    await listening
  }
  return { ...(await opening), stop, [Symbol.asyncDispose]: stop }
}

/** An error of the function counts as a failed attempt. */
async function callFunction(
  receive: (request: Request) => Response | Promise<Response>,
  { headers, body }: ListenedEvent,
): Promise<ListenedAnswer> {
  const began = performance.now()
  const passed = () => Math.round(performance.now() - began)
  try {
    const response = await receive(new Request(ADDRESS_OF_FUNCTION, { method: 'POST', headers, body }))
    return { status: response.status, answer: await response.text(), ms: passed() }
  } catch {
    return { failure: 'The function that receives events has thrown an error.', ms: passed() }
  }
}
