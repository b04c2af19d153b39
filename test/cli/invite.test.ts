/** Settings, invitations and the outbox on the command line, used by the vault's owner. */
import type { Test } from 'tap'
import { startMailServer } from '../delivery/server.js'
import { CERTIFICATE } from '../http/certificate.js'
import { findLeaks, readTree } from '../support/leak.js'
import type { Outcome } from './fake-process.js'
import { testVault } from './home.js'

const invite = 'invite create --email ada@example.com'
const second = 'invite create --email eve@example.com'
const PASSWORD = 'S3cret-pass'

async function startServer(t: Test, settings: Parameters<typeof startMailServer>[0] = {}) {
  const server = await startMailServer(settings)
  t.teardown(() => server.close())
  return server
}

/** Returns the link at the end of a notice. */
const linkIn = (text: string) => /Link: (\S+)/.exec(text)?.[1] ?? ''

testVault(
  'invite create prints the link and where the mail went, and the link is accepted',
  async (t, home) => {
    const { code, stdout, stderr } = await home.run(invite)
    t.equal(code, 0)
    const { id } = JSON.parse(stdout)
    t.notMatch(stdout, 'token=')
    const link = linkIn(stderr)
    t.match(link, /^http:\/\/localhost:4010\/invitations\/accept\?token=[\w-]{43}$/)
    t.match(stderr, 'No mail server is configured, so the mail stays in the outbox.')
    const [, mailId] = /coffer invite outbox (\S+)/.exec(stderr)!
    const letter = await home.json(['invite', 'outbox', mailId!])
    t.match(letter, {
      id: mailId,
      invitation_id: id,
      to: 'ada@example.com',
      state: 'outbox',
      link,
      text: link,
    })
    t.same(
      await home.json(['invite', 'outbox', id]),
      letter,
      'the mail is also found by the id of its invitation',
    )
    const list = await home.json('invite outbox')
    t.same([list.pagination.total_items, list.data[0].id, 'text' in list.data[0]], [1, mailId, false])
    const member = await home.json(['invite', 'accept', link, '--first-name', 'Ada'])
    t.match(member, { role: 'ADMIN', user: { email: 'ada@example.com', first_name: 'Ada' } })
    t.equal((await home.json('member list')).data[0].id, member.id)
    const again = await home.run(['invite', 'accept', link])
    t.equal(again.code, 3)
    t.match(again.stderr, 'This link has been used')
  },
)

testVault(
  'a second invitation to an address reports the first, and both links are accepted',
  async (t, home) => {
    const first = await home.run(invite)
    t.notMatch(first.stderr, 'another pending invitation')
    const { id } = JSON.parse(first.stdout)
    const again = await home.run('invite create Ada@example.com --role READ_ONLY --quiet')
    const warning =
      'warning: This address has another pending invitation, and the links of both work. Delete the other one: ' +
      `coffer invite delete ${id}. To send an invitation again, use coffer invite resend instead.\n`
    t.same([again.code, again.stderr], [0, warning])
    t.equal(
      (await home.run(second)).stderr.includes('warning'),
      false,
      'an invitation to another address reports no pending invitation',
    )
    t.equal((await home.json('invite list')).pagination.total_items, 3, 'the API allows several invitations')
    const grants = { type: 'management', permissions: ['tenant:invitation:create'] }
    const env = { COFFER_API_KEY: (await home.createApp(grants)).key }
    t.same(
      (await home.run(invite, { env })).stderr,
      '',
      'a caller that may not list invitations gets no report',
    )
  },
)

testVault(
  'invite accept takes the token of a link without the rest of the link, as an argument or on standard input',
  async (t, home) => {
    const link = linkIn((await home.run(invite)).stderr)
    const token = new URL(link).searchParams.get('token')!
    t.equal((await home.run('invite accept nonsense')).code, 2)
    t.equal(
      (await home.run(['invite', 'accept', `${token[0] === 'A' ? 'B' : 'A'}${token.slice(1)}`])).code,
      3,
    )
    t.match(await home.json('invite accept', { stdin: `${token}\n` }), { role: 'ADMIN' })
  },
)

testVault('a mail is printed as text on a terminal, and an empty outbox says what to do', async (t, home) => {
  const read = (more = '') => home.run(`invite outbox${more} -o table`)
  t.match((await read()).stderr, 'coffer invite create')
  const { id } = await home.json(invite)
  const { stdout, stderr } = await read(` ${id}`)
  t.match(stdout, /^To: ada@example\.com\nSubject: You are invited to a Coffer tenant\n\nHello,\n/)
  t.equal(stderr, 'No mail server is configured, so the mail stays in the outbox.\n')
  for (const [more, code] of [
    [' nobody', 3],
    [' --size 101', 2],
    [' --page x', 2],
  ] as const)
    t.equal((await read(more)).code, code, more)
})

