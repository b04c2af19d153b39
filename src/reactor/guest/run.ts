import { Buffer } from 'node:buffer'
import { CLIENT_CALLS, type Done, FETCH_CALL, type FetchResponse, type HostMessage } from '../messages.js'
import { createConsole, type DescribeError } from './inspect.js'
import { createProcess } from './process.js'
import type { RunGlobals } from './realm.js'
import { createScope, type Scope } from './scope.js'
import { define } from './shield.js'
import { createTimers } from './timers.js'
import { createFetch } from './web.js'

const MAX_BYTES = 1024 * 1024

export type Send = (message: object, body?: Uint8Array) => void

export interface RunContext {
  image: string
  /** The time that the code reads, in ms since 1970. */
  date(): number
  describeError: DescribeError
}

export class Run {
  readonly console: ReturnType<typeof createConsole>
  readonly globals: RunGlobals
  readonly scope: Scope['api']
  readonly #scope: Scope = createScope()
  readonly #describeProcess: Pick<RunContext, 'image' | 'date'>
  #lazyGlobals: ReturnType<typeof createProcess> | undefined
  readonly #send: Send
  readonly #timers = createTimers(this.#scope.api.capture)
  readonly #pending = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #calls = 0
  #isOver = false

  constructor(send: Send, { image, date, describeError }: RunContext) {
    this.#send = (message, body) => {
      if (!this.#isOver) send(message, body)
    }
    this.console = createConsole((level, text) => this.#send({ kind: 'log', level, text }), describeError)
    const fetch = createFetch(async (request) => (await this.#call(FETCH_CALL, [request])) as FetchResponse)
    this.scope = this.#scope.api
    this.globals = { ...this.#timers.globals, console: this.console, fetch }
    this.#describeProcess = { image, date }
  }

  /** Most code does not use `process` and `performance`, so both are created when one of them is first used. */
  get lazyGlobals(): ReturnType<typeof createProcess> {
    this.#lazyGlobals ??= createProcess({
      ...this.#describeProcess,
      console: this.console as Record<'error' | 'log' | 'warn', () => void>,
      isOver: () => this.#isOver,
      inherit: (callback) => {
        const restore = this.scope.capture()
        return (...args) => restore(() => callback(...args))
      },
    })
    return this.#lazyGlobals
  }

  get setTimeout() {
    return this.#timers.globals.setTimeout
  }

  createClient(): object {
    const client: Record<string, unknown> = {}
    for (const name of CLIENT_CALLS) {
      const [noun = '', verb] = name.split('.')
      const method = (...args: unknown[]) => this.#call(name, args)
      client[noun] = verb === undefined ? method : Object.assign(client[noun] ?? {}, { [verb]: method })
    }
    return client
  }

  /** Calls the host. The promise never settles after the run is over. */
  #call(name: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isOver) return
      const text = JSON.stringify(args)
      if (Buffer.byteLength(text) > MAX_BYTES) throw new RangeError(`The arguments of ${name} are too large`)
      const call = ++this.#calls
      this.#pending.set(call, { resolve, reject })
      this.#send({ kind: 'call', call, name, args: text })
    })
  }

  receive({ call, value, error: refusal }: Extract<HostMessage, { kind: 'reply' }>): void {
    const pending = this.#pending.get(call)
    this.#pending.delete(call)
    if (refusal === undefined) pending?.resolve(value)
    else {
      const { message, ...properties } = refusal
      const error = new Error(message)
      for (const [name, value] of Object.entries(properties)) define(error, name, value)
      pending?.reject(error)
    }
  }

  end({ body, ...message }: Done): void {
    this.#send(message, body)
    this.#isOver = true
    this.#timers.end()
    this.#scope.end()
    this.#pending.clear()
  }
}
