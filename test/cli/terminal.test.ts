import { PassThrough } from 'node:stream'
import t from 'tap'
import { detectTerminal, write } from '../../src/cli/output/terminal.js'
import { createOutput } from './fake-terminal.js'

type Parts = Parameters<typeof detectTerminal>[0]

function detect({
  env = {},
  flags = {},
  tty = [true, true, true],
}: Partial<Parts> & { tty?: boolean[] } = {}) {
  const [stdin, stdout, stderr] = tty
  return detectTerminal({
    streams: {
      stdin: Object.assign(new PassThrough(), { isTTY: stdin }),
      stdout: createOutput({ isTTY: stdout === true }),
      stderr: createOutput({ isTTY: stderr === true }),
    },
    env,
    flags,
  })
}

t.test('colour follows the flag, then FORCE_COLOR, then NO_COLOR, then what each stream is', async (t) => {
  const both = { stdout: true, stderr: true }
  const none = { stdout: false, stderr: false }
  const tty = [true, false, true]
  const rows: [Partial<Parts>, typeof both][] = [
    [{}, { stdout: false, stderr: true }],
    [{ flags: { color: 'auto' } }, { stdout: false, stderr: true }],
    [{ flags: { color: 'always' }, env: { NO_COLOR: '1' } }, both],
    [{ flags: { color: 'never' }, env: { FORCE_COLOR: '1' } }, none],
    [{ env: { FORCE_COLOR: '1', NO_COLOR: '1' } }, both],
    [{ env: { FORCE_COLOR: '' } }, both],
    [{ env: { FORCE_COLOR: '0' } }, none],
    [{ env: { FORCE_COLOR: 'false' } }, none],
    [{ env: { NO_COLOR: '1' } }, none],
    [{ env: { NO_COLOR: '' } }, { stdout: false, stderr: true }],
    [{ env: { TERM: 'dumb' } }, none],
    [{ env: { TERM: 'xterm' } }, { stdout: false, stderr: true }],
  ]
  for (const [parts, expected] of rows) {
    t.same(detect({ ...parts, tty }).colour, expected, JSON.stringify(parts))
  }
  t.throws(() => detect({ flags: { color: 'sometimes' } }), {
    code: 'usage',
    message: /auto, always or never/,
  })
})

t.test(
  'somebody can be asked only where standard input and error are terminals, unless --no-input',
  async (t) => {
    t.equal(detect().mayPrompt, true)
    t.equal(detect({ tty: [true, false, true] }).mayPrompt, true, 'standard output does not matter')
    t.equal(detect({ tty: [false, true, true] }).mayPrompt, false)
    t.equal(detect({ tty: [true, true, false] }).mayPrompt, false)
    t.equal(detect({ flags: { input: false } }).mayPrompt, false)
    t.equal(detect({ flags: { input: true } }).mayPrompt, true)
  },
)

t.test('quiet is what was asked for', async (t) => {
  t.equal(detect().quiet, false)
  t.equal(detect({ flags: { quiet: true } }).quiet, true)
})

t.test('writing waits for the stream to take the text', async (t) => {
  const taken: (() => void)[] = []
  const slow = createOutput()
  slow._write = (_chunk, _encoding, done) => taken.push(done)
  let isWritten = false
  const writing = write(slow, 'text').then((isRead) => {
    isWritten = isRead
  })
  await Promise.resolve()
  t.equal(isWritten, false)
  taken[0]?.()
  await writing
  t.equal(isWritten, true)
})

t.test('a reader that went away is no error, now or later', async (t) => {
  for (const failure of ['EPIPE', 'EOF']) {
    const output = createOutput({ failure })
    t.equal(await write(output, 'one'), false, failure)
    t.equal(await write(output, 'two'), false, `${failure} again`)
    // The stream's `error` event comes after the callback; without a listener it would end this test.
    await new Promise((resolve) => setImmediate(resolve))
  }
})

t.test('any other failure to write is told, by its code', async (t) => {
  await t.rejects(write(createOutput({ failure: 'ENOSPC' }), 'x'), {
    code: 'storage_failed',
    message: /\(ENOSPC\)/,
  })
})

t.test('listeners do not pile up, and nothing is written for nothing', async (t) => {
  const output = createOutput()
  for (let count = 0; count < 20; count++) await write(output, 'x')
  t.equal(output.listenerCount('error'), 1)
  t.equal(await write(createOutput({ failure: 'ENOSPC' }), ''), true)
})
