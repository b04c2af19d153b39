/**
 * Takes the events of a vault from its server, sends them to an address or a function, and reports the answers. If
 * an event gets no 2xx answer, the server offers the event again later.
 */

import { omitUndefined } from '../domain/omit-undefined.js'
import { pauseAfter } from '../domain/webhook/events.js'
import { CofferError } from '../errors.js'

/** A server answers a request for events after at most this time, even if no event has occurred. */
const LONG_POLL_MS = 20_000
/** The pause between two requests for events, ms, if a request for events must not wait. */
const ASKED_EVERY_MS = 1000
const AT_ONCE = 16
/** The server stores at most this many characters of an answer. */
const MAX_CHARACTERS = 2000
const CLOSE_ATTEMPTS = 2
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5000

/** An event as it is sent: `headers` contain its signature. `body` is JSON, and must be sent unchanged. */
export interface ListenedEvent {
  /** The id of the delivery. All attempts have the same id. */
  readonly id: string
  /** The number of the attempt, from 1. */
  readonly attempt: number
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Without an answer, `status` is absent and `failure` contains the reason. `ms`: how long the answer took. */
export interface ListenedAnswer {
  readonly status?: number | undefined
  readonly answer?: string | undefined
  readonly failure?: string | undefined
  readonly ms: number
}

export interface Outcome extends ListenedAnswer {
  readonly event: ListenedEvent
  readonly isDelivered: boolean
  /** The time until the next attempt, ms. Undefined if there is no next attempt. */
  readonly retryMs: number | undefined
}

export interface Listening {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  /** The key that verifies the signatures, PEM. */
  readonly public_key: string
}

type Ask = (operation: string, input: Record<string, unknown>) => Promise<unknown>

export interface ListenOptions {
  /** Performs an operation. `report` is called while `ask` waits for events. If `report` is absent, `ask` is called. */
  ask: Ask
  report?: Ask
  url?: string | undefined
  events?: readonly string[] | undefined
  /**
   * How long the server may wait for an event, ms. Default: 20,000. Returns 0 if other processes could not use the
   * vault during a wait.
   */
  longestWaitMs?(): number
  /** Sends an event to its receiver. If `send` is undefined, each event counts as delivered. */
  send?: ((event: ListenedEvent) => Promise<ListenedAnswer>) | undefined
  opened?(listening: Listening): unknown
  delivered(outcome: Outcome): unknown
  /** Called once when the server stops answering, and once when it answers again. */
  problem?(text: string): unknown
  signal: AbortSignal
  wait(ms: number, signal: AbortSignal): Promise<unknown>
}

/** A retry is useless after an error with one of these codes. */
const FINAL = [
  'unauthenticated',
  'forbidden',
  'validation',
  'usage',
  'unprocessable',
  'vault_locked',
  'interrupted',
]

/** Runs until `signal` is aborted, then deletes the webhook. @throws CofferError if a retry is useless */
export async function listen(options: ListenOptions): Promise<void> {
  const listener = new Listener(options)
  try {
    await listener.run()
  } finally {
    await listener.close()
  }
}

class Listener {
  readonly #options: ListenOptions
  readonly #sending = new Set<Promise<void>>()
  #id: string | undefined
  #failures = 0
  #fault: unknown