testVault('all commands act on the selected tenant', async (t, home) => {
  await home.json('tenant create staging')
  await home.json('tenant use staging')
  await home.json(['invite', 'accept', linkIn((await home.run(invite)).stderr)])
  for (const [line, count] of [
    ['member list', 2],
    ['invite outbox', 1],
    ['member list --tenant default', 1],
    ['invite outbox --tenant default', 0],
  ] as const)
    t.equal((await home.json(line)).pagination.total_items, count, line)
})

testVault('if a mail server is configured, the mail is sent before the command ends', async (t, home) => {
  const server = await startServer(t)
  await home.json(['config', 'set', 'mail.url', `smtp://localhost:${server.port}`])
  await home.json('config set public_url https://vault.example.com/')
  const { stderr } = await home.run(invite)
  t.equal(stderr, `The mail was sent to localhost:${server.port}.\n`)
  const { key } = await home.createApp({ type: 'management', permissions: ['tenant:invitation:create'] })
  const asApplication = await home.run(second, { env: { COFFER_API_KEY: key } })
  t.match(asApplication, { code: 0, stderr: /^$/ }, 'only the owner is told about the mail')
  t.equal(server.received.map(({ to }) => to).join(), 'ada@example.com,eve@example.com')
  const text = server.received[0]?.text.replaceAll('=\r\n', '')
  t.match(text, 'https://vault.example.com/invitations/accept?token=3D')
  const [sent] = (await home.json('invite outbox')).data
  t.notOk('link' in sent, 'the secret of a sent mail is not stored')
})

testVault('a failed mail is reported, and is sent again together with the next mail', async (t, home) => {
  const now = Date.now()
  await home.json('config set mail.url smtp://localhost:1', { clock: () => now })
  const { code, stdout, stderr } = await home.run(invite, { clock: () => now })
  t.equal(code, 0)
  t.match(stderr, /warning: The mail could not be sent to localhost:1: it cannot be reached \(ESOCKET\)\./)
  t.match(stderr, /Link: http/)
  t.equal((await home.json(`invite get ${JSON.parse(stdout).id}`, { clock: () => now })).status, 'PENDING')
  const server = await startServer(t)
  await home.json(['config', 'set', 'mail.url', `smtp://localhost:${server.port}`], { clock: () => now })
  await home.json(second, { clock: () => now + 30_000 })
  t.equal(server.received.map(({ to }) => to).join(), 'ada@example.com,eve@example.com')
})

testVault('settings can be set, shown and removed', async (t, home) => {
  const names = (await home.json('config list')).map(({ name }: { name: string }) => name)
  t.ok(names.includes('mail.url') && names.includes('reactors.undeclared_args'))
  const name = 'tokens.included_monthly_active'
  for (const [verb, value, is_set] of [
    [`get ${name}`, 0, false],
    [`set ${name} 500`, 500, true],
    [`unset ${name}`, 0, false],
  ] as const) {
    t.match(await home.json(`config ${verb}`), { name, value, is_set })
    t.equal((await home.json('tenant usage')).token_report.included_monthly_active_tokens, value)
  }
  for (const words of ['get nonsense', `set ${name} many`, 'set mail.url http://x', `set ${name}`])
    t.equal((await home.run(`config ${words}`)).code, 2, words)
})

testVault('the password of the mail server and the links in mails are encrypted on disk', async (t, home) => {
  const server = await startServer(t, { user: { name: 'ada', password: PASSWORD } })
  const url = `smtp://ada:${PASSWORD}@localhost:${server.port}`
  home.write('ca.pem', CERTIFICATE)
  const leaksOf = async (...secrets: string[]) => findLeaks(secrets, await readTree(`${home.place}/.coffer`))
  const outputs: Outcome[] = []
  for (const [line, code, stdin] of [
    [invite, 0],
    ['config set mail.url', 0, `${url}\n`],
    ['config set mail.ca @ca.pem', 0],
    ['config get mail.url', 0],
    ['config list --output table', 0],
    [second, 0],
    ['config set mail.url @@nonsense', 2],
    ['invite outbox', 0],
    [`config set mail.url ${url}`, 0],
  ] as const) {
    outputs.push(await home.run(line, { stdin: stdin ?? '' }))
    t.equal(outputs.at(-1)!.code, code, line)
  }
  t.same(server.passwords.slice(-1), [PASSWORD])
  t.match(outputs[1]!.stderr, 'coffer config set public_url')
  t.equal(JSON.parse(outputs[3]!.stdout).value, `smtp://ada:********@localhost:${server.port}`)
  t.match(outputs.at(-1)!.stderr, 'Other processes can see the arguments')
  t.notMatch(JSON.stringify(outputs), PASSWORD)
  const link = linkIn(outputs[0]!.stderr)
  const secret = new URL(link).searchParams.get('token')!
  t.same(await leaksOf(PASSWORD, secret, 'ada@example.com'), [])
  await home.json(['invite', 'accept', link])
  for (const line of ['invite outbox', 'log list']) t.notMatch(JSON.stringify(await home.json(line)), secret)
  t.same(await leaksOf(secret), [])
})
