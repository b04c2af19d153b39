import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { type Message, openSmtp } from '../../src/delivery/smtp.js'
import { CERTIFICATE } from '../http/certificate.js'
import { decodeBody, headerOf, type MailServerSettings, startMailServer } from './server.js'

const USER = { name: 'coffer', password: 'S3cret-pass' }
const MESSAGE: Message = {
  id: '<1@vault.example.com>',
  from: { name: 'Coffer', address: 'no-reply@vault.example.com' },
  to: 'ada@example.com',
  subject: 'You are invited',
  text: 'Hello\n.\nhttps://vault.example.com/invitations/accept?token=abc=def\n',
  html: '<p>Hello</p>',
  date: Date.parse('2030-01-15T12:00:00Z'),
}

const HEADERS = {
  From: 'Coffer <no-reply@vault.example.com>',
  Date: 'Tue, 15 Jan 2030 12:00:00 +0000',
  'Auto-Submitted': 'auto-generated',
}

async function start(t: Test, settings: MailServerSettings) {
  const server = await startMailServer(settings)
  t.teardown(() => server.close())
  return server
}

function open(t: Test, url: string, ca: string | undefined = CERTIFICATE) {
  const mailer = openSmtp({ url, ca })
  t.teardown(() => mailer.close())
  return mailer
}

const urlOf = ({ port }: { port: number }, scheme = 'smtp', password = USER.password) =>
  `${scheme}://${USER.name}:${password}@localhost:${port}`

for (const [name, scheme, secure] of [
  ['STARTTLS', 'smtp', false],
  ['TLS', 'smtps', true],
] as const) {
  t.test(`a mail is sent by ${name} after authentication`, async (t) => {
    const server = await start(t, { secure, user: USER })
    const mailer = open(t, urlOf(server, scheme))
    t.equal(mailer.server, `localhost:${server.port}`)
    t.same(await mailer.send(MESSAGE), { outcome: 'sent' })
    t.same(await mailer.send({ ...MESSAGE, to: 'eve@example.com' }), { outcome: 'sent' })
    const [mail, second] = server.received
    t.match(mail, {
      from: 'no-reply@vault.example.com',
      to: ['ada@example.com'],
      user: USER.name,
      isSecure: true,
    })
    t.same(second?.to, ['eve@example.com'])
    t.equal(server.connections(), 1, 'all mail is sent over one connection')
    const headers = { 'Message-ID': MESSAGE.id, Subject: MESSAGE.subject, To: MESSAGE.to, ...HEADERS }
    for (const [name, value] of Object.entries(headers)) t.equal(headerOf(mail!, name), value)
    t.match(mail!.text, /Content-Type: text\/plain[\s\S]*Content-Type: text\/html/)
    t.match(decodeBody(mail!), MESSAGE.text.replaceAll('\n', '\r\n'))
  })
}

t.test('a mail server without a trusted certificate gets no mail and no password', async (t) => {
  const server = await start(t, { secure: true, user: USER })
  const delivery = await openSmtp({ url: urlOf(server, 'smtps'), ca: undefined }).send(MESSAGE)
  t.match(delivery, { outcome: 'unreachable', reason: /certificate is not trusted.*mail\.ca/ })
  t.same([server.passwords, server.received], [[], []])
})

t.test('without TLS, the password for mail is sent to no other machine', async (t) => {
  const server = await start(t, { isPlain: true, user: USER })
  // Coffer does not recognize this spelling of the loopback address as an address of this machine.
  const url = `smtp://${USER.name}:${USER.password}@[::ffff:127.0.0.1]:${server.port}`
  const delivery = await open(t, url).send(MESSAGE)
  t.match(delivery, { outcome: 'unreachable' })
  t.same([server.passwords, server.received], [[], []])
})

t.test(
  'failures of the mail server are reported without address and password, and are temporary or permanent',
  async (t) => {
    const refused = { 'gone@example.com': 550, 'later@example.com': 450 } as Record<string, number>
    const server = await start(t, { user: USER, refuse: (address) => refused[address] })
    const mailer = open(t, urlOf(server))
    const outcomes = [
      await mailer.send({ ...MESSAGE, to: 'gone@example.com' }),
      await mailer.send({ ...MESSAGE, to: 'later@example.com' }),
      await open(t, urlOf(server, 'smtp', 'Wr0ng-pass')).send(MESSAGE),
      await open(t, 'smtp://localhost:1').send(MESSAGE),
      await open(t, 'smtp://nowhere.invalid').send(MESSAGE),
      await open(t, urlOf(server, 'smtps')).send(MESSAGE),
    ]
    t.match(outcomes, [
      { outcome: 'refused', reason: 'it refuses this mail (550).' },
      { outcome: 'postponed', reason: 'it does not accept this mail now (450).' },
      { outcome: 'unreachable', reason: 'it does not accept the user and password of mail.url.' },
      { outcome: 'unreachable', reason: 'it cannot be reached (ESOCKET).' },
      ...[{ outcome: 'unreachable' }, { outcome: 'unreachable' }],
    ])
    t.notMatch(JSON.stringify(outcomes), /-pass|example|nowhere/i)
    t.same(server.received, [])
    t.same(await mailer.send(MESSAGE), { outcome: 'sent' }, 'the next mail is sent')
  },
)

t.test(
  'a mail is sent only to the mailbox that its address names, whatever the address contains',
  async (t) => {
    const { port, lines } = await startRecorder(t)
    const mailer = open(t, `smtp://localhost:${port}`)
    const addresses = ['"ada lovelace"@example.com', '"eve@evil.example"@example.com', "o'neil+x@x.org"]
    for (const to of addresses) t.same(await mailer.send({ ...MESSAGE, to }), { outcome: 'sent' }, to)
    t.match(await mailer.send({ ...MESSAGE, to: '"a> b"@example.com' }), { outcome: 'refused' })
    const named = lines.filter((line) => line.startsWith('RCPT'))
    t.same(
      named,
      addresses.map((address) => `RCPT TO:<${address}>`),
    )
  },
)

/** Starts a server that accepts every command and keeps the text of each command. */
async function startRecorder(t: Test): Promise<{ port: number; lines: string[] }> {
  const lines: string[] = []
  const server = createServer((socket) => {
    let isData = false
    socket.write('220 recorder\r\n')
    createInterface(socket).on('line', (line) => {
      lines.push(line)
      if (isData && line !== '.') return
      isData = line === 'DATA'
      socket.write(isData ? '354 go on\r\n' : '250 yes\r\n')
    })
    socket.on('error', () => {})
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, lines }
}

t.test(
  'the name of a sender cannot add an address to the mail header, whatever the name contains',
  async (t) => {
    const server = await start(t, {})
    const from = { name: 'Größe, "Co" <eve@evil.example>', address: 'no-reply@example.com' }
    await open(t, `smtp://localhost:${server.port}`).send({ ...MESSAGE, from })
    const [mail] = server.received
    t.equal(mail?.from, 'no-reply@example.com')
    t.match(headerOf(mail!, 'From'), /^=\?UTF-8\?[QB]\?[^<>]*\?= <no-reply@example\.com>$/i)
  },
)
