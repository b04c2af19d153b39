import t, { type Test } from 'tap'
import type { InvitationView } from '../../src/domain/invitation/invitation.js'
import type { List } from '../../src/framework/page.js'
import type { HttpRequest, HttpResponse } from '../../src/http/exchange.js'
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
    /** The fields of the form that the link shows. */
    formOf: async (secret: string) => ({ token: fieldOf(await (await show(secret)).text(), 'token') }),
    count: async () => ((await vault.ask('member list')) as List<MemberView>).pagination.total_items,
  }
}

function fieldOf(html: string, name: string): string {
  return new RegExp(`<input[^>]* name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? ''
}

t.test('looking changes nothing; pressing the button makes a member', async (t) => {
  const vault = await open(t)
  const { secret } = await vault.invite()
  for (let looks = 0; looks < 3; looks++) t.equal((await vault.show(secret)).status, 200)
  t.equal(await vault.count(), 1)
  const page = await (await vault.show(secret)).text()
  t.match(page, 'default')
  t.match(page, 'ada@example.com')
  const fields = { ...(await vault.formOf(secret)), first_name: 'Ada', last_name: '' }
  const done = await vault.send(fields)
  t.equal(done.status, 200)
  t.match(await done.text(), 'You are a member')
  const { data } = (await vault.ask('member list')) as List<MemberView>
  t.match(data[0], { role: 'ADMIN', user: { email: 'ada@example.com', first_name: 'Ada' } })
  t.notOk('last_name' in data[0]!.user)
  for (const answer of [await vault.show(secret), await vault.send(fields)]) {
    t.equal(answer.status, 410)
    t.match(await answer.text(), 'This link has been used')
  }
  t.equal(await vault.count(), 2)
})

t.test('each dead link says why, with its status, and what to do', async (t) => {
  const vault = await open(t)
  const replaced = await vault.invite()
  await vault.ask('invite resend', { id: replaced.id })
  const withdrawn = await vault.invite()
  await vault.ask('invite delete', { id: withdrawn.id })
  const expired = await vault.invite('late@example.com')
  const [joined, again] = [await vault.invite('grace@example.com'), await vault.invite('grace@example.com')]
  await vault.send(await vault.formOf(joined.secret))
  vault.clock.now += 72 * 3_600_000 - 1
  t.match(await (await vault.show(again.secret)).text(), 'You are already a member')
  t.equal((await vault.show(again.secret)).status, 409)
  vault.clock.now += 1
  const cases: [string, number, string][] = [
    [replaced.secret, 410, 'There is a newer link'],
    [withdrawn.secret, 410, 'This invitation was withdrawn'],
    [expired.secret, 410, 'This invitation has expired'],
    [joined.secret, 410, 'This link has been used'],
    ['A'.repeat(43), 404, 'This link is unknown'],
    ['', 404, 'This link is unknown'],
    ['<script>alert(1)</script>', 404, 'This link is unknown'],
  ]
  for (const [secret, status, title] of cases) {
    const shown = await vault.show(secret)
    t.equal(shown.status, status, title)
    const html = await shown.text()
    t.match(html, `<h1>${title}</h1>`)
    t.notMatch(html, '<form')
    t.notMatch(html, '<script')
    const sent = await vault.send({ token: secret })
    t.equal(sent.status, status, `${title}, sent`)
  }
  t.equal(await vault.count(), 2)
})

t.test('a refused form shows what was typed, and the link still works', async (t) => {
  const vault = await open(t)
  const { secret } = await vault.invite()
  const bad = await vault.send({ token: secret, first_name: 'Ada', last_name: 'a\nb' })
  t.equal(bad.status, 400)
  t.match(await bad.text(), 'name="first_name" value="Ada"')
  t.equal(await vault.count(), 1)
  t.equal((await vault.send({ token: secret })).status, 200)
})

t.test('a form that another site sends is refused, whatever is in it', async (t) => {
  const vault = await open(t)
  const { secret } = await vault.invite()
  for (const site of ['cross-site', 'same-site'])
    t.equal((await vault.send(await vault.formOf(secret), { 'sec-fetch-site': site })).status, 403, site)
  t.equal(await vault.count(), 1)
  const own = await vault.send(await vault.formOf(secret), { 'sec-fetch-site': 'same-origin' })
  t.equal(own.status, 200)
})

t.test('of two clicks at once one makes a member', async (t) => {
  const vault = await open(t)
  const { secret } = await vault.invite()
  const forms = await Promise.all([vault.formOf(secret), vault.formOf(secret), vault.formOf(secret)])
  const answers = await Promise.all(forms.map((fields) => vault.send(fields)))
  t.same(answers.map(({ status }) => status).sort(), [200, 410, 410])
  t.equal(await vault.count(), 2)
})

t.test('the page leaks nothing and runs nothing', async (t) => {
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

t.test('hostile forms are refused in words', async (t) => {
  const vault = await open(t)
  const { secret } = await vault.invite()
  const long = await vault.send({ ...(await vault.formOf(secret)), first_name: 'x'.repeat(5000) })
  t.equal(long.status, 400)
  const html = await long.text()
  t.match(html, 'It must have at most 200 characters.')
  t.ok(html.length < 10_000, 'and not all of it comes back')
  const post = (body: string, type: string) =>
    vault.handle(new Request(PATH, { method: 'POST', body, headers: { 'content-type': type } }))
  t.equal((await post('{}', 'application/json')).status, 415)
  t.equal((await post('x'.repeat(200_000), 'application/x-www-form-urlencoded')).status, 413)
  t.equal((await post('%ff%fe&&&=', 'application/x-www-form-urlencoded')).status, 404)
  t.equal((await vault.handle(new Request(PATH, { method: 'DELETE' }))).status, 405)
  t.equal(
    (await vault.handle(new Request(PATH, { method: 'DELETE' }))).headers.get('allow'),
    'GET, HEAD, POST',
  )
  t.equal(await vault.count(), 1)
})

t.test('who guesses links is made to wait; nobody else is', async (t) => {
  let now = 0
  const vault = await open(t)
  const { secret } = await vault.invite()
  const { app } = vault
  const { page } = createAcceptPage(app, () => now)
  const statusOf = async (token: string, client: string) => (await ask(page, token, client)).status
  for (let guess = 0; guess < 60; guess++) t.equal(await statusOf('A'.repeat(43), '192.0.2.1'), 404)
  const refused = await ask(page, secret, '192.0.2.1')
  t.equal(refused.status, 429)
  t.equal(refused.headers['retry-after'], '1')
  t.equal(await statusOf(secret, '192.0.2.2'), 200)
  now += 1000
  t.equal(await statusOf(secret, '192.0.2.1'), 200)
  for (let look = 0; look < 200; look++) await statusOf(secret, '192.0.2.3')
  t.equal(await statusOf(secret, '192.0.2.3'), 200, 'a link that is known may be looked at')
})

type Page = ReturnType<typeof createAcceptPage>['page']

async function ask(page: Page, token: string, client: string): Promise<HttpResponse> {
  return page({ ...askFor(token), client }, 'trace')
}

function askFor(token: string): HttpRequest {
  return {
    method: 'GET',
    target: `/invitations/accept?token=${token}`,
    headers: {},
    readBody: async () => undefined,
  }
}
