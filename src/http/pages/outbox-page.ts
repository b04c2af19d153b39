/**
 * The outbox as a page: mails as the recipients would see them. It needs the login link that `serve` prints, and exists
 * only while no mail server is configured.
 */
import { encodeHtml as encode } from '../../domain/html.js'
import { describeDate, LETTER_STYLE } from '../../domain/letter.js'
import type { Host } from '../../framework/host.js'
import type { List } from '../../framework/page.js'
import { readMailSettings } from '../../operations/invite/mail.js'
import { listLetters, type OutboxLetter } from '../../operations/invite/outbox.js'
import type { Answer, Ask } from '../exchange.js'
import { readCookie } from '../headers.js'
import { answerHtml, answerMessage } from './html.js'
import type { Page } from './pages.js'

export const OUTBOX_PATH = '/outbox'
const SECRET_BYTES = 32
const MAILS_PER_PAGE = 20
const MOST_TENANTS = 50

export interface OutboxPageOptions {
  store: Host['store']
  drawBytes(count: number): Uint8Array
  /** Must take constant time. */
  isEqualSecret(a: string, b: string): boolean
  /** Restricts the cookie to TLS. */
  isSecure: boolean
  /** The address of the running server, such as `http://localhost:4010`. */
  publicUrl(): string
}

/** The page, and the path of its login link. */
export function createOutboxPage(options: OutboxPageOptions): { page: Page; loginPath: string } {
  const draw = () => Buffer.from(options.drawBytes(SECRET_BYTES)).toString('base64url')
  const login = draw()
  // Cookies do not depend on the port, so each server uses its own name.
  const pass = { name: `coffer_outbox_${draw().slice(0, 8)}`, value: draw() }
  return {
    page: (ask) => answerOutbox(options, { login, pass }, ask),
    loginPath: `${OUTBOX_PATH}?login=${login}`,
  }
}

interface Access {
  login: string
  pass: { name: string; value: string }
}

async function answerOutbox(options: OutboxPageOptions, access: Access, ask: Ask): Promise<Answer> {
  const { store, isEqualSecret } = options
  const query = new URLSearchParams(ask.target.split('?')[1] ?? '')
  const isInUse = (await store.read((reader) => readMailSettings(reader))).url === undefined
  if (!isInUse)
    return answerMessage(404, 'There is no outbox', 'Mail goes to the mail server of the settings.')
  const login = query.get('login')
  if (login !== null && isEqualSecret(login, access.login)) return letIn(access, options.isSecure)
  const pass = readCookie(ask, access.pass.name)
  if (pass === undefined || !isEqualSecret(pass, access.pass.value))
    return answerMessage(
      403,
      'The outbox is closed',
      'Open it by the link that coffer serve printed when it started.',
    )
  return showOutbox(options, query)
}

/** Redirects, so that the login link does not stay in the address bar. */
function letIn({ pass }: Access, isSecure: boolean): Answer {
  const answer = answerMessage(303, 'The outbox', 'You are logged in.')
  answer.headers.location = OUTBOX_PATH
  const secure = isSecure ? '; Secure' : ''
  answer.headers['set-cookie'] =
    `${pass.name}=${pass.value}; HttpOnly; SameSite=Lax; Path=${OUTBOX_PATH}${secure}`
  return answer
}

interface TenantEntry {
  number: number
  id: string
  name: string
}

