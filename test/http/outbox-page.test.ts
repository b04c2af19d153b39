import t, { type Test } from 'tap'
import type { InvitationView } from '../../src/domain/invitation.js'
import { createOutboxPage } from '../../src/http/pages/outbox-page.js'
import { openTestVault, setSetting } from '../operations/vault.js'
import { createHandler } from '../service.js'

const ORIGIN = 'http://localhost:4999'

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { app } = vault
  const outbox = createOutboxPage({
    store: app.store,
    drawBytes: (count) => app.random.bytes(count),
    isEqualSecret: app.isEqualSecret,
    isSecure: false,
    publicUrl: () => ORIGIN,
  })
  const handle = createHandler(app, { pages: new Map([['/outbox', outbox.page]]) })
  const get = (path: string, cookie = '') =>
    handle(new Request(`${ORIGIN}${path}`, cookie === '' ? {} : { headers: { cookie } }))
  const logIn = async () => (await get(outbox.loginPath)).headers.get('set-cookie')!.split(';')[0]!
  return { ...vault, outbox, get, logIn }
}

t.test('only the login link opens the outbox, and it stays in no address', async (t) => {
  const vault = await open(t)
  const wrong = vault.outbox.loginPath.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
  for (const [path, cookie] of [
    ['/outbox', ''],
    [wrong, ''],
    ['/outbox?login=', ''],
    ['/outbox', 'coffer_outbox_=x'],
    ['/outbox', `${(await vault.logIn()).split('=')[0]}=guess`],
  ] as const)
    t.equal((await vault.get(path, cookie)).status, 403, `${path.slice(0, 20)} ${cookie.slice(0, 20)}`)
  const login = await vault.get(vault.outbox.loginPath)
  t.equal(login.status, 303)
  t.equal(login.headers.get('location'), '/outbox')
  t.match(
    login.headers.get('set-cookie'),
    /^coffer_outbox_[\w-]{8}=[\w-]{43}; HttpOnly; SameSite=Lax; Path=\/outbox$/,
  )
  const shown = await vault.get('/outbox', `other=1; ${await vault.logIn()}`)
  t.equal(shown.status, 200)
  t.match(shown.headers.get('content-security-policy'), /default-src 'none'.*form-action 'none'/)
})

t.test('the login opens nothing else', async (t) => {
  const vault = await open(t)
  const cookie = await vault.logIn()
  for (const path of ['/tokens', '/tenants/self/invitations', '/applications'])
    t.equal((await vault.get(path, cookie)).status, 401, path)
  const body = await vault.get('/outbox', cookie).then((answer) => answer.text())
  t.notMatch(body, vault.outbox.loginPath.split('=')[1])
})

t.test('a mail is shown as its reader sees it, with the link of this server', async (t) => {
  const vault = await open(t)
  await vault.ask('tenant update', { name: '<b>Payments</b>' })
  const { id } = (await vault.ask('invite create', { email: '"<i>"@example.com' })) as InvitationView
  const cookie = await vault.logIn()
  const html = await (await vault.get('/outbox', cookie)).text()
  t.match(html, '&quot;&lt;i&gt;&quot;@example.com')
  t.match(html, '&lt;b&gt;Payments&lt;/b&gt;')
  t.notMatch(html, /<b>Payments|<i>/)
  const [, link] = /href="(http:\/\/localhost:4999\/invitations\/accept\?token=[\w-]{43})"/.exec(html)!
  t.equal((await vault.get(link!.slice(ORIGIN.length))).status, 200)
  await vault.ask('invite resend', { id })
  const after = await (await vault.get('/outbox', cookie)).text()
  t.notMatch(after, link!)
  t.match(after, 'The link in this mail no longer works.')
})

t.test('an empty outbox says what to do; many mails come page by page', async (t) => {
  const vault = await open(t)
  const cookie = await vault.logIn()
  t.match(await (await vault.get('/outbox', cookie)).text(), 'coffer invite create')
  for (let count = 0; count < 21; count++)
    await vault.ask('invite create', { email: `p${count}@example.com` })
  const first = await (await vault.get('/outbox', cookie)).text()
  t.equal(first.match(/<article/g)?.length, 20)
  t.match(first, 'Page 1 of 2')
  const [, older] = /href="([^"]*)">Older/.exec(first)!
  const second = await (await vault.get(older!.replaceAll('&amp;', '&'), cookie)).text()
  t.equal(second.match(/<article/g)?.length, 1)
  t.match(second, 'p0@example.com')
  for (const page of ['0', '-1', 'x', '99999999999'])
    t.equal((await vault.get(`/outbox?page=${page}`, cookie)).status, 200)
})

t.test('each tenant has an outbox of its own', async (t) => {
  const vault = await open(t)
  const other = await vault.createTenant('other')
  await vault.ask('invite create', { email: 'here@example.com' })
  await vault.ask('invite create', { email: 'there@example.com' }, 'other')
  const cookie = await vault.logIn()
  const here = await (await vault.get('/outbox', cookie)).text()
  t.match(here, 'here@example.com')
  t.notMatch(here, 'there@example.com')
  const there = await (await vault.get(`/outbox?tenant=${other}`, cookie)).text()
  t.match(there, 'there@example.com')
  t.notMatch(there, /[^t]here@example\.com/)
  t.equal((await vault.get('/outbox?tenant=nobody', cookie)).status, 404)
})

t.test('where mail is sent there is no outbox', async (t) => {
  const vault = await open(t)
  const cookie = await vault.logIn()
  await setSetting(vault.app, 'mail.url', 'smtp://mail.example.com')
  t.equal((await vault.get('/outbox', cookie)).status, 404)
  t.equal((await vault.get(vault.outbox.loginPath)).status, 404)
})
