/** Text encoding for reactor code, per the WHATWG Encoding standard; Node's decoders would expose handles of Node's. */
import { atob as nodeAtob, btoa as nodeBtoa } from 'node:buffer'
import { TextDecoder as NodeDecoder, TextEncoder as NodeEncoder } from 'node:util'
import { guard, Hidden, viewMemory } from '../shield.js'

const encoder = new NodeEncoder()
const decoders = new Hidden<NodeDecoder>()

export class TextEncoder {
  get encoding(): string {
    return 'utf-8'
  }
  encode(text: unknown = ''): Uint8Array {
    return new Uint8Array(encoder.encode(`${text as string}`))
  }
  encodeInto(text: unknown, target: unknown): { read: number; written: number } {
    const memory = viewMemory(target)
    if (!(target instanceof Uint8Array) || memory === undefined)
      throw new TypeError('The target must be a Uint8Array')
    const { read, written } = encoder.encodeInto(`${text as string}`, memory)
    return { read, written }
  }
  get [Symbol.toStringTag](): string {
    return 'TextEncoder'
  }
}

export class TextDecoder {
  constructor(label: unknown = 'utf-8', options: { fatal?: unknown; ignoreBOM?: unknown } = {}) {
    const name = `${label}`
    const given = { fatal: Boolean(options?.fatal), ignoreBOM: Boolean(options?.ignoreBOM) }
    decoders.set(
      this,
      guard(() => new NodeDecoder(name, given)),
    )
  }
  decode(bytes?: unknown, options?: { stream?: unknown }): string {
    const raw = decoders.get(this)
    const memory = bytes === undefined ? undefined : viewMemory(bytes)
    if (bytes !== undefined && memory === undefined)
      throw new TypeError('The bytes must be an ArrayBuffer or a view of one')
    const given = { stream: Boolean(options?.stream) }
    return guard(() => raw.decode(memory, given))
  }
  get [Symbol.toStringTag](): string {
    return 'TextDecoder'
  }
}
decoders.addMembers(TextDecoder, { reads: 'encoding fatal ignoreBOM' })

export function atob(text: unknown): string {
  const given = `${text}`
  return guard(() => nodeAtob(given))
}

export function btoa(text: unknown): string {
  const given = `${text}`
  return guard(() => nodeBtoa(given))
}
