/**
 * Runs the command line in this process. The streams of the command line are strings, or a simulated terminal with a
 * simulated person.
 */
import { PassThrough, Readable, Writable } from 'node:stream'
import type { ProcessLike } from '../../src/cli/context.js'
import type { OutputStream, Terminal } from '../../src/cli/output/terminal.js'
import type { Fetch } from '../../src/client/http-client.js'

export interface Run {
  words: readonly string[]
  stdin?: string
  env?: Record<string, string>
  cwd?: string
  clock?: () => number
  /** The version of Node. */
  version?: string
  /** The fake server that receives the requests of `--url`. By default, requests go through real sockets. */
  fetch?: Fetch
  /** If `columns` is given, all three streams are a terminal of this width. By default, the three streams are pipes. */
  columns?: number
  /** The keys that the person types, in order. Each answer is typed after its question is displayed. */
  answers?: readonly Answer[]
  /** Sends an interrupt after this text was printed. */
  interruptAt?: string
  /** Sends an interrupt when this signal aborts, or as soon as a listener is added. */
  interrupt?: AbortSignal
  /** The signal that the interrupt sends. Default: SIGINT. */
  signal?: 'SIGINT' | 'SIGHUP'
  /** Receives printed text as soon as it is printed. */
  watch?(text: string): void
  /** The error code with which every write to standard output fails. */
  stdoutFailure?: string
  stderrFailure?: string
}

export type Answer = readonly [question: string, keys: string]

export interface Outcome {
  code: number
  stdout: string
  stderr: string
}

/** Runs the program `main` in this process. */
export async function runProcess(
  main: (process: ProcessLike) => Promise<number>,
  run: Run,
): Promise<Outcome> {
  const { words, stdin = '', env = {}, cwd = '/', clock, columns, answers = [] } = run
  const isTTY = columns !== undefined
  const sent = run.signal ?? 'SIGINT'
  const input = isTTY ? createKeyboard() : Readable.from(stdin === '' ? [] : [Buffer.from(stdin)])
  const listeners = new Set<() => void>()
  const type = answerInTurn(input, answers)
  const sendInterrupt = () => {
    for (const listener of listeners) listener()
  }
  run.interrupt?.addEventListener('abort', sendInterrupt)
  const watch = (text: string) => {
    type(text)
    run.watch?.(text)
    if (run.interruptAt === undefined || !text.includes(run.interruptAt)) return
    sendInterrupt()
  }
  const stdout = createOutput({ isTTY, columns, watch, failure: run.stdoutFailure })
  const stderr = createOutput({ isTTY, columns, watch, failure: run.stderrFailure })
  const code = await main({
    argv: ['node', 'coffer', ...words],
    env,
    stdin: input,
    ...{ stdout, stderr },
    pid: process.pid,
    ppid: process.ppid,
    version: run.version ?? process.version,
    cwd: () => cwd,
    on: (event, listener) => {
      if (event !== sent) return
      listeners.add(listener)
      if (run.interrupt?.aborted) listener()
    },
    off: (event, listener) => {
      if (event === sent) listeners.delete(listener)
    },
    ...(clock === undefined ? {} : { clock }),
    ...(run.fetch === undefined ? {} : { fetch: run.fetch }),
  })
  return { code, stdout: stdout.text, stderr: stderr.text }
}

const createKeyboard = (isTTY = true) =>
  Object.assign(new PassThrough(), { isTTY, setRawMode: () => undefined })

/** For each question, types the keys of its answer after the question is displayed. */
export function answerInTurn(input: Readable, answers: readonly Answer[]): (text: string) => void {
  const left = [...answers]
  let drawn = ''
  return (text) => {
    drawn += withoutStyle(text)
    const [question, keys] = left[0] ?? []
    if (question === undefined || !drawn.includes(question)) return
    left.shift()
    drawn = ''
    // The program reads keys only after the question is displayed.
    setImmediate(() => (input as PassThrough).write(keys))
  }
}

/** Returns printed text without colours and cursor movements. */
export function withoutStyle(text: string): string {
  return text.replace(/\u001b\[[\d;?]*[A-Za-z]/g, '')
}

export interface FakeOutput extends Writable {
  isTTY: boolean
  columns: number | undefined
  /** All text that was written until now. */
  text: string
}

/** `failure` is the error code with which every write fails. `watch` receives all written text. */
export function createOutput({
  isTTY = false,
  columns,
  failure,
  watch,
}: {
  isTTY?: boolean
  columns?: number | undefined
  failure?: string | undefined
  watch?(text: string): void
} = {}): FakeOutput {
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      if (failure !== undefined) return done(Object.assign(new Error('failed'), { code: failure }))
      output.text += String(chunk)
      watch?.(String(chunk))
      done()
    },
  })
  const output: FakeOutput = Object.assign(stream, { isTTY, columns, text: '' })
  return output
}

export interface FakeTerminal extends Terminal {
  stdin: PassThrough & { isTTY: boolean }
  stdout: FakeOutput
  stderr: FakeOutput
}

/**
 * Creates a terminal of `columns` columns, or a pipe if `columns` is missing. The terminal has no colours and prints
 * notices. The terminal asks questions only if `mayPrompt` is true.
 */
export function createTerminal(
  options: { columns?: number; stdout?: OutputStream } & Partial<
    Pick<Terminal, 'colour' | 'quiet' | 'mayPrompt'>
  > = {},
): FakeTerminal {
  const { columns, ...rest } = options
  const isTTY = columns !== undefined
  const size = columns === undefined ? {} : { columns }
  return {
    stdin: createKeyboard(isTTY),
    stdout: createOutput({ isTTY, ...size }),
    stderr: createOutput({ isTTY, ...size }),
    colour: { stdout: false, stderr: false },
    quiet: false,
    mayPrompt: false,
    ...(rest as object),
  }
}
