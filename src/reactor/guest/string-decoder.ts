import { StringDecoder as NodeDecoder } from 'node:string_decoder'
import { guard, Hidden, requireMemory } from './shield.js'

const decoders = new Hidden<NodeDecoder>()

export class StringDecoder {
  constructor(encoding: unknown = 'utf8') {
    const name = `${encoding}` as BufferEncoding
    decoders.set(
      this,
      guard(() => new NodeDecoder(name)),
    )
  }
  write(bytes: unknown): string {
    return decode(this, 'write', bytes)
  }
  end(bytes?: unknown): string {
    return bytes === undefined ? decode(this, 'end') : decode(this, 'write', bytes) + decode(this, 'end')
  }
}
decoders.addMembers(StringDecoder, { reads: 'encoding' })

function decode(decoder: StringDecoder, method: 'write' | 'end', bytes?: unknown): string {
  const raw = decoders.get(decoder)
  if (typeof bytes === 'string') return bytes
  const memory = bytes === undefined ? undefined : requireMemory(bytes)
  return guard(() => (memory === undefined ? raw.end() : raw[method](memory)))
}
