import t from 'tap'
import { measureWidth } from '../../src/cli/output/display.js'
import { createProgress } from '../../src/cli/output/progress.js'
import { createTerminal, type FakeTerminal } from './fake-terminal.js'

const ERASE = '\r\u001b[2K'

function start(terminal: FakeTerminal, options: { label: string; total: number }) {
  const clock = { nowMs: 1_000_000 }
  return { clock, progress: createProgress(terminal, options, () => clock.nowMs) }
}

t.test('a bar shows share, count, rate and what is left', async (t) => {
  const terminal = createTerminal({ columns: 100 })
  const { clock, progress } = start(terminal, { label: 'Importing\u001b', total: 2000 })
  await progress.show(1)
  clock.nowMs += 10_000
  await progress.show(1000)
  clock.nowMs += 10_000
  await progress.show(2000)
  await progress.finish()
  t.same(terminal.stderr.text.split(ERASE), [
    '',
    'Importing\\u{1b}  ░░░░░░░░░░░░░░░░░░░░  0 %  1/2,000',
    'Importing\\u{1b}  ██████████░░░░░░░░░░  50 %  1,000/2,000  100/s  10 s left',
    'Importing\\u{1b}  ████████████████████  100 %  2,000/2,000  100/s',
    'Importing\\u{1b}: 2,000 in 20 s (100/s)\n',
  ])
  t.equal(terminal.stdout.text, '')
})

t.test('it draws at most ten times a second', async (t) => {
  const terminal = createTerminal({ columns: 100 })
  const { clock, progress } = start(terminal, { label: 'x', total: 1000 })
  for (let count = 0; count < 1000; count++) {
    await progress.show(count + 1)
    clock.nowMs += 1
  }
  t.equal(terminal.stderr.text.split(ERASE).length - 1, 10)
})

t.test('the line never wraps', async (t) => {
  for (const columns of [1, 10, 40]) {
    const terminal = createTerminal({ columns })
    const { clock, progress } = start(terminal, { label: 'A rather long label 王小明', total: 7 })
    clock.nowMs += 1000
    await progress.show(1)
    const [, line = ''] = terminal.stderr.text.split(ERASE)
    t.equal(measureWidth(line), Math.max(1, columns - 1), `${columns} columns`)
  }
})

t.test('long waits are told in minutes and hours', async (t) => {
  const leftAfterOne = async (elapsedMs: number, total: number) => {
    const terminal = createTerminal({ columns: 100 })
    const { clock, progress } = start(terminal, { label: 'x', total })
    clock.nowMs += elapsedMs
    await progress.show(1)
    return terminal.stderr.text.split('  ').at(-1)
  }
  t.equal(await leftAfterOne(1000, 3), '2.0 s left')
  t.equal(await leftAfterOne(1000, 60), '59 s left')
  t.equal(await leftAfterOne(1000, 126), '2 min 5 s left')
  t.equal(await leftAfterOne(60_000, 151), '2 h 30 min left')
})

t.test('nothing is drawn for nobody: not in a pipe, not when quiet', async (t) => {
  for (const terminal of [createTerminal(), createTerminal({ columns: 100, quiet: true })]) {
    const { progress } = start(terminal, { label: 'x', total: 2 })
    await progress.show(1)
    await progress.finish()
    t.equal(terminal.stderr.text, '')
  }
})
