import t, { type Test } from 'tap'
import type { InvitationView } from '../../src/domain/invitation/invitation.js'
import type { List } from '../../src/framework/page.js'
import { perform } from '../../src/framework/perform.js'
import type { Delivery, Message } from '../../src/framework/ports/mail.js'
import { delayOf } from '../../src/mail/delivery-queue.js'
import { MailQueue } from '../../src/mail/mail-queue.js'
import { registry } from '../../src/operations/all.js'
import type { OutboxLetter, OutboxMail } from '../../src/operations/invite/outbox.js'
import { openTestVault, setSetting } from '../operations/vault.js'

const DOWN: Delivery = { outcome: 'unreachable', reason: 'it does not answer.' }

/** A vault whose mail goes to a server that answers as the test says, and timers that the test lets run out. */
async function open(t: Test) {
  const vault = await openTestVault()
  await setSetting(vault.app, 'mail.url', 'smtp://mail.example.com')
  const sent: Message[] = []
  const timers = new Map<number, () => void>()
  const notices: string[] = []
  const faults: unknown[] = []
  const state = {
    answer: (_: Message): Delivery | Promise<Delivery> => ({ outcome: 'sent' }),
    opened: 0,
    now: 0,
  }
  const createQueue = () =>
    new MailQueue(vault.app.store, {
      openMailer: async () => {
        state.opened++
        return {
          server: 'mail.example.com:587',
          send: async (message) => {
            const delivery = await state.answer(message)
            if (delivery.outcome === 'sent') sent.push(message)
            return delivery
          },
          close: () => {},
        }
      },
      later: (ms, work) => {
        const at = vault.clock.now + ms
        timers.set(at, work)
        return () => timers.delete(at)
      },
    })
  const queue = { current: createQueue() }
  const host = Object.assign(Object.create(vault.app), {
    mail: { enqueue: (n: number) => queue.current.enqueue(n) },
  })
  t.teardown(async () => {
    await queue.current.close()
    await vault.app.close()
  })
  const ask = async (name: string, input: Record<string, unknown>) =>
    (await perform(host, await vault.app.owner({ reveal: false }), registry.find(name)!, input, 'trace'))
      .result
  const start = () => {
    queue.current.publicUrl = 'https://vault.example.com'
    return queue.current.resume(listener)
  }
  const listener = {
    notice: (text: string) => notices.push(text),
    fault: (error: unknown) => faults.push(error),
  }
  return {
    ...vault,
    state,
    sent,
    notices,
    faults,
    timers,
    queue: () => queue.current,
    invite: (email: string) => ask('invite create', { email }) as Promise<InvitationView>,
    ask,
    mailOf: (id: string) => ask('invite outbox', { id }) as Promise<OutboxLetter>,
    mails: async () => ((await ask('invite outbox', { size: 100 })) as List<OutboxMail>).data,
    resume: start,
    /** The process dies and starts again: what was in memory is gone. */
    restart: async () => {
      timers.clear()
      queue.current = createQueue()
      await start()
    },
    /** Lets the next timer run out. */
    tick: async () => {
      const at = Math.min(...timers.keys())
      const work = timers.get(at)!
      timers.delete(at)
      const waitedMs = at - vault.clock.now
      vault.clock.now = at
      work()
      await queue.current.settle()
      return waitedMs
    },
    /** Of a store that others may serve too, the claim on a mail outlives whoever was sending it. */
    outlast() {
      return vault.app.store.isShared ? this.tick() : undefined
    },
  }
}

t.test('a mail is sent after the commit, with the link, and its secret is forgotten', async (t) => {
  const vault = await open(t)
  vault.state.answer = async ({ text }) => {
    t.match(text, /https:\/\/vault\.example\.com\/invitations\/accept\?token=[\w-]{43}\s/)
    t.equal((await vault.mails()).length, 1, 'it is in the vault while it is sent')
    return { outcome: 'sent' }
  }
  await vault.resume()
  const { id } = await vault.invite('ada@example.com')
  await vault.queue().settle()
  const mail = await vault.mailOf(id)
  t.match(mail, { state: 'sent', attempts: 1, server: 'mail.example.com:587', sent_at: String })
  t.equal(mail.link, undefined)
  const [message] = vault.sent
  t.match(message, {
    id: `<${mail.id}@vault.example.com>`,
    from: { name: 'Coffer', address: 'no-reply@vault.example.com' },
    to: 'ada@example.com',
    subject: 'You are invited to a Coffer tenant',
    date: vault.clock.now,
  })
  t.same(vault.timers.size, 0)
})

t.test('a hundred invitations at once are mailed once each', async (t) => {
  const vault = await open(t)
  await vault.resume()
  const addresses = Array.from({ length: 100 }, (_, at) => `p${at}@example.com`)
  await Promise.all(addresses.map((email) => vault.invite(email)))
  await vault.queue().settle()
  t.same(vault.sent.map(({ to }) => to).sort(), addresses.sort())
  t.equal(new Set(vault.sent.map(({ id }) => id)).size, 100)
  t.ok((await vault.mails()).every(({ state }) => state === 'sent'))
})

