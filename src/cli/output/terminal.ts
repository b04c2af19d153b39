/**
 * What the command line talks to: three streams and what they can do. It names neither `process` nor any operation;
 * whoever starts the program hands in the streams and the environment.
 */
import type { Readable, Writable } from 'node:stream'
import { CofferError } from '../../errors.js'

export type InputStream = Readable & { readonly isTTY?: boolean | undefined }

/** `columns` is the width of a terminal and absent for everything else. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

export interface Terminal {
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  /** Whether colours may be written to the stream. */
  readonly colour: { readonly stdout: boolean; readonly stderr: boolean }
  /** Silences notices, warnings and progress; never errors. */
  readonly quiet: boolean
  /** A person is there to answer: standard input and standard error are both a terminal and nobody said `--no-input`. */
  readonly mayPrompt: boolean
  /** A field asked for on the command line has to be one; from elsewhere it counts for commands that have it. */
  readonly mustHaveFields?: boolean
  /**
   * Said before a result is printed: nothing is under way that has to be finished, so from now on a signal ends the
   * process at once, also while it draws or waits for a reader, which no listener could.
   */
  readonly letGo?: () => Promise<void>
}

/** `input: false` is how `--no-input` arrives; left out means true. */
export interface TerminalFlags {
  color?: string | undefined
  input?: boolean | undefined
  quiet?: boolean | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Decides once what the streams can do. Colour, first rule that applies: `--color always|never`; `FORCE_COLOR` (on,
 * or off when it is `0` or `false`); `NO_COLOR` when not empty; else a terminal whose `TERM` is not `dumb`.
 * @throws CofferError `usage` for any other `--color`.
 */
export function detectTerminal(parts: {
  stdin: InputStream
  stdout: OutputStream
  stderr: OutputStream
  env: Environment
  flags: TerminalFlags
}): Terminal {
  const { stdin, stdout, stderr, env, flags } = parts
  const wanted = colourWanted(flags.color ?? 'auto', env)
  return {
    stdin,
    stdout,
    stderr,
    colour: { stdout: wanted ?? isTerminal(stdout), stderr: wanted ?? isTerminal(stderr) },
    quiet: flags.quiet === true,
    mayPrompt: isTerminal(stdin) && isTerminal(stderr) && flags.input !== false,
  }
}

export function isTerminal(stream: { readonly isTTY?: boolean | undefined }): boolean {
  return stream.isTTY === true
}

/** undefined: let each stream decide. */
function colourWanted(flag: string, env: Environment): boolean | undefined {
  if (flag === 'always') return true
  if (flag === 'never') return false
  if (flag !== 'auto') throw new CofferError('usage', '--color takes auto, always or never.')
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  if (env.NO_COLOR || env.TERM === 'dumb') return false
  return undefined
}

/**
 * Writes and waits until the stream took it, so that a slow reader slows us down instead of filling memory.
 * Resolves to false when the reader is gone (`… | head -1`): not an error, but a reason to stop producing.
 * @throws CofferError `storage_failed` when writing fails for any other reason, such as a full disk.
 */
export function write(stream: OutputStream, text: string): Promise<boolean> {
  if (text === '') return Promise.resolve(true)
  // Node emits `error` besides calling back; without a listener that would end the process with a stack trace.
  if (!stream.listeners('error').includes(leaveToCallback)) stream.on('error', leaveToCallback)
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (!error) return resolve(true)
      if (isReaderGone(error)) return resolve(false)
      const reason = codeOf(error) ?? 'unknown reason'
      reject(
        new CofferError('storage_failed', `The output could not be written (${reason}).`, { cause: error }),
      )
    })
  })
}

function leaveToCallback(): void {}

/** `EOF` is what Windows says for `EPIPE`; the third follows when one writes on after either. */
function isReaderGone(error: Error): boolean {
  return ['EPIPE', 'EOF', 'ERR_STREAM_DESTROYED'].includes(codeOf(error) ?? '')
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
