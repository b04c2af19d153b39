/** The functions of `node:zlib` that return all bytes at once. Input and output are limited. */
import { gate } from './gate.js'
import { loadZlib } from './late.js'
import { type Any, split, viewMemory, type Work } from './shield.js'

const MAX_BYTES = 8 * 1024 * 1024

const FUNCTIONS = split(
  `gzipSync gunzipSync deflateSync inflateSync deflateRawSync inflateRawSync unzipSync brotliCompressSync
  brotliDecompressSync`,
)
const OPTIONS = split('level memLevel strategy windowBits dictionary finishFlush params')

export function createZlib() {
  const functions: Record<string, Work> = {}
  for (const name of FUNCTIONS) {
    const limited = gate((bytes, options) => {
      const work = (loadZlib() as Any)[name] as Work
      return work(bytes, { ...options, maxOutputLength: MAX_BYTES })
    })
    functions[name] = (bytes: unknown, options?: Any) => {
      // Reads the options first, because their accessors could change the length of the bytes.
      const picked = pick(options)
      const length = typeof bytes === 'string' ? bytes.length : viewMemory(bytes)?.length
      if (length === undefined)
        throw new TypeError('zlib takes a text, an ArrayBuffer or a view of an ArrayBuffer')
      if (length > MAX_BYTES) throw new RangeError(`zlib takes at most ${MAX_BYTES} bytes`)
      return limited(bytes, picked)
    }
  }
  return { functions, readConstants }
}

function readConstants(): Record<string, number> {
  const entries = Object.entries(loadZlib().constants)
  return Object.fromEntries(entries.filter(([, value]) => typeof value === 'number'))
}

function pick(options: Any): object {
  const picked: Record<string, unknown> = {}
  for (const name of OPTIONS) if (options?.[name] !== undefined) picked[name] = options[name]
  return picked
}