t.test('a server that is down is tried again after 30 s, 60 s, 120 s, for all mail at once', async (t) => {
  const vault = await open(t)
  vault.state.answer = () => DOWN
  await vault.resume()
  const ids = [(await vault.invite('a@x.org')).id, (await vault.invite('b@x.org')).id]
  await vault.queue().settle()
  const opened = vault.state.opened
  t.same([await vault.tick(), await vault.tick()], [30_000, 60_000])
  t.equal(vault.state.opened - opened, 2, 'one connection a try')
  t.match(await vault.mailOf(ids[0]!), { state: 'waiting', attempts: 3, failure: 'it does not answer.' })
  t.match(vault.notices.at(-1), /2 mails could not be handed to mail\.example\.com:587: it does not answer\./)
  vault.state.answer = () => ({ outcome: 'sent' })
  t.equal(await vault.tick(), 120_000)
  t.same(
    vault.sent.map(({ to }) => to),
    ['a@x.org', 'b@x.org'],
    'the oldest first',
  )
  t.equal((await vault.mailOf(ids[1]!)).failure, undefined)
  t.equal(vault.timers.size, 0)
})

t.test('one address that must wait holds up no other', async (t) => {
  const vault = await open(t)
  vault.state.answer = ({ to }) =>
    to === 'slow@x.org' ? { outcome: 'postponed', reason: 'not now (450).' } : { outcome: 'sent' }
  await vault.resume()
  await vault.invite('slow@x.org')
  await vault.invite('fast@x.org')
  await vault.queue().settle()
  t.same(
    vault.sent.map(({ to }) => to),
    ['fast@x.org'],
  )
  t.equal(vault.timers.size, 1)
})

t.test('what a server refuses is not tried again; sending again writes a new mail', async (t) => {
  const vault = await open(t)
  vault.state.answer = () => ({ outcome: 'refused', reason: 'it refuses this mail (550).' })
  await vault.resume()
  const { id } = await vault.invite('ada@example.com')
  await vault.queue().settle()
  t.match(await vault.mailOf(id), { state: 'refused', failure: 'it refuses this mail (550).', link: String })
  t.equal(vault.timers.size, 0)
  t.match(await vault.ask('invite get', { id }), { status: 'PENDING' }, 'the invitation stays')
  vault.state.answer = () => ({ outcome: 'sent' })
  await vault.ask('invite resend', { id })
  await vault.queue().settle()
  t.same(
    (await vault.mails()).map(({ state, link }) => [state, link]),
    [
      ['sent', undefined],
      ['refused', undefined],
    ],
  )
})

t.test('a mail whose link has ended is not sent', async (t) => {
  const vault = await open(t)
  vault.state.answer = () => DOWN
  await vault.resume()
  const replaced = await vault.invite('replaced@x.org')
  const withdrawn = await vault.invite('withdrawn@x.org')
  await vault.queue().settle()
  await vault.ask('invite resend', { id: replaced.id })
  await vault.ask('invite delete', { id: withdrawn.id })
  await vault.queue().settle()
  vault.state.answer = () => ({ outcome: 'sent' })
  while (vault.timers.size > 0) await vault.tick()
  t.same(
    vault.sent.map(({ to }) => to),
    ['replaced@x.org'],
  )
  t.same(
    (await vault.mails()).map(({ state }) => state),
    ['sent', 'dropped'],
  )
})

t.test('what becomes of a mail under way is noted, though its link ended meanwhile', async (t) => {
  for (const [delivery, state] of [
    [{ outcome: 'refused', reason: 'it refuses this mail (550).' }, 'dropped'],
    [{ outcome: 'sent' }, 'sent'],
  ] as const) {
    const vault = await open(t)
    await vault.resume()
    let underWay = () => {}
    const started = new Promise<void>((resolve) => {
      underWay = resolve
    })
    let answer = (_: Delivery) => {}
    vault.state.answer = () => {
      underWay()
      return new Promise<Delivery>((resolve) => {
        answer = resolve
      })
    }
    const { id } = await vault.invite('ada@example.com')
    await started
    await vault.ask('invite resend', { id })
    vault.state.answer = () => ({ outcome: 'sent' })
    answer(delivery)
    await vault.queue().settle()
    const [second, first] = await vault.mails()
    t.equal(first?.state, state)
    t.equal(first?.link, undefined)
    t.equal(second?.state, 'sent')
    t.equal(vault.timers.size, 0, 'nothing is left to be tried')
  }
})

