import type { Readable, Writable } from 'node:stream'
import type { Config, Environment } from '../../config.js'
import { CofferError, codeOf } from '../../errors.js'

export type InputStream = Readable & { readonly isTTY?: boolean | undefined; unref?(): unknown }

/** `columns`: the width of a terminal. Undefined for any other stream. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

/**
 * Node creates each stream when it is first used. Creating the stream of standard input takes 4 ms, so use `stdin`
 * only if it is needed.
 */
export interface Streams {
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

export const DEFAULT_COLUMNS = 80

export interface Terminal extends Streams {
  readonly colour: { readonly stdout: boolean; readonly stderr: boolean }
  /** Hides notices and progress, but not warnings and errors. */
  readonly quiet: boolean
  readonly mayPrompt: boolean
}

/** `--color` has precedence over `NO_COLOR`. If both are absent, a terminal that is not `dumb` has colour. */
export function detectTerminal(
  streams: Streams,
  env: Environment,
  { color, input = true, quiet = false }: Partial<Pick<Config, 'color' | 'input' | 'quiet'>>,
): Terminal {
  const mayColour = color !== 'never' && !env.NO_COLOR && env.TERM !== 'dumb'
  const isOn = (stream: OutputStream) => color === 'always' || (mayColour && isTerminal(stream))
  return {
    get stdin() {
      return streams.stdin
    },
    get stdout() {
      return streams.stdout
    },
    get stderr() {
      return streams.stderr
    },
    get colour() {
      return { stdout: isOn(streams.stdout), stderr: isOn(streams.stderr) }
    },
    get mayPrompt() {
      return input && isTerminal(streams.stderr) && isTerminal(streams.stdin)
    },
    quiet,
  }
}

export function isTerminal(stream: { readonly isTTY?: boolean | undefined }): boolean {
  return stream.isTTY === true
}

/**
 * The codes of errors after the reader has closed the output. On Windows, the first write fails with `EOF` instead of
 * `EPIPE`. Later writes fail with the third code.
 */
const READER_GONE = ['EPIPE', 'EOF', 'ERR_STREAM_DESTROYED']

/**
 * Resolves to true when the text or the bytes are written, or to false if the reader has closed the stream.
 * @throws CofferError `storage_failed`
 */
export function write(stream: OutputStream, text: string | Uint8Array): Promise<boolean> {
  if (text.length === 0) return Promise.resolve(true)
  // Node also emits the event `error`. Without a listener, this event would end the process.
  if (!stream.listeners('error').includes(ignoreError)) stream.on('error', ignoreError)
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (!error) return resolve(true)
      if (READER_GONE.includes(codeOf(error))) return resolve(false)
      const message = `The output could not be written (${codeOf(error) || 'unknown reason'}).`
      reject(new CofferError('storage_failed', message, { cause: error }))
    })
  })
}

/** The callback of `write` receives the error, so the listener need not handle it. */
function ignoreError(): void {}
