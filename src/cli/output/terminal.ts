import type { Readable, Writable } from 'node:stream'
import type { Config, Environment } from '../../config.js'
import { CofferError, codeOf } from '../../errors.js'

export type InputStream = Readable & { readonly isTTY?: boolean | undefined; unref?(): unknown }

/** `columns` is the width of a terminal; absent for other streams. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

/** Node makes a stream when it is first asked for, standard input in 4 ms: ask only where it is needed. */
export interface Streams {
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/** The columns of what is no terminal. */
export const DEFAULT_COLUMNS = 80

export interface Terminal extends Streams {
  readonly colour: { readonly stdout: boolean; readonly stderr: boolean }
  /** Disables notices and progress, but neither warnings nor errors. */
  readonly quiet: boolean
  /** Whether prompts are possible: standard input and standard error are terminals, without `--no-input`. */
  readonly mayPrompt: boolean
}

/** Colour, by the first rule that applies: `--color`; a non-empty `NO_COLOR`; a terminal, not `dumb`. */
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

/** Codes of an error after which nobody reads. `EOF` is `EPIPE` on Windows. The third follows on further writes. */
const READER_GONE = ['EPIPE', 'EOF', 'ERR_STREAM_DESTROYED']

/** Waits for the stream. Resolves to false if its reader is gone. @throws CofferError `storage_failed` */
export function write(stream: OutputStream, text: string): Promise<boolean> {
  if (text === '') return Promise.resolve(true)
  // Node also emits `error`, which would end the process without a listener.
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

/** The callback of the write has the error. */
function ignoreError(): void {}