t.test('trying ends when the link would have expired before the next try', async (t) => {
  const vault = await open(t)
  vault.state.answer = () => DOWN
  await vault.resume()
  const { id } = await vault.invite('ada@example.com')
  await vault.queue().settle()
  let waits = 0
  for (; vault.timers.size > 0 && waits < 200; waits++) await vault.tick()
  const mail: OutboxLetter = await vault.mailOf(id)
  t.equal(mail.state, 'refused')
  t.ok(vault.clock.now < Date.parse(mail.link_expires_at))
  t.ok(waits > 70 && waits < 90, `${waits} tries in 72 hours`)
})

t.test('a death between commit and mail loses none; what was sent is not sent again', async (t) => {
  const vault = await open(t)
  let answer = (_: Delivery) => {}
  vault.state.answer = ({ to }) =>
    to === 'under-way@x.org'
      ? new Promise<Delivery>((resolve) => {
          answer = resolve
        })
      : { outcome: 'sent' }
  await vault.resume()
  await vault.invite('before@x.org')
  await vault.queue().settle()
  await vault.invite('under-way@x.org')
  await vault.invite('behind@x.org')
  // Nobody ever answers the dead process, which is what its server sees of a death.
  t.same(
    vault.sent.map(({ to }) => to),
    ['before@x.org'],
  )
  vault.state.answer = () => ({ outcome: 'sent' })
  await vault.restart()
  await vault.queue().settle()
  await vault.outlast()
  t.same(vault.sent.map(({ to }) => to).sort(), ['before@x.org', 'behind@x.org', 'under-way@x.org'])
  await vault.restart()
  await vault.queue().settle()
  t.equal(vault.sent.length, 3)
  answer(DOWN)
})

t.test(
  'mail of every tenant is carried after a start; a tenant that went takes its mail along',
  async (t) => {
    const vault = await open(t)
    vault.state.answer = () => DOWN
    const other = await vault.createTenant('other')
    await vault.app.store.read(async () => {})
    const inOther = await vault.app.owner({ reveal: false, tenant: other })
    const host = Object.assign(Object.create(vault.app), { mail: { enqueue: () => {} } })
    await perform(host, inOther, registry.find('invite create')!, { email: 'ada@x.org' }, 'trace')
    vault.state.answer = () => ({ outcome: 'sent' })
    await vault.restart()
    await vault.queue().settle()
    t.same(
      vault.sent.map(({ to }) => to),
      ['ada@x.org'],
    )
    await perform(host, inOther, registry.find('invite create')!, { email: 'eve@x.org' }, 'trace')
    await perform(host, inOther, registry.find('tenant delete')!, {}, 'trace')
    await vault.restart()
    vault.queue().enqueue(2)
    await vault.queue().settle()
    t.equal(vault.sent.length, 1)
    t.same(vault.faults, [])
  },
)

t.test('mail that waits stays in the outbox when the mail server is unset', async (t) => {
  const vault = await open(t)
  vault.state.answer = () => DOWN
  await vault.resume()
  const { id } = await vault.invite('ada@example.com')
  await vault.queue().settle()
  await setSetting(vault.app, 'mail.url', undefined)
  await vault.tick()
  t.match(await vault.mailOf(id), { state: 'outbox', link: String })
  t.equal(vault.timers.size, 0)
})

t.test(
  'without anybody who stays, a mail is tried once, and a fault of ours is thrown to who waits',
  async (t) => {
    const vault = await open(t)
    vault.state.answer = () => DOWN
    await vault.invite('ada@example.com')
    await vault.queue().settle()
    t.equal(vault.timers.size, 0)
    vault.state.answer = () => {
      throw new TypeError('a fault')
    }
    vault.clock.now += 30_000
    vault.queue().enqueue(1)
    await t.rejects(vault.queue().settle(), { message: 'a fault' })
    await vault.queue().settle()
    t.equal((await vault.mails())[0]?.state, 'waiting', 'the mail is there still')
  },
)

t.test('a fault of ours is told, and the mail tried again', async (t) => {
  const vault = await open(t)
  vault.state.answer = () => {
    throw new TypeError('a fault')
  }
  await vault.resume()
  await vault.invite('ada@example.com')
  await vault.queue().settle()
  t.match(vault.faults, [{ message: 'a fault' }])
  vault.state.answer = () => ({ outcome: 'sent' })
  t.equal(await vault.tick(), 30_000)
  await vault.outlast()
  t.equal(vault.sent.length, 1)
})

t.test('a post that was closed carries no more', async (t) => {
  const vault = await open(t)
  await vault.resume()
  await vault.queue().close()
  await vault.invite('ada@example.com')
  vault.queue().enqueue(1)
  await vault.queue().settle()
  t.same(vault.sent, [])
  t.equal((await vault.mails())[0]?.state, 'waiting')
})

t.test('a delivery that failed waits 30 s, twice as long each time, an hour at most', async (t) => {
  t.same(
    [1, 2, 3, 7, 8, 9, 5000].map(delayOf),
    [30_000, 60_000, 120_000, 1_920_000, 3_600_000, 3_600_000, 3_600_000],
  )
})
