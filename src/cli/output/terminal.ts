import type { Readable, Writable } from 'node:stream'
import type { Config, Environment } from '../../config.js'
import { CofferError, codeOf } from '../../errors.js'

export type InputStream = Readable & { readonly isTTY?: boolean | undefined; unref?(): unknown }

/** `columns` is the width of a terminal. Other streams have none. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

/** Node creates a stream at its first use. Standard input takes 4 ms, so read it only if it is needed. */
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
  /** Whether prompts are possible: standard input and error are terminals, and `--no-input` is not given. */
  readonly mayPrompt: boolean
}

/** The first of these decides about colour: `--color`; a non-empty `NO_COLOR`; whether it is a terminal that is not `dumb`. */
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

/** Error codes that mean that the reader is gone. `EOF` is `EPIPE` on Windows. The third comes with later writes. */
const READER_GONE = ['EPIPE', 'EOF', 'ERR_STREAM_DESTROYED']

/** Resolves when the text is written, to false if the reader is gone. @throws CofferError `storage_failed` */
export function write(stream: OutputStream, text: string): Promise<boolean> {
  if (text === '') return Promise.resolve(true)
  // Node also emits `error`. Without a listener it would end the process.
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

/** The callback of the write handles the error. */
function ignoreError(): void {}