  constructor(options: ListenOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    const { signal } = this.#options
    while (!signal.aborted) {
      if (this.#fault !== undefined) throw this.#fault
      try {
        await this.#step()
        await this.#recover()
      } catch (error) {
        if (signal.aborted) return
        await this.#fail(error)
      }
    }
  }

  /** Deletes the webhook. Does not wait for answers to events, because these answers can no longer be reported. */
  async close(): Promise<void> {
    if (this.#id === undefined) return
    const { ask, report = ask } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        return void (await report('control listener close', { id: this.#id }))
      } catch (error) {
        if (isGone(error)) return
        if (isFinal(error)) throw error
        // Tries again, because the connection may have led to a server that has ended.
        if (attempt < CLOSE_ATTEMPTS) continue
        const { problem } = this.#options
        return void (await problem?.(
          'The server does not answer. It deletes the webhook by itself after 2 minutes.',
        ))
      }
    }
  }

  async #step(): Promise<void> {
    const { ask, signal, wait, longestWaitMs } = this.#options
    if (this.#id === undefined) await this.#open()
    const count = AT_ONCE - this.#sending.size
    if (count === 0) {
      await orAborted(Promise.race(this.#sending), signal)
      return
    }
    const waitMs = Math.min(LONG_POLL_MS, longestWaitMs?.() ?? LONG_POLL_MS)
    const timeout = `${waitMs}ms`
    const asking = ask('control listener take', { id: this.#id, count, timeout })
    const taken = (await orAborted(asking, signal)) as ListenedEvent[] | undefined
    // After an abort, nobody waits for this answer. Without this handler, its rejection would end the process.
    asking.catch(() => undefined)
    for (const event of taken ?? []) this.#start(event)
    if (longestWaitMs?.() === 0 && taken?.length === 0) await wait(ASKED_EVERY_MS, signal)
  }

  async #open(): Promise<void> {
    const { ask, url, events, opened } = this.#options
    const made = (await ask('control listener open', {
      ...(url !== undefined && { url }),
      ...(events !== undefined && { events: [...events] }),
    })) as Listening
    this.#id = made.id
    await opened?.(made)
  }

  #start(event: ListenedEvent): void {
    const work = this.#deliver(event).catch((error: unknown) => {
      this.#fault ??= error
    })
    const sending = work.finally(() => this.#sending.delete(sending))
    this.#sending.add(sending)
  }

  async #deliver(event: ListenedEvent): Promise<void> {
    const { ask, report = ask, send, delivered, signal } = this.#options
    const answer = (await send?.(event)) ?? { status: 200, ms: 0 }
    if (signal.aborted) return
    const { id, attempt } = event
    const { status, failure } = answer
    const isDelivered = failure === undefined && status !== undefined && status <= 299
    const retryMs = isDelivered ? undefined : pauseAfter(attempt)
    await delivered({ ...answer, event, isDelivered, retryMs })
    const told = omitUndefined({
      status,
      answer: answer.answer?.slice(0, MAX_CHARACTERS),
      failure: failure?.slice(0, MAX_CHARACTERS / 2),
    })
    const reports = [{ id, attempt, ...told }]
    // If the report is lost, the server sends the event again after its lease. The receiver recognizes a repeated event
    // by its id.
    await report('control listener report', { id: this.#id, reports }).catch((error: unknown) => {
      if (isFinal(error) && !signal.aborted) throw error
    })
  }

  async #recover(): Promise<void> {
    if (this.#failures > 0) await this.#options.problem?.('The server answers again. Listening.')
    this.#failures = 0
  }

  async #fail(error: unknown): Promise<void> {
    const { problem, signal, wait } = this.#options
    if (!(error instanceof CofferError) || isFinal(error)) throw error
    if (isGone(error) && this.#id !== undefined) {
      this.#id = undefined
      await problem?.(
        'The webhook of this listener is gone, for example after a reset. A new one is created. Events in between were not sent.',
      )
      return
    }
    // A reset of the vault ends requests in progress with a conflict. The next request works.
    if (error.code === 'conflict') return void (await wait(FIRST_PAUSE_MS, signal))
    if (this.#failures === 0) await problem?.(describeLoss(error))
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures)
    this.#failures++
    await wait(pauseMs, signal)
  }
}

function describeLoss({ code, message }: CofferError): string {
  const what = code === 'unavailable' ? 'The connection to the server is lost.' : message
  return `${what} Trying again until the server answers. The server keeps the events for 2 minutes.`
}

function isGone(error: unknown): boolean {
  return error instanceof CofferError && error.code === 'not_found'
}

function isFinal(error: unknown): boolean {
  return !(error instanceof CofferError) || FINAL.includes(error.code)
}

/** Resolves to undefined when `signal` is aborted, even if `work` has not ended. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return undefined
  let end = () => {}
  const aborted = new Promise<undefined>((resolve) => {
    end = () => resolve(undefined)
    signal.addEventListener('abort', end)
  })
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', end))
}
