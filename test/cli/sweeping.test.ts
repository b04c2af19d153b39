/** The sweeps of a running server: again and again, one at a time, until told to stop. */
import t from 'tap'
import { sweepRegularly } from '../../src/cli/commands/serve/expiry-sweeper.js'
import type { App } from '../../src/vault/app.js'
import { createVaultHome } from './home.js'

const mail = { takeOver: async () => {} } as App['mail']

t.test('sweeps until the signal, and goes on after a failure', async (t) => {
  const stop = new AbortController()
  const reported: unknown[] = []
  let sweeps = 0
  let waits = 0
  const app = {
    mail: { takeOver: () => Promise.reject(new Error('mail')) } as unknown as App['mail'],
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
  t.strictSame(reported, ['mail', 'disk', 'mail', 'mail'])
})

t.test('what one sweep leaves, the next takes without waiting', async (t) => {
  const stop = new AbortController()
  const left = [2000, 2000, 7, 0]
  const app = { mail, sweep: async () => left.shift() ?? 0 }
  await sweepRegularly(
    app,
    stop.signal,
    () => t.fail('no failure'),
    async () => {
      t.strictSame(left, [])
      stop.abort()
    },
  )
})

t.test('waiting for the next sweep ends with the signal', async (t) => {
  const stop = new AbortController()
  let sweeps = 0
  const app = {
    mail,
    sweep: async () => {
      sweeps++
      setImmediate(() => stop.abort())
      return 0
    },
  }
  await sweepRegularly(app, stop.signal, () => t.fail('no failure'))
  t.equal(sweeps, 1)
})

t.test('a command takes what expired off the disk, also one that reads', async (t) => {
  const home = await createVaultHome(t)
  let now = Date.now()
  const clock = () => now
  const create = (id: string, expires_at?: string) =>
    home.json(['token', 'create'], {
      stdin: JSON.stringify({ id, type: 'token', data: 'x', expires_at }),
      clock,
    })
  await create('short', new Date(now + 60_000).toISOString())
  now += 61_000
  const messages = async () => {
    const logs = await home.json(['log', 'list', '--entity-id', 'short'], { clock })
    return logs.data.map(({ message }: { message: string }) => message)
  }
  await home.json(['token', 'list'], { clock })
  t.same(await messages(), ['Token expired', 'Token created'])
})
