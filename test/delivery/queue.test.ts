import t, { type Test } from 'tap'
import { MailChannel } from '../../src/delivery/mail-channel.js'
import { DeliveryQueue } from '../../src/delivery/queue.js'
import type { Delivery, Message } from '../../src/delivery/smtp.js'
import { perform } from '../../src/framework/perform.js'
import type { Waiting } from '../../src/framework/ports/deliveries.js'
import { registry } from '../../src/operations/all.js'
import type { OutboxLetter, OutboxMail } from '../../src/operations/invite/noun.js'
import { readAll } from '../../src/storage/store.js'
import { openTestVault, setSetting } from '../support/test-vault.js'

const DOWN: Delivery = { outcome: 'unreachable', reason: 'it does not answer.' }

function defer<T>() {
  let resolve = (_: T): void => {}
  return { promise: new Promise<T>((done) => (resolve = done)), resolve: (value: T) => resolve(value) }
}

/**
 * Opens a vault whose mail goes to a fake mail server. For each mail, the server calls `answer` and sends the
 * result.
 */
async function open(t: Test, answer = (_: Message): Delivery | Promise<Delivery> => ({ outcome: 'sent' })) {
  const vault = await openTestVault()
  await setSetting(vault.app, 'mail.url', 'smtp://mail.example.com')
  const messages: Message[] = []
  const notices: string[] = []
  const faults: unknown[] = []
  const state = { answer, opened: 0 }
  const { store } = vault.app
  const openMailer = async () => {
    state.opened++
    return {
      server: 'mail.example.com:587',
      send: async (message: Message) => {
        const delivery = await state.answer(message)
        if (delivery.outcome === 'sent') messages.push(message)
        return delivery
      },
      close: () => {},
    }
  }
  const createQueue = () => new DeliveryQueue(store, (queue) => [new MailChannel(store, queue, openMailer)])
  let queue = createQueue()
  const host = Object.assign(Object.create(vault.app), {
    deliveries: { enqueue: (waiting: readonly Waiting[]) => queue.enqueue(waiting) },
  })
  t.teardown(async () => {
    await queue.close()
    await vault.app.close()
  })
  const ask = async (name: string, input: Record<string, unknown>) => {
    const owner = await vault.app.owner({ reveal: false })
    // biome-ignore lint/suspicious/noExplicitAny: any result of an operation.
    return (await perform(host, owner, registry.find(name)!, input, 'trace')).result as any
  }
  const resume = () => {
    queue.listenAt('https://vault.example.com')
    return queue.resume({
      notice: (text: string) => notices.push(text),
      fault: (error: unknown) => faults.push(error),
    })
  }
  const waits = () =>
    vault.app.store.read(async (reader) => {
      const waiting = await readAll(reader, 'mail', 1, { field: 'state', value: 'waiting' })
      return waiting.map(({ due_at }) => Date.parse(due_at!) - vault.clock.now)
    })
  return {
    ...vault,
    state,
    messages,
    get sent() {
      return messages.map(({ to }) => to)
    },
    notices,
    faults,
    ask,
    resume,
    /** Returns, for each waiting mail of the first tenant, the time in ms until the mail is due. */
    waits,
    queue: () => queue,
    /** Creates an invitation. The promise resolves after the first attempt to send the mail of the invitation. */
    invite: async (email: string) => {
      const { id } = await ask('invite create', { email })
      await queue.settle()
      return id as string
    },
    mailOf: (id: string): Promise<OutboxLetter> => ask('invite outbox', { id }),
    mails: async (): Promise<OutboxMail[]> => (await ask('invite outbox', { size: 100 })).data,
    /** Simulates a restart of the process: the new queue has only what is stored. */
    restart: async () => {
      queue = createQueue()
      await resume()
      await queue.settle()
    },
    /** Advances the clock until the next mail is due, and attempts to send that mail. */
    tick: async () => {
      const waitedMs = Math.min(...(await waits()))
      vault.clock.now += waitedMs
      await queue.resume()
      await queue.settle()
      return waitedMs
    },
    /**
     * In a shared store, this function lets the lease of a mail expire. The lease exists even after the process that
     * was sending the mail has ended.
     */
    outlast() {
      return vault.app.store.isShared ? this.tick() : undefined
    },
  }
}

