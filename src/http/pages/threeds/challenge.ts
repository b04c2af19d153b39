import type { ThreeDsSessionRecord } from '../../../domain/records/records.js'
import { encodeHtml as encode } from '../../../domain/text/html.js'
import { ANSWER_PATH, challengeNotificationPath } from '../../../domain/threeds/paths.js'
import {
  CHALLENGE_CODE,
  type ChallengeAnswer,
  type Challenged,
  isPending,
  MAX_ATTEMPTS,
  toldStatus,
} from '../../../domain/threeds/session.js'
import { CofferError } from '../../../errors.js'
import { answerChallenge, beginChallenge, readEndedChallenge } from '../../../operations/3ds/pages.js'
import type { HttpResponse } from '../../exchange.js'
import { answerBankHtml, renderBank, renderData, renderForm } from './bank-page.js'
import { decodeMessage, encodeMessage, sessionIdOf, textOf } from './envelope.js'
import { CHALLENGE_FRAME, SEND, TELL } from './scripts.js'
import type { Visit } from './visit.js'

const TITLE = 'Confirm your payment'
const VERSIONS = ['2.1.0', '2.2.0']

/** web-threeds shows this page in a frame. The page shows the page of the bank in an inner frame. */
export function answerChallengeFrame(): HttpResponse {
  return answerBankHtml({
    title: 'Challenge',
    body: '<main></main>',
    script: CHALLENGE_FRAME,
    hasFrames: true,
  })
}

export async function answerCreq({ host, fields, traceId }: Visit): Promise<HttpResponse> {
  const creq = decodeMessage(fields.get('creq'))
  const id = sessionIdOf(creq.threeDSServerTransID)
  if (creq.messageType !== 'CReq' || !VERSIONS.includes(textOf(creq.messageVersion)))
    throw new CofferError('validation', `The message must be a CReq of version ${VERSIONS.join(' or ')}.`)
  const session = await beginChallenge(host, { id, acsTransactionId: textOf(creq.acsTransID), traceId })
  return isPending(session) ? answerQuestion(session) : answerDecided(session)
}

export async function answerAnswer({ host, fields, traceId }: Visit): Promise<HttpResponse> {
  const id = sessionIdOf(fields.get('session'))
  const answer = readAnswer(fields)
  const given = { id, acsTransactionId: fields.get('acs_transaction_id') ?? '', answer, traceId }
  const session = await answerChallenge(host, given)
  return isPending(session) ? answerQuestion(session) : answerDecided(session)
}

function readAnswer(fields: URLSearchParams): ChallengeAnswer {
  const action = fields.get('action')
  return action === 'cancel' || action === 'done' ? action : { code: fields.get('code') ?? '' }
}

/** The notification changes nothing, because the answer of the cardholder has already decided the result. */
export async function answerChallengeNotification({ host, page, fields }: Visit): Promise<HttpResponse> {
  const id = sessionIdOf(page.id)
  const cres = decodeMessage(fields.get('cres'))
  if (cres.messageType !== 'CRes' || sessionIdOf(cres.threeDSServerTransID) !== id)
    throw new CofferError('validation', 'The message must be the CRes of this session.')
  const session = await readEndedChallenge(host, { id, acsTransactionId: textOf(cres.acsTransID) })
  const message = { type: 'challenge', isCompleted: true, id, authenticationStatus: toldStatus(session) }
  const title = 'The challenge is over'
  const body = renderBank(title, `<p>You can close this page.</p>${renderData('message', message)}`)
  return answerBankHtml({ title, body, script: TELL })
}

function answerDecided(session: Challenged): HttpResponse {
  const { id, base, authentication } = session
  const isYes = toldStatus(session) === 'successful'
  const cres = {
    messageType: 'CRes',
    messageVersion: '2.2.0',
    threeDSServerTransID: id,
    acsTransID: authentication.acs_transaction_id,
    challengeCompletionInd: 'Y',
    transStatus: isYes ? 'Y' : 'N',
  }
  const title = 'The challenge is over'
  const form = renderForm(base + challengeNotificationPath(id), { cres: encodeMessage(cres) })
  return answerBankHtml({ title, body: renderBank(title, form), script: SEND })
}

function answerQuestion(session: Challenged): HttpResponse {
  const { id, base, authentication } = session
  const { type, attempts } = authentication.challenge
  const fields = { session: id, acs_transaction_id: authentication.acs_transaction_id }
  const hidden = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${encode(value)}">`,
  )
  const body = `${describePayment(authentication)}
<form method="post" action="${encode(base + ANSWER_PATH)}">${hidden.join('')}
${type === 'out-of-band' ? renderOutOfBand() : renderCode(attempts)}
<button id="coffer-3ds-cancel" name="action" value="cancel" formnovalidate>Cancel</button></form>`
  return answerBankHtml({ title: TITLE, body: renderBank(TITLE, body) })
}

function renderCode(attempts: number): string {
  const [marks, fault] =
    attempts === 0
      ? ['', '']
      : [
          ' aria-invalid="true" aria-describedby="coffer-3ds-hint coffer-3ds-fault"',
          `<p id="coffer-3ds-fault" class="fault" role="alert">The passcode is wrong. Attempt ${attempts + 1} of ${MAX_ATTEMPTS}.</p>`,
        ]
  return `<label for="coffer-3ds-code">Passcode</label>
<p id="coffer-3ds-hint" class="dim">Test passcode: ${CHALLENGE_CODE}.</p>${fault}
<input id="coffer-3ds-code" name="code" autocomplete="one-time-code" inputmode="numeric" maxlength="20" required${marks || ' aria-describedby="coffer-3ds-hint"'}>
<button id="coffer-3ds-submit" name="action" value="submit" class="main">Submit</button>`
}

function renderOutOfBand(): string {
  return `<p>A real bank would now ask in its own app. Here, choose the answer.</p>
<button id="coffer-3ds-done" name="action" value="done" class="main">Done</button>`
}

function describePayment({ paid }: NonNullable<ThreeDsSessionRecord['authentication']>): string {
  if (paid === undefined) return '<p>A shop asks your bank to confirm that it is you.</p>'
  const { merchant, amount, currency } = paid
  const to = merchant === undefined ? '' : ` to <strong><bdi>${encode(merchant)}</bdi></strong>`
  if (amount === undefined) return `<p>You pay${to}.</p>`
  const unit = currency === undefined ? '' : ` (currency ${encode(currency)})`
  return `<p>You pay <strong>${encode(formatAmount(amount, paid.exponent))}</strong>${unit}${to}.</p>`
}

/** `amount` and `exponent` consist of digits. `exponent`: the number of digits after the point. */
function formatAmount(amount: string, exponent = '0'): string {
  const places = Math.min(Number(exponent), 10)
  if (places === 0) return amount
  const digits = amount.padStart(places + 1, '0')
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`
}
