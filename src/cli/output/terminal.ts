/** The standard streams, their capabilities, and writing to them. */
import type { Readable, Writable } from 'node:stream'
import { CofferError, codeOf, usage } from '../../errors.js'

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
  /** Whether to write colours to the stream. */
  readonly colour: { readonly stdout: boolean; readonly stderr: boolean }
  /** Disables notices, warnings and progress, but not errors. */
  readonly quiet: boolean
  /** Whether prompts are possible: standard input and standard error are terminals, without `--no-input`. */
  readonly mayPrompt: boolean
  /** Whether an unknown field is an error: only if `--fields` is on the command line. */
  readonly mustHaveFields?: boolean
  /**
   * Called before a result is printed. From then on a signal ends the process immediately, because there is nothing to
   * complete, and a signal listener would not run while the result is formatted.
   */
  readonly releaseSignals?: () => Promise<void>
}

/** `input: false` is `--no-input`. */
export interface TerminalFlags {
  color?: string | undefined
  input?: boolean | undefined
  quiet?: boolean | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Determines the capabilities of the streams. Colour, by the first rule that applies: `--color always|never`;
 * `FORCE_COLOR` (off if `0` or `false`, else on); off with a non-empty `NO_COLOR`; on for a terminal whose `TERM` is not
 * `dumb`.
 * @throws CofferError `usage` for any other `--color`
 */
export function detectTerminal(parts: {
  streams: Streams
  env: Environment
  flags: TerminalFlags
}): Terminal {
  const { streams, env, flags } = parts
  const wanted = colourWanted(flags.color ?? 'auto', env)
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
    colour: {
      get stdout() {
        return wanted ?? isTerminal(streams.stdout)
      },
      get stderr() {
        return wanted ?? isTerminal(streams.stderr)
      },
    },
    quiet: flags.quiet === true,
    get mayPrompt() {
      return flags.input !== false && isTerminal(streams.stderr) && isTerminal(streams.stdin)
    },
  }
}

export function isTerminal(stream: { readonly isTTY?: boolean | undefined }): boolean {
  return stream.isTTY === true
}

/** undefined: depends on the stream. */
function colourWanted(flag: string, env: Environment): boolean | undefined {
  if (flag === 'always') return true
  if (flag === 'never') return false
  if (flag !== 'auto') throw usage('--color takes auto, always or never.')
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  if (env.NO_COLOR || env.TERM === 'dumb') return false
  return undefined
}

/**
 * Writes and waits for the stream, so that a slow reader does not fill memory. Resolves to false if the reader closed
 * the stream (`… | head -1`), after which more output is useless.
 * @throws CofferError `storage_failed` if writing fails for another reason, such as a full disk
 */
export function write(stream: OutputStream, text: string): Promise<boolean> {
  if (text === '') return Promise.resolve(true)
  // Node also emits `error`, which would end the process without a listener.
  if (!stream.listeners('error').includes(leaveToCallback)) stream.on('error', leaveToCallback)
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (!error) return resolve(true)
      if (READER_GONE.includes(codeOf(error))) return resolve(false)
      const message = `The output could not be written (${codeOf(error) || 'unknown reason'}).`
      reject(new CofferError('storage_failed', message, { cause: error }))
    })
  })
}

function leaveToCallback(): void {}

/** Codes of an error after which nobody reads: `EOF` is `EPIPE` on Windows; the third follows on further writes. */
const READER_GONE = ['EPIPE', 'EOF', 'ERR_STREAM_DESTROYED']