t.test(
  'a mail is sent with its link after the commit, and then the secret of the link is removed',
  async (t) => {
    const vault = await open(t)
    vault.state.answer = async ({ text }) => {
      t.match(text, /https:\/\/vault\.example\.com\/invitations\/accept\?token=[\w-]{43}\s/)
      t.equal((await vault.mails()).length, 1, 'the mail is in the vault while it is being sent')
      return { outcome: 'sent' }
    }
    await vault.resume()
    const id = await vault.invite('ada@example.com')
    const mail = await vault.mailOf(id)
    t.match(mail, { state: 'sent', attempts: 1, server: 'mail.example.com:587', sent_at: String })
    t.equal(mail.link, undefined)
    t.match(vault.messages[0], {
      id: `<${mail.id}@vault.example.com>`,
      from: { name: 'Coffer', address: 'no-reply@vault.example.com' },
      to: 'ada@example.com',
      subject: 'You are invited to a Coffer tenant',
      date: vault.clock.now,
    })
    t.same(await vault.waits(), [])
  },
)

t.test(
  'if the mail server is unreachable, the queue retries after 30 s, 60 s and 120 s, with one attempt for all mail',
  async (t) => {
    const vault = await open(t, () => DOWN)
    await vault.resume()
    const ids = [await vault.invite('a@x.org'), await vault.invite('b@x.org')]
    const { opened } = vault.state
    t.same([await vault.tick(), await vault.tick()], [30_000, 60_000])
    t.equal(vault.state.opened - opened, 2, 'each attempt opens only one connection')
    t.match(await vault.mailOf(ids[0]!), { state: 'waiting', attempts: 3, failure: 'it does not answer.' })
    t.match(
      vault.notices.at(-1),
      /2 mails could not be handed to mail\.example\.com:587: it does not answer\./,
    )
    vault.state.answer = () => ({ outcome: 'sent' })
    t.equal(await vault.tick(), 120_000)
    t.same(vault.sent, ['a@x.org', 'b@x.org'], 'the oldest mail is sent first')
    t.equal((await vault.mailOf(ids[1]!)).failure, undefined)
  },
)

t.test('mail to an address that is temporarily refused does not delay mail to other addresses', async (t) => {
  const vault = await open(t, ({ to }) =>
    to === 'slow@x.org' ? { outcome: 'postponed', reason: 'not now (450).' } : { outcome: 'sent' },
  )
  await vault.resume()
  for (const email of ['slow@x.org', 'fast@x.org']) await vault.invite(email)
  t.same(vault.sent, ['fast@x.org'])
  t.equal((await vault.waits()).length, 1)
})

t.test(
  'a refused mail is not tried again, and sending the invitation again creates a new mail',
  async (t) => {
    const vault = await open(t, () => ({ outcome: 'refused', reason: 'it refuses this mail (550).' }))
    await vault.resume()
    const id = await vault.invite('ada@example.com')
    t.match(await vault.mailOf(id), {
      state: 'refused',
      failure: 'it refuses this mail (550).',
      link: String,
    })
    t.match(await vault.ask('invite get', { id }), { status: 'PENDING' }, 'the invitation is kept')
    vault.state.answer = () => ({ outcome: 'sent' })
    await vault.ask('invite resend', { id })
    await vault.queue().settle()
    t.match(await vault.mails(), [{ state: 'sent' }, { state: 'refused' }])
    t.ok((await vault.mails()).every(({ link }) => link === undefined))
  },
)

t.test('a mail with an invalid link is not sent', async (t) => {
  const vault = await open(t, () => DOWN)
  await vault.resume()
  const replaced = await vault.invite('replaced@x.org')
  const withdrawn = await vault.invite('withdrawn@x.org')
  await vault.ask('invite resend', { id: replaced })
  await vault.ask('invite delete', { id: withdrawn })
  await vault.queue().settle()
  vault.state.answer = () => ({ outcome: 'sent' })
  while ((await vault.waits()).length > 0) await vault.tick()
  t.same(vault.sent, ['replaced@x.org'])
  t.match(await vault.mails(), [{ state: 'sent' }, { state: 'dropped' }])
})

