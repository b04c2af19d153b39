/** Streams that remember, for tests of what is printed; they know nothing of what is printed on them. */
import { PassThrough, Writable } from 'node:stream'
import type { OutputStream, Terminal } from '../../src/cli/output/terminal.js'

export interface FakeOutput extends Writable {
  isTTY: boolean
  columns: number | undefined
  /** Everything written so far. */
  text: string
}

/** `failure`: the code that every write fails with. `watch`: told all that is written. */
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

/** A terminal of `columns`, or without them a pipe; no colours, not quiet, and nobody to ask unless `mayPrompt`. */
export function createTerminal(
  options: { columns?: number; stdout?: OutputStream } & Partial<
    Pick<Terminal, 'colour' | 'quiet' | 'mayPrompt'>
  > = {},
): FakeTerminal {
  const { columns, ...rest } = options
  const isTTY = columns !== undefined
  const size = columns === undefined ? {} : { columns }
  return {
    stdin: Object.assign(new PassThrough(), { isTTY, setRawMode: () => undefined }),
    stdout: createOutput({ isTTY, ...size }),
    stderr: createOutput({ isTTY, ...size }),
    colour: { stdout: false, stderr: false },
    quiet: false,
    mayPrompt: false,
    ...(rest as object),
  }
}
