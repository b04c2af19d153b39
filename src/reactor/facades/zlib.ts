/**
 * The module `zlib`. The guest compresses and decompresses all bytes at once, so the streams here first collect their
 * input.
 */
import { zlib } from 'coffer:internals'
import { Transform, type TransformCallback } from 'node:stream'

type Callback = (error: unknown, bytes?: Buffer) => void

/** The limit for the input. The guest has the same limit for the output. */
const MAX_BYTES = 8 * 1024 * 1024

const CLASSES: Readonly<Record<string, string>> = {
  Gzip: 'gzip',
  Gunzip: 'gunzip',
  Deflate: 'deflate',
  Inflate: 'inflate',
  DeflateRaw: 'deflateRaw',
  InflateRaw: 'inflateRaw',
  Unzip: 'unzip',
  BrotliCompress: 'brotliCompress',
  BrotliDecompress: 'brotliDecompress',
}

type Convert = (bytes: unknown, options?: unknown) => Buffer

class Zlib extends Transform {
  readonly #chunks: Buffer[] = []
  readonly #convert: Convert
  readonly #options: unknown
  bytesWritten = 0

  constructor(convert: Convert, options: unknown) {
    super()
    this.#convert = convert
    this.#options = options
  }
  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.bytesWritten += chunk.length
    if (this.bytesWritten > MAX_BYTES) done(new RangeError(`zlib takes at most ${MAX_BYTES} bytes`))
    else {
      this.#chunks.push(Buffer.from(chunk))
      done()
    }
  }
  override _flush(done: TransformCallback): void {
    try {
      done(null, this.#convert(Buffer.concat(this.#chunks), this.#options))
    } catch (error) {
      done(error as Error)
    }
  }
  /** Writes nothing, because all output comes at the end. */
  flush(...args: unknown[]): void {
    const done = args.at(-1)
    if (typeof done === 'function') process.nextTick(done as () => void)
  }
  close(done?: () => void): void {
    if (done !== undefined) this.once('close', done)
    this.destroy()
  }
}

function later(convert: Convert) {
  return (bytes: unknown, options: unknown, callback?: unknown): void => {
    const done = (typeof options === 'function' ? options : callback) as Callback
    if (typeof done !== 'function') throw new TypeError('The callback must be a function')
    const given = typeof options === 'function' ? undefined : options
    setImmediate(() => {
      let result: Buffer
      try {
        result = convert(bytes, given)
      } catch (error) {
        done(error)
        return
      }
      done(null, result)
    })
  }
}

const CRC = Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1
  return value >>> 0
})

function crc32(given: string | Uint8Array, start = 0): number {
  let value = ~start
  for (const byte of Buffer.from(given as string)) value = CRC[(value ^ byte) & 0xff]! ^ (value >>> 8)
  return ~value >>> 0
}

const constants = zlib.readConstants()
const members: Record<string, unknown> = { constants, crc32, ...constants }
for (const [name, method] of Object.entries(CLASSES)) {
  const convert = zlib.functions[`${method}Sync`] as Convert
  const { [name]: Class } = {
    [name]: class extends Zlib {
      constructor(options?: unknown) {
        super(convert, options)
      }
    },
  }
  members[`${method}Sync`] = convert
  members[method] = later(convert)
  members[name] = Class
  // Not an arrow function, because old code calls this function with `new`.
  members[`create${name}`] = function create(options?: unknown) {
    return new Class!(options)
  }
}

export default members
