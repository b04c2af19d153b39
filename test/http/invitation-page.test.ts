import t, { type Test } from 'tap'
import type { InvitationView } from '../../src/domain/invitation/invitation.js'
import type { List } from '../../src/framework/page.js'
import { createAcceptPage } from '../../src/http/pages/accept-page.js'
import type { OutboxMail } from '../../src/operations/invite/noun.js'
import type { MemberView } from '../../src/operations/member/noun.js'
import { createHandler } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'

const ORIGIN = 'http://localhost:4010'
const PATH = `${ORIGIN}/invitations/accept`

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const handle = createHandler(vault.app)
  const show = (secret: string, init?: RequestInit) =>
    handle(new Request(`${PATH}?token=${encodeURIComponent(secret)}`, init))
  const send = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
    handle(new Request(PATH, { method: 'POST', body: new URLSearchParams(fields), headers }))
  return {
    ...vault,
    handle,
    show,
    send,
    invite: async (email = 'ada@example.com') => {
      const { id } = (await vault.ask('invite create', { email })) as InvitationView
      return {
        id,
        secret: new URL(((await vault.ask('invite outbox', { id })) as OutboxMail).link!).searchParams.get(
          'token',
        )!,
      }
    },
    /** Returns the fields of the form on the page of an invitation link. */
    formOf: async (secret: string) => ({ token: fieldOf(await (await show(secret)).text(), 'token') }),
    count: async () => ((await vault.ask('member list')) as List<MemberView>).pagination.total_items,
  }
}

function fieldOf(html: string, name: string): string {
  return new RegExp(`<input[^>]* name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? ''
}

t.test(
  'the page of an invalid invitation link shows the reason, and showing a link changes nothing',
  async (t) => {
    const vault = await open(t)
    const replaced = await vault.invite()
    await vault.ask('invite resend', { id: replaced.id })
    const withdrawn = await vault.invite()
    await vault.ask('invite delete', { id: withdrawn.id })
    const expired = await vault.invite('late@example.com')
    const [joined, again] = [await vault.invite('grace@example.com'), await vault.invite('grace@example.com')]
    for (let looks = 0; looks < 3; looks++) t.equal((await vault.show(joined.secret)).status, 200)
    t.equal(await vault.count(), 1)
    const fields = await vault.formOf(joined.secret)
    const clicks = await Promise.all([fields, fields, fields].map((each) => vault.send(each)))
    t.same(
      clicks.map(({ status }) => status).sort(),
      [200, 410, 410],
      'if the form is sent several times at once, one request creates a member',
    )
    vault.clock.now += 72 * 3_600_000 - 1
    t.match(await (await vault.show(again.secret)).text(), 'You are already a member')
    t.equal((await vault.show(again.secret)).status, 409)
    vault.clock.now += 1
    const cases: [string, number, string][] = [
      [replaced.secret, 410, 'There is a newer link'],
      [withdrawn.secret, 410, 'This invitation was withdrawn'],
      [expired.secret, 410, 'This invitation has expired'],
      [joined.secret, 410, 'This link has been used'],
      ['', 404, 'This link is unknown'],
      ['<script>alert(1)</script>', 404, 'This link is unknown'],
    ]
    for (const [secret, status, title] of cases) {
      const shown = await vault.show(secret)
      const html = await shown.text()
      t.match([shown.status, html], [status, `<h1>${title}</h1>`], title)
      t.notMatch(html, /<form|<script/)
      t.equal((await vault.send({ token: secret })).status, status, `${title}, sent`)
    }
    t.equal(await vault.count(), 2)
  },
)

t.test('a form of an invitation is refused if another site sends it', async (t) => {
  const vault = await open(t)
  const { secret } = await vault.invite()
  for (const site of ['cross-site', 'same-site'])
    t.equal((await vault.send(await vault.formOf(secret), { 'sec-fetch-site': site })).status, 403, site)
  t.equal(await vault.count(), 1)
  const own = await vault.send(await vault.formOf(secret), { 'sec-fetch-site': 'same-origin' })
  t.equal(own.status, 200)
})

t.test('the page of an invitation reveals no secret to other sites and runs no code', async (t) => {
  const vault = await open(t)
  await vault.ask('tenant update', { name: '"><script>alert(1)</script>\u202e' })
  const { secret } = await vault.invite('"<script>alert(1)</script>"@example.com')
  const shown = await vault.show(secret)
  const headers = Object.fromEntries(shown.headers)
  t.equal(headers['referrer-policy'], 'no-referrer')
  t.equal(headers['cache-control'], 'no-store')
  t.equal(headers['x-content-type-options'], 'nosniff')
  t.match(
    headers['content-security-policy'],
    /^default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
  )
  const html = await shown.text()
  t.notMatch(html, /<script|javascript:|\son[a-z]+=|https?:\/\//i)
  const wrong = await vault.send({
    ...(await vault.formOf(secret)),
    first_name: '"><script>1</script>\u0000',
  })
  t.equal(wrong.status, 400)
  t.notMatch(await wrong.text(), /<script/i)
})

t.test('an invalid form of an invitation is refused with an explanation', async (t) => {
  const vault = await open(t)
  const { secret } = await vault.invite()
  const long = await vault.send({ ...(await vault.formOf(secret)), first_name: 'x'.repeat(5000) })
  const html = await long.text()
  t.match([long.status, html], [400, 'It must have at most 200 characters.'])
  t.ok(html.length < 10_000, 'the response does not repeat the whole text')
  const form = 'application/x-www-form-urlencoded'
  for (const [status, method, type, body] of [
    [415, 'POST', 'application/json', '{}'],
    [413, 'POST', form, 'x'.repeat(200_000)],
    [404, 'POST', form, '%ff%fe&&&='],
    [405, 'DELETE', form, ''],
  ] as const) {
    const init = { method, body, headers: { 'content-type': type } }
    t.equal((await vault.handle(new Request(PATH, init))).status, status, method)
  }
  t.equal(await vault.count(), 1)
})

t.test(
  'a client that tries invalid invitation links must wait, and other clients need not wait',
  async (t) => {
    let now = 0
    const vault = await open(t)
    const { secret } = await vault.invite()
    const { app } = vault
    const { page } = createAcceptPage(app, () => now)
    const ask = async (token: string, client: string) => {
      const target = `/invitations/accept?token=${token}`
      return page({ method: 'GET', target, headers: {}, client, readBody: async () => undefined }, 'trace')
    }
    const statusOf = async (token: string, client: string) => (await ask(token, client)).status
    for (let guess = 0; guess < 60; guess++) t.equal(await statusOf('A'.repeat(43), '192.0.2.1'), 404)
    const refused = await ask(secret, '192.0.2.1')
    t.equal(refused.status, 429)
    t.equal(refused.headers['retry-after'], '1')
    t.equal(await statusOf(secret, '192.0.2.2'), 200)
    now += 1000
    t.equal(await statusOf(secret, '192.0.2.1'), 200)
    for (let look = 0; look < 200; look++) await statusOf(secret, '192.0.2.3')
    t.equal(await statusOf(secret, '192.0.2.3'), 200, 'other clients can still open a valid link')
  },
)