async function showOutbox({ store, publicUrl }: OutboxPageOptions, query: URLSearchParams): Promise<Answer> {
  const tenants = await listTenants(store)
  const wanted = query.get('tenant')
  const tenant = wanted === null ? tenants[0] : tenants.find(({ id }) => id === wanted)
  if (tenant === undefined)
    return answerMessage(404, 'There is no such tenant', 'Go back, and choose another.')
  const number = query.get('page') ?? '1'
  const page = /^[1-9]\d{0,8}$/.test(number) ? Number(number) : 1
  const asked = { page, size: MAILS_PER_PAGE }
  const list = await store.read((reader) => listLetters(reader, tenant.number, asked, publicUrl()))
  const now = await store.read(async (reader) => reader.now)
  const mails = list.data.map((mail) => renderMail(mail, now))
  const empty =
    '<p>No mail yet. Invite somebody: <code>coffer invite create --email ada@example.com</code></p>'
  const body = `<main><h1>Outbox</h1>
<p class="dim">No mail server is configured, so mails are shown here. Tenant: <bdi>${encode(tenant.name)}</bdi></p>
${renderTenantLinks(tenants, tenant)}${mails.length === 0 ? empty : mails.join('\n')}${renderPager(list, tenant)}</main>`
  return answerHtml({ title: 'Outbox', body, style: STYLE + LETTER_STYLE })
}

/** The oldest tenant first, because it is usually the main one. */
async function listTenants(store: Host['store']): Promise<TenantEntry[]> {
  return store.read(async (reader) => {
    const { total } = await reader.find('tenant', 0, { page: 1, size: 1 })
    const page = Math.max(1, Math.ceil(total / MOST_TENANTS))
    const { records } = await reader.find('tenant', 0, { page, size: MOST_TENANTS })
    return records.map(({ number, id, name }) => ({ number, id, name })).reverse()
  })
}

function renderTenantLinks(tenants: readonly TenantEntry[], current: TenantEntry): string {
  if (tenants.length < 2) return ''
  const links = tenants.map(({ id, name }) => {
    const mark = id === current.id ? ' aria-current="page"' : ''
    return `<a href="${OUTBOX_PATH}?tenant=${encode(id)}"${mark}><bdi>${encode(name)}</bdi></a>`
  })
  return `<nav aria-label="Tenants">${links.join('')}</nav>`
}

const STATES: Record<OutboxLetter['state'], string> = {
  outbox: 'not sent; shown here',
  waiting: 'waits for a mail server',
  sent: 'sent',
  refused: 'refused',
  dropped: 'not sent; its link had ended',
}

function renderMail(mail: OutboxLetter, now: number): string {
  const { id, to, subject, state, created_at, link, link_expires_at, text, html } = mail
  const isOver = link === undefined || Date.parse(link_expires_at) <= now
  const note = isOver ? '<p class="dim">The link in this mail no longer works.</p>' : ''
  return `<article aria-labelledby="to-${encode(id)}">
<h2 id="to-${encode(id)}">${encode(to)}</h2>
<dl><dt>Subject</dt><dd>${encode(subject)}</dd><dt>Written</dt><dd>${describeDate(created_at)}</dd>
<dt>State</dt><dd>${STATES[state]}</dd></dl>${note}
${html}
<details><summary>As plain text</summary><pre tabindex="0">${encode(text)}</pre></details></article>`
}

function renderPager({ pagination }: List<unknown>, { id }: TenantEntry): string {
  const { page_number: page, total_pages: pages } = pagination
  if (pages < 2) return ''
  const link = (to: number, label: string) =>
    to < 1 || to > pages ? '' : `<a href="${OUTBOX_PATH}?tenant=${encode(id)}&amp;page=${to}">${label}</a>`
  return `<nav aria-label="Pages">${link(page - 1, 'Newer')}<span>Page ${page} of ${pages}</span>${link(page + 1, 'Older')}</nav>`
}

const STYLE = `
main { max-width: 44rem; margin: 0 auto; overflow-wrap: anywhere } h2 { font-size: 1.125rem; margin: 0; overflow-wrap: anywhere; text-transform: none }
nav { text-transform: none } [aria-current] { color: inherit; font-weight: 600; text-decoration: none }
article { border: 1px solid var(--line); border-radius: 6px; margin: 1.5rem 0; padding: 1rem }
article details { margin: 1rem 0 0 } article pre { white-space: pre-wrap; overflow-wrap: anywhere }
article .letter { border: 1px solid var(--line); border-radius: 6px; max-width: none }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem } dt { margin: 0; color: var(--dim) } dd { margin: 0; overflow-wrap: anywhere }
`
