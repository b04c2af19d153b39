/** The redirect page does all steps in the browser, and then opens an address that is stored in the session. */
import { isObject, tryJson } from '../../../domain/json/json.js'
import {
  CHALLENGE_PATH,
  METHOD_PATH,
  methodNotificationPath,
  redirectPath,
} from '../../../domain/threeds/paths.js'
import { BROWSER_INFO } from '../../../domain/threeds/request.js'
import { isAuthenticated, isPending } from '../../../domain/threeds/session.js'
import { CofferError, validationError } from '../../../errors.js'
import {
  authenticateByPage,
  finishByPage,
  hasSucceeded,
  isDecoupled,
  openRedirect,
  type RedirectSession,
} from '../../../operations/3ds/redirect.js'
import { answerResult, type HttpResponse } from '../../exchange.js'
import { readHeader } from '../../headers.js'
import { answerBankHtml, renderBank, renderData, renderForm } from './bank-page.js'
import { encodeMessage, sessionIdOf } from './envelope.js'
import { REDIRECT_CHALLENGE, REDIRECT_END, REDIRECT_START } from './scripts.js'
import type { Visit } from './visit.js'

const MAX_INFO = 500

export async function answerRedirect(visit: Visit): Promise<HttpResponse> {
  const { host, page, search, traceId, authenticate } = visit
  const id = sessionIdOf(page.id)
  const key = new URLSearchParams(search).get('apiKey') ?? ''
  const findCaller = key === '' ? undefined : () => authenticate(host, key, { allowsCached: false })
  const session = await openRedirect(host, id, findCaller)
  if (!isAuthenticated(session)) return answerStart(session)
  if (isChallenge(session)) return answerChallengeStage(session)
  const answer = answerResult(303, undefined)
  answer.headers.location = toHeader(callbackOf(await finishByPage(host, { id, traceId })))
  answer.headers['referrer-policy'] = 'no-referrer'
  return answer
}

export async function answerRedirectAuthenticate({ host, page, fields, request, traceId }: Visit) {
  const id = sessionIdOf(page.id)
  const accept = readHeader(request.headers, 'accept')?.slice(0, MAX_INFO)
  const deviceInfo = {
    ...readDeviceInfo(fields.get('device_info')),
    ...(accept !== undefined && { browser_accept_header: accept }),
  }
  try {
    const session = await authenticateByPage(host, { id, deviceInfo, traceId })
    if (isChallenge(session)) return answerChallengeStage(session)
    return answerEnd(await finishByPage(host, { id, traceId }))
  } catch (error) {
    if (!(error instanceof CofferError) || error.code !== 'threeds_failed') throw error
    return answerEnd(await openRedirect(host, id, undefined))
  }
}

export async function answerRedirectFinish({ host, page, traceId }: Visit): Promise<HttpResponse> {
  return answerEnd(await finishByPage(host, { id: sessionIdOf(page.id), traceId }))
}

function isChallenge(session: RedirectSession): boolean {
  return isPending(session) && !isDecoupled(session)
}

/** @throws CofferError `validation` */
function readDeviceInfo(text: string | null): Record<string, unknown> {
  const info = tryJson(text ?? '')
  const isRight = (value: unknown) =>
    typeof value === 'boolean' || (typeof value === 'string' && value.length <= MAX_INFO)
  if (isObject(info) && BROWSER_INFO.every((name) => isRight(info[name])))
    return Object.fromEntries(BROWSER_INFO.map((name) => [name, info[name]]))
  throw validationError('The form lacks the description of the browser. Does the browser run JavaScript?')
}

function answerStart({ id, base, method }: RedirectSession): HttpResponse {
  const data = { threeDSServerTransID: id, threeDSMethodNotificationURL: base + methodNotificationPath(id) }
  const step =
    method !== 'waiting'
      ? ''
      : `<iframe name="method" title="Test bank: browser data" hidden></iframe>${renderForm(
          base + METHOD_PATH,
          { threeDSMethodData: encodeMessage(data) },
          { id: 'method', target: 'method' },
        )}`
  const title = 'Loading'
  const body = `<p role="status">The page asks your bank about this payment.</p>
<noscript><p>This page needs JavaScript.</p></noscript>${step}
${renderForm(base + redirectPath(id, 'authenticate'), { device_info: '' })}`
  return answerStage(title, body, REDIRECT_START)
}

function answerChallengeStage({ id, base, authentication }: RedirectSession): HttpResponse {
  const creq = {
    messageType: 'CReq',
    messageVersion: '2.2.0',
    threeDSServerTransID: id,
    acsTransID: authentication?.acs_transaction_id,
    challengeWindowSize: '05',
  }
  const title = 'Authentication required'
  const body = `<iframe name="challenge" title="Test bank: challenge"></iframe>
${renderForm(base + CHALLENGE_PATH, { creq: encodeMessage(creq) }, { id: 'challenge', target: 'challenge' })}
${renderForm(base + redirectPath(id, 'finish'), {})}`
  return answerStage(title, body, REDIRECT_CHALLENGE)
}

function answerEnd(session: RedirectSession): HttpResponse {
  const title = hasSucceeded(session) ? 'Authentication successful' : 'Authentication failed'
  const body = `<p role="status">You return to the shop.</p>${renderData('end', { url: callbackOf(session) })}`
  return answerStage(title, body, REDIRECT_END)
}

function answerStage(title: string, body: string, script: string): HttpResponse {
  return answerBankHtml({
    title,
    body: renderBank(title, body),
    script,
    hasFrames: true,
    refusesFrames: true,
  })
}

/** Uses only stored addresses, so that a request cannot redirect the browser to another place. */
function callbackOf(session: RedirectSession): string {
  const { success, failure } = session.redirect.callback_urls
  return hasSucceeded(session) ? success : failure
}

function toHeader(url: string): string {
  return /^[\x21-\x7e]+$/.test(url) ? url : new URL(url).href
}
