/** Runs the command line in this process, with streams that are strings. */
import { PassThrough, Readable } from 'node:stream'
import type { ProcessLike } from '../../src/cli/desk.js'

export interface Run {
  words: readonly string[]
  stdin?: string
  env?: Record<string, string>
  cwd?: string
  clock?: () => number
}

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
  const stdout = collect()
  const stderr = collect()
  const { words, stdin = '', env = {}, cwd = '/', clock } = run
  const code = await main({
    argv: ['node', 'coffer', ...words],
    env,
    stdin: Readable.from(stdin === '' ? [] : [Buffer.from(stdin)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    pid: process.pid,
    cwd: () => cwd,
    on: () => undefined,
    off: () => undefined,
    ...(clock === undefined ? {} : { clock }),
  })
  return { code, stdout: stdout.text(), stderr: stderr.text() }
}

function collect(): { stream: PassThrough; text(): string } {
  const stream = new PassThrough()
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return { stream, text: () => Buffer.concat(chunks).toString('utf8') }
}
