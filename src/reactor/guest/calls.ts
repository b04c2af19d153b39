/** The guest's side of calls to the host, and the client for reactor code that uses them. */
import { Buffer } from 'node:buffer'
import { CLIENT_CALLS } from '../messages.js'

/** The maximum JSON text of the arguments of one call, in UTF-8. */
const MOST_BYTES = 1024 * 1024

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
}

export interface Refusal {
  message: string
  status?: number
  data?: unknown
}

export class Calls {
  readonly #send: (call: number, name: string, args: string) => void
  readonly #pending = new Map<number, Pending>()
  #last = 0
  #isOver = false

  constructor(send: (call: number, name: string, args: string) => void) {
    this.#send = send
  }

  /** Calls the host; never settles once the run is over. */
  ask(name: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isOver) return
      const text = JSON.stringify(args)
      if (Buffer.byteLength(text) > MOST_BYTES) throw new RangeError(`The arguments of ${name} are too large`)
      const call = ++this.#last
      this.#pending.set(call, { resolve, reject })
      this.#send(call, name, text)
    })
  }

  answer(call: number, value: unknown): void {
    this.#pending.get(call)?.resolve(value)
    this.#pending.delete(call)
  }

  refuse(call: number, { message, status, data }: Refusal): void {
    const error = new Error(message)
    const properties = Object.entries({ status, data }).filter(([, value]) => value !== undefined)
    for (const [name, value] of properties)
      Object.defineProperty(error, name, { value, enumerable: true, writable: true, configurable: true })
    this.#pending.get(call)?.reject(error)
    this.#pending.delete(call)
  }

  end(): void {
    this.#isOver = true
    this.#pending.clear()
  }
}

/** `{ tokens: { create, … }, tokenize }`; each method makes one call. */
export function createClient(ask: (name: string, args: readonly unknown[]) => Promise<unknown>): object {
  const client: Record<string, unknown> = {}
  for (const name of CLIENT_CALLS) {
    const [noun, verb] = name.split('.') as [string, string | undefined]
    const method = (...args: unknown[]) => ask(name, args)
    if (verb === undefined) client[noun] = method
    else client[noun] = Object.assign(client[noun] ?? {}, { [verb]: method })
  }
  return client
}
