/** Runs the command line in this process, with streams that are strings, or a terminal with a person at it. */
import { PassThrough, Readable } from 'node:stream'
import type { ProcessLike } from '../../src/cli/context.js'
import type { Fetch } from '../../src/client/http-client.js'
import { createOutput } from './fake-terminal.js'

export interface Run {
  words: readonly string[]
  stdin?: string
  env?: Record<string, string>
  cwd?: string
  clock?: () => number
  /** Of Node. */
  version?: string
  /** The server that `--url` reaches; left out, sockets. */
  fetch?: Fetch
  /** The width of the terminal that all three streams are; left out, they are pipes. */
  columns?: number
  /** What the person at that terminal types once each question is drawn, in this order. */
  answers?: readonly Answer[]
  /** Sends an interrupt once this text is printed. */
  interruptAt?: string
  /** Sends an interrupt once this is aborted, or as soon as somebody listens for it. */
  interrupt?: AbortSignal
  /** Told all that is printed, as it comes. */
  watch?(text: string): void
  /** The code that every write to standard output fails with. */
  stdoutFailure?: string
}

export type Answer = readonly [question: string, keys: string]

export interface Outcome {
  code: number
  stdout: string
  stderr: string
}

/** `main` is passed in, so that a test chooses what it runs. */
export async function runProcess(
  main: (process: ProcessLike) => Promise<number>,
  run: Run,
): Promise<Outcome> {
  const { words, stdin = '', env = {}, cwd = '/', clock, columns, answers = [] } = run
  const isTTY = columns !== undefined
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
  const stderr = createOutput({ isTTY, columns, watch })
  const code = await main({
    argv: ['node', 'coffer', ...words],
    env,
    stdin: input,
    ...{ stdout, stderr },
    pid: process.pid,
    version: run.version ?? process.version,
    cwd: () => cwd,
    on: (event, listener) => {
      if (event !== 'SIGINT') return
      listeners.add(listener)
      if (run.interrupt?.aborted) listener()
    },
    off: (_, listener) => listeners.delete(listener),
    ...(clock === undefined ? {} : { clock }),
    ...(run.fetch === undefined ? {} : { fetch: run.fetch }),
  })
  return { code, stdout: stdout.text, stderr: stderr.text }
}

function createKeyboard(): PassThrough {
  return Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined })
}

/** Types what stands with a question when it is drawn, and goes on to the next. */
export function answerInTurn(input: Readable, answers: readonly Answer[]): (text: string) => void {
  const left = [...answers]
  let drawn = ''
  return (text) => {
    drawn += withoutStyle(text)
    const [question, keys] = left[0] ?? []
    if (question === undefined || !drawn.includes(question)) return
    left.shift()
    drawn = ''
    // Once the question is drawn it listens.
    setImmediate(() => (input as PassThrough).write(keys))
  }
}

/** What is printed, without colours and the movements of the cursor. */
export function withoutStyle(text: string): string {
  return text.replace(/\u001b\[[\d;?]*[A-Za-z]/g, '')
}
