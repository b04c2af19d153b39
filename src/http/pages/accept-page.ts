import { ACCEPT_PATH, type PersonNames } from '../../domain/invitation/invitation.js'
import { describeDate } from '../../domain/invitation/letter.js'
import { encodeHtml as encode } from '../../domain/text/html.js'
import { CofferError, type PropertyErrors } from '../../errors.js'
import type { AcceptContext, Invited } from '../../operations/invite/accept-invitation.js'
import { acceptInvitation, DeadLink, inspectLink } from '../../operations/invite/accept-invitation.js'
import type { HttpRequest, HttpResponse } from '../exchange.js'
import { readHeader } from '../headers.js'
import { createRateLimit } from '../rate-limit.js'
import { readFields } from './form.js'
import { answerHtml, answerMessage, MESSAGE_STYLE, STYLE } from './html.js'
import type { Page } from './pages.js'

/**
 * A client may open this number of unknown links in the period. Nobody can guess 256 bits, so this limit only saves
 * time and space in the log.
 */
const GUESSES = { count: 60, periodMs: 60_000 }
/**
 * Two names of 5,000 characters each fit, even if each character takes 12 bytes. The check of the names refuses long
 * names with a better error.
 */
const FORM_LIMIT_BYTES = 128 * 1024
const SHOWN_NAME = 200

/** `clock`: ms of a monotonic clock. */
export function createAcceptPage(context: AcceptContext, clock: () => number): Record<'page' | 'form', Page> {
  const limit = createRateLimit(GUESSES, clock)
  const guarded =
    (work: Page): Page =>
    async (request, traceId) => {
      const { client = '' } = request
      const seconds = limit.wait(client)
      if (seconds > 0) return refuseHaste(seconds)
      try {
        return await work(request, traceId)
      } catch (error) {
        if (error instanceof DeadLink && error.reason === 'unknown') limit.take(client)
        if (error instanceof DeadLink) return answerMessage(error.status, error.title, error.advice)
        if (!(error instanceof CofferError) || error.status >= 500) throw error
        return answerMessage(error.status, 'This could not be done', error.message)
      }
    }
  return {
    page: guarded(async ({ target }) => {
      const secret = new URLSearchParams(target.split('?')[1] ?? '').get('token') ?? ''
      return answerForm(await inspectLink(context, secret), secret)
    }),
    form: guarded(async (request, traceId) => {
      const fields = await readForm(request)
      const secret = fields.get('token') ?? ''
      const names = { first_name: fields.get('first_name') ?? '', last_name: fields.get('last_name') ?? '' }
      const invited = await inspectLink(context, secret)
      try {
        await acceptInvitation(context, { secret, names, traceId })
        return answerWelcome(invited)
      } catch (error) {
        if (!(error instanceof CofferError) || error.errors === undefined) throw error
        return answerForm(invited, secret, { names, errors: error.errors })
      }
    }),
  }
}

/**
 * Refuses a form that another site sends (Fetch Metadata).
 * @throws CofferError `forbidden`, `unsupported_media_type`, `too_large`
 */
async function readForm(request: HttpRequest): Promise<URLSearchParams> {
  const site = readHeader(request.headers, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new CofferError('forbidden', 'This form was sent from another site.')
  return readFields(request, FORM_LIMIT_BYTES)
}

type Refused = { names: PersonNames; errors: PropertyErrors }

function answerForm(
  { tenantName, email, expiresAt }: Invited,
  secret: string,
  refused?: Refused,
): HttpResponse {
  const body = `<main>
<h1>You are invited</h1>
<p>You are invited to join the tenant <strong><bdi>${encode(tenantName)}</bdi></strong> as <strong>${encode(email)}</strong>.
Members have full access to the tenant.</p>
<form method="post" action="${ACCEPT_PATH}?token=${encode(secret)}">
<input type="hidden" name="token" value="${encode(secret)}">
${renderField('first_name', 'First name', 'given-name', refused)}
${renderField('last_name', 'Last name', 'family-name', refused)}
<p><button type="submit">Accept the invitation</button></p>
</form>
<p class="dim">You can accept once, until ${describeDate(expiresAt)}. If you did not expect this invitation, close this page. Then nothing happens.</p>
</main>`
  const status = refused === undefined ? 200 : 400
  return answerHtml({ status, title: 'You are invited', body, style: FORM_STYLE, hasForm: true })
}

function renderField(
  name: keyof PersonNames,
  label: string,
  autocomplete: string,
  refused?: Refused,
): string {
  const { [name]: faults = [] } = refused?.errors ?? {}
  const said = `<span class="fault" id="${name}-fault">It ${encode(faults.join('; it '))}.</span>`
  const marked = ` aria-invalid="true" aria-describedby="${name}-fault"`
  const [fault, marks] = faults.length === 0 ? ['', ''] : [said, marked]
  const shown = encode((refused?.names[name] ?? '').slice(0, SHOWN_NAME))
  return `<p><label for="${name}">${label} <span class="dim">(optional)</span></label>
<input id="${name}" name="${name}" value="${shown}" maxlength="${SHOWN_NAME}" autocomplete="${autocomplete}"${marks}>${fault}</p>`
}

const FORM_STYLE = `${STYLE}
main { max-width: 32rem; margin: 0 auto } strong { overflow-wrap: anywhere }
form { border: 1px solid var(--line); border-radius: 6px; margin: 1.5rem 0; padding: 0 1rem }
label { display: block; font-weight: 600 } label .dim { font-weight: 400 }
input { background: transparent; border: 1px solid var(--dim); border-radius: 6px; color: inherit; font: inherit; padding: .5rem .75rem; width: 100% }
form p { margin: 1rem 0 }
button { background: #0b5cad; border: 0; border-radius: 6px; color: #fff; cursor: pointer; font: inherit; font-weight: 600; min-height: 2.75rem; padding: .5rem 1.25rem }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
.fault { color: var(--fault); display: block } [aria-invalid] { border-color: var(--fault) }
:root { --fault: #b3261e } @media (prefers-color-scheme: dark) { :root { --fault: #ffb4ab } }
`

function answerWelcome({ tenantName, email }: Invited): HttpResponse {
  const body = `<main><h1>You are a member</h1>
<p><strong>${encode(email)}</strong> now belongs to the tenant <strong><bdi>${encode(tenantName)}</bdi></strong>.</p>
<p>You can close this page. The link no longer works.</p></main>`
  return answerHtml({ title: 'You are a member', body, style: MESSAGE_STYLE })
}

function refuseHaste(seconds: number): HttpResponse {
  const text = `Try again in ${seconds} s, with the link from the mail.`
  const answer = answerMessage(429, 'Too many unknown links', text)
  answer.headers['retry-after'] = String(seconds)
  return answer
}
