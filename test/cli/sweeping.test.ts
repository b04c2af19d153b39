/** The sweeps of a running server: again and again, one at a time, until told to stop. */
import t from 'tap'
import { sweepRegularly } from '../../src/cli/sweeping.js'

t.test('sweeps until the signal, and goes on after a failure', async (t) => {
  const stop = new AbortController()
  const reported: unknown[] = []
  let sweeps = 0
  let waits = 0
  const app = {
    sweep: async () => {
      if (++sweeps === 2) throw new Error('disk')
      return 0
    },
  }
  const wait = async () => {
    if (++waits === 3) stop.abort()
  }
  await sweepRegularly(app, stop.signal, (error) => reported.push((error as Error).message), wait)
  t.equal(sweeps, 3)
  t.strictSame(reported, ['disk'])
})

t.test('waiting for the next sweep ends with the signal', async (t) => {
  const stop = new AbortController()
  let sweeps = 0
  const app = {
    sweep: async () => {
      setImmediate(() => stop.abort())
      return ++sweeps
    },
  }
  await sweepRegularly(app, stop.signal, () => t.fail('no failure'))
  t.equal(sweeps, 1)
})
