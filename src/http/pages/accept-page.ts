/** The page of an invitation link, and its form, which works once, and only if this server made it. */
import { BoundedMap } from '../../bounded-map.js'
import { ACCEPT_PATH, type PersonNames } from '../../domain/invitation/invitation.js'
import { describeDate } from '../../domain/invitation/letter.js'
import { encodeHtml as encode } from '../../domain/text/html.js'
import { CofferError, type PropertyErrors } from '../../errors.js'
import {
  type AcceptContext,
  acceptInvitation,
  DEAD_LINKS,
  type Invited,
  inspectLink,
  type Refused,
} from '../../operations/invite/accept-invitation.js'
import type { HttpRequest, HttpResponse } from '../exchange.js'
import { createRateLimit } from '../rate-limit.js'
import { createFormTokens, readForm } from './form.js'
import { answerHtml, answerMessage, MESSAGE_STYLE } from './html.js'
import type { Page } from './pages.js'

/** The limit of unknown links per client. Guessing 256 bits is impossible; the limit saves logs and time. */
const GUESSES = { count: 60, periodMs: 60_000 }
const MOST_BLOCKED = 10_000

/** The page and the handler of its form, for {@link ACCEPT_PATH}. `clock`: ms of a monotonic clock. */
export function createAcceptPage(
  powers: AcceptContext,
  drawBytes: (count: number) => Uint8Array,
  clock: () => number,
): Record<'page' | 'form', Page> {
  const tokens = createFormTokens(drawBytes, clock)
  const limit = createRateLimit(GUESSES, clock)
  /** Until when clients have to wait. */
  const blocked = new BoundedMap<string, number>(MOST_BLOCKED)
  return {
    page: (request) => guarded(request, () => showInvitation(request)),
    form: (request, traceId) => guarded(request, () => receiveForm(request, traceId)),
  }

  async function guarded(
    { client = '' }: HttpRequest,
    work: () => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    const seconds = Math.ceil(((blocked.get(client) ?? 0) - clock()) / 1000)
    if (seconds > 0) return refuseHaste(seconds)
    try {
      const answer = await work()
      if (answer.status === DEAD_LINKS.unknown.status) noteGuess(client)
      return answer
    } catch (error) {
      if (!(error instanceof CofferError) || error.status >= 500) throw error
      return answerMessage(error.status, 'This could not be done', error.message)
    }
  }

  function noteGuess(client: string): void {
    const seconds = limit.take(client)
    blocked.delete(client)
    if (seconds > 0) blocked.set(client, clock() + seconds * 1000)
  }

  async function showInvitation({ target }: HttpRequest): Promise<HttpResponse> {
    const secret = new URLSearchParams(target.split('?')[1] ?? '').get('token') ?? ''
    const invited = await inspectLink(powers, secret)
    if ('reason' in invited) return answerDead(invited)
    return answerForm({ invited, secret, token: tokens.create(secret) })
  }

  async function receiveForm(request: HttpRequest, traceId: string): Promise<HttpResponse> {
    const fields = await readForm(request)
    const secret = fields.get('token') ?? ''
    const names = { first_name: fields.get('first_name') ?? '', last_name: fields.get('last_name') ?? '' }
    const isOurs = tokens.take(fields.get('form') ?? '', secret)
    const invited = await inspectLink(powers, secret)
    if ('reason' in invited) return answerDead(invited)
    const again = { invited, secret, names }
    if (!isOurs) return answerForm({ ...again, token: tokens.create(secret), status: 403, note: FORM_IS_OLD })
    try {
      const outcome = await acceptInvitation(powers, { secret, names, traceId })
      return 'reason' in outcome ? answerDead(outcome) : answerWelcome(outcome.invited)
    } catch (error) {
      if (!(error instanceof CofferError) || error.errors === undefined) throw error
      return answerForm({ ...again, token: tokens.create(secret), status: 400, errors: error.errors })
    }
  }
}

const FORM_IS_OLD = 'The form was open for too long, or was sent before. Please press the button again.'
/** Names are shown again up to this length. */
const SHOWN_NAME = 200

interface FormState {
  invited: Invited
  secret: string
  token: string
  names?: PersonNames
  errors?: PropertyErrors
  note?: string
  status?: number
}

function answerForm(state: FormState): HttpResponse {
  const { invited, secret, token, names = {}, errors = {}, note, status = 200 } = state
  const { tenantName, email, expiresAt } = invited
  const body = `<main>
<h1>You are invited</h1>
<p>You are invited to join the tenant <strong><bdi>${encode(tenantName)}</bdi></strong> as <strong>${encode(email)}</strong>.
Members have full access to the tenant.</p>
${note === undefined ? '' : `<p role="alert" class="fault">${encode(note)}</p>`}
<form method="post" action="${ACCEPT_PATH}?token=${encode(secret)}">
<input type="hidden" name="token" value="${encode(secret)}"><input type="hidden" name="form" value="${encode(token)}">
${renderField('first_name', 'First name', 'given-name', names.first_name, errors.first_name)}
${renderField('last_name', 'Last name', 'family-name', names.last_name, errors.last_name)}
<p><button type="submit">Accept the invitation</button></p>
</form>
<p class="dim">This works once, until ${describeDate(expiresAt)}. If you did not expect it, close this page: nothing happens unless you accept.</p>
</main>`
  return answerHtml({ status, title: 'You are invited', body, style: FORM_STYLE, hasForm: true })
}

function renderField(
  name: string,
  label: string,
  autocomplete: string,
  value = '',
  faults: readonly string[] = [],
): string {
  const said = `<span class="fault" id="${name}-fault">It ${encode(faults.join('; it '))}.</span>`
  const marked = ` aria-invalid="true" aria-describedby="${name}-fault"`
  const [fault, marks] = faults.length === 0 ? ['', ''] : [said, marked]
  const shown = encode(value.slice(0, SHOWN_NAME))
  return `<p><label for="${name}">${label} <span class="dim">(optional)</span></label>
<input id="${name}" name="${name}" value="${shown}" maxlength="${SHOWN_NAME}" autocomplete="${autocomplete}"${marks}>${fault}</p>`
}

const FORM_STYLE = `
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
<p>The invitation is used up. You can close this page.</p></main>`
  return answerHtml({ title: 'You are a member', body, style: MESSAGE_STYLE })
}

function answerDead({ reason }: Refused): HttpResponse {
  const { status, title, advice } = DEAD_LINKS[reason]
  return answerMessage(status, title, advice)
}

function refuseHaste(seconds: number): HttpResponse {
  const text = `Try again in ${seconds} s, with the link from the mail.`
  const answer = answerMessage(429, 'Too many unknown links', text)
  answer.headers['retry-after'] = String(seconds)
  return answer
}
