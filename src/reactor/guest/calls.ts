/** The guest's side of calls to the host, and the client for reactor code that uses them. */
import { Buffer } from 'node:buffer'
import { CLIENT_CALLS, type HostMessage } from '../messages.js'

/** The maximum JSON text of the arguments of one call, in UTF-8. */
const MOST_BYTES = 1024 * 1024

type Refusal = Extract<HostMessage, { kind: 'refusal' }>

export function createCalls(send: (call: number, name: string, args: string) => void) {
  const pending = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  let last = 0
  let isOver = false

  return { ask, answer, refuse, end }

  /** Calls the host; never settles once the run is over. */
  function ask(name: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (isOver) return
      const text = JSON.stringify(args)
      if (Buffer.byteLength(text) > MOST_BYTES) throw new RangeError(`The arguments of ${name} are too large`)
      const call = ++last
      pending.set(call, { resolve, reject })
      send(call, name, text)
    })
  }

  function answer(call: number, value: unknown): void {
    pending.get(call)?.resolve(value)
    pending.delete(call)
  }

  function refuse({ call, message, status, data }: Refusal): void {
    const error = new Error(message)
    const properties = Object.entries({ status, data }).filter(([, value]) => value !== undefined)
    for (const [name, value] of properties)
      Object.defineProperty(error, name, { value, enumerable: true, writable: true, configurable: true })
    pending.get(call)?.reject(error)
    pending.delete(call)
  }

  function end(): void {
    isOver = true
    pending.clear()
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