t.test(
  'the result of sending a mail is stored, even if the link of the mail has become invalid meanwhile',
  async (t) => {
    for (const [delivery, state] of [
      [{ outcome: 'refused', reason: 'it refuses this mail (550).' }, 'dropped'],
      [{ outcome: 'sent' }, 'sent'],
    ] as const) {
      const underWay = defer<void>()
      const answer = defer<Delivery>()
      const vault = await open(t, () => {
        underWay.resolve()
        return answer.promise
      })
      await vault.resume()
      const { id } = await vault.ask('invite create', { email: 'ada@example.com' })
      await underWay.promise
      await vault.ask('invite resend', { id })
      vault.state.answer = () => ({ outcome: 'sent' })
      answer.resolve(delivery)
      await vault.queue().settle()
      const mails = await vault.mails()
      t.match(mails, [{ state: 'sent' }, { state }])
      t.equal(mails[1]?.link, undefined)
    }
  },
)

t.test(
  'the queue stops its attempts to send a mail if the link of the mail would expire before the next attempt',
  async (t) => {
    const vault = await open(t, () => DOWN)
    await vault.resume()
    const id = await vault.invite('ada@example.com')
    let tries = 0
    for (; (await vault.waits()).length > 0 && tries < 200; tries++) await vault.tick()
    const mail = await vault.mailOf(id)
    t.equal(mail.state, 'refused')
    t.ok(vault.clock.now < Date.parse(mail.link_expires_at!))
    t.ok(tries > 70 && tries < 90, `there were ${tries} attempts in 72 hours`)
  },
)

t.test(
  'after a start, mail of every tenant is delivered, and deleting a tenant deletes its mail',
  async (t) => {
    const vault = await open(t)
    const other = await vault.app.owner({ reveal: false, tenant: await vault.createTenant('other') })
    const host = Object.assign(Object.create(vault.app), { deliveries: { enqueue: () => {} } })
    const ask = (name: string, input = {}) => perform(host, other, registry.find(name)!, input, 'trace')
    await ask('invite create', { email: 'ada@x.org' })
    await vault.restart()
    t.same(vault.sent, ['ada@x.org'])
    await ask('invite create', { email: 'eve@x.org' })
    await ask('tenant delete')
    await vault.restart()
    vault.queue().enqueue([{ kind: 'mail', tenant: 2, lane: '', id: 'gone' }])
    await vault.queue().settle()
    t.same([vault.sent.length, vault.faults], [1, []])
  },
)

t.test('waiting mail stays in the outbox when the setting of the mail server is removed', async (t) => {
  const vault = await open(t, () => DOWN)
  await vault.resume()
  const id = await vault.invite('ada@example.com')
  await setSetting(vault.app, 'mail.url', undefined)
  await vault.tick()
  t.match(await vault.mailOf(id), { state: 'outbox', link: String })
})

t.test(
  'after an internal error in the mail queue a command fails, and a server reports the error and tries again',
  async (t) => {
    const fail = () => {
      throw new TypeError('a fault')
    }
    const vault = await open(t, fail)
    await t.rejects(vault.invite('ada@example.com'), { message: 'a fault' })
    await vault.queue().settle()
    t.equal((await vault.mails())[0]?.state, 'waiting', 'the mail is still stored')
    await vault.resume()
    await vault.outlast()
    await vault.queue().settle()
    t.match(vault.faults, [{ message: 'a fault' }])
    vault.state.answer = () => ({ outcome: 'sent' })
    await vault.tick()
    t.equal(vault.sent.length, 1)
  },
)

t.test('a closed queue delivers no mail', async (t) => {
  const vault = await open(t)
  await vault.resume()
  await vault.queue().close()
  await vault.invite('ada@example.com')
  await vault.queue().resume()
  await vault.queue().settle()
  t.same(vault.sent, [])
  t.equal((await vault.mails())[0]?.state, 'waiting')
})
