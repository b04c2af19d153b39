/** Mail past the death of the program: killed between commit and mail, and after the mail was acknowledged. */
import t, { type Test } from 'tap'
import {
  createWorkplace,
  request,
  runCommand,
  startCommand,
  startProcess,
  type Workplace,
} from '../http/process.js'
import { startMailServer } from './server.js'

const ROUNDS = 3

async function start(t: Test, settings: Parameters<typeof startMailServer>[0] = {}) {
  const mail = await startMailServer(settings)
  const place = createWorkplace()
  t.teardown(async () => {
    await mail.close()
    place.remove()
  })
  await run(place, ['init', '--quiet'])
  await run(place, ['config', 'set', 'mail.url', `smtp://localhost:${mail.port}`])
  return { mail, place }
}

async function run(place: Workplace, words: readonly string[]) {
  const outcome = await runCommand(place, words)
  if (outcome.code !== 0) throw new Error(`coffer ${words.join(' ')}: ${outcome.stderr}`)
  return outcome
}

const recipients = (mails: readonly { to: string[] }[]) => mails.flatMap(({ to }) => to).sort()

t.test('a server killed between commit and mail sends it after the restart, once', async (t) => {
  let greeted = () => {}
  let isSilent = true
  const connected = () =>
    new Promise<void>((resolve) => {
      greeted = resolve
    })
  const { mail, place } = await start(t, {
    // While it is silent, every mail is committed and none is handed over.
    greet: () => {
      greeted()
      return isSilent ? new Promise(() => {}) : Promise.resolve()
    },
  })
  const expected: string[] = []
  let key: string | undefined
  for (let round = 0; round < ROUNDS; round++) {
    isSilent = true
    const reached = connected()
    const server = await startProcess(place, round === 0 ? ['--starter-apps'] : [])
    key ??= server.announcement.applications.management?.key
    const emails = Array.from({ length: 5 }, (_, at) => `p${round}-${at}@example.com`)
    const made = await Promise.all(
      emails.map((email) => request(server.announcement, key, 'POST /tenants/self/invitations', { email })),
    )
    t.same(
      made.map(({ status }) => status),
      [201, 201, 201, 201, 201],
    )
    await reached
    server.child.kill('SIGKILL')
    t.equal((await server.ended).signal, 'SIGKILL')
    t.equal(mail.received.length, expected.length, 'none of them was sent')
    isSilent = false
    expected.push(...emails)
    const next = await startProcess(place)
    await mail.waitFor(expected.length)
    next.child.kill('SIGTERM')
    await next.ended
  }
  t.same(recipients(mail.received), expected.sort(), 'each once')
})

t.test('a command killed while it sends leaves the mail to the next', async (t) => {
  let isSilent = true
  let greeted = () => {}
  const reached = new Promise<void>((resolve) => {
    greeted = resolve
  })
  const { mail, place } = await start(t, {
    greet: () => {
      greeted()
      return isSilent ? new Promise(() => {}) : Promise.resolve()
    },
  })
  const { child, ended } = startCommand(place, ['invite', 'create', '--email', 'ada@example.com'])
  await reached
  child.kill('SIGKILL')
  await ended
  isSilent = false
  await run(place, ['invite', 'create', '--email', 'eve@example.com'])
  t.same(recipients(mail.received), ['ada@example.com', 'eve@example.com'])
})

t.test('a server that stops does not wait for a mail server that says nothing', async (t) => {
  const { mail, place } = await start(t, { greet: () => new Promise(() => {}) })
  const server = await startProcess(place, ['--starter-apps'])
  const key = server.announcement.applications.management?.key
  await request(server.announcement, key, 'POST /tenants/self/invitations', { email: 'ada@example.com' })
  while (mail.connections() === 0) await new Promise((resolve) => setImmediate(resolve))
  const asked = performance.now()
  server.child.kill('SIGTERM')
  t.equal((await server.ended).code, 0)
  t.ok(performance.now() - asked < 5_000, 'though a greeting may take ten seconds')
  t.match(await run(place, ['invite', 'outbox']).then(({ stdout }) => JSON.parse(stdout).data[0]), {
    state: 'waiting',
  })
})
