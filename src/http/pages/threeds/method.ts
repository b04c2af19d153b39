import { methodNotificationPath } from '../../../domain/threeds/paths.js'
import { CofferError } from '../../../errors.js'
import { completeMethodStep, findSession } from '../../../operations/3ds/pages.js'
import type { HttpResponse } from '../../exchange.js'
import { answerBankHtml, renderBank, renderData, renderForm } from './bank-page.js'
import { decodeMessage, encodeMessage, sessionIdOf, textOf } from './envelope.js'
import { CLOSE, METHOD_FRAME, SEND, TELL } from './scripts.js'
import type { Visit } from './visit.js'

const TITLE = 'Browser data'

/** web-threeds shows this page in a frame. The page shows the page of the bank in an inner frame. */
export function answerMethodFrame(): HttpResponse {
  const body = renderBank(TITLE, '<p>The test bank collects data about the browser.</p>')
  return answerBankHtml({ title: TITLE, body, script: METHOD_FRAME, hasFrames: true })
}

/**
 * Answers with a form that notifies the session of the end of the method step. Refuses any address except the
 * `method_notification_url` of the session.
 */
export async function answerMethod({ host, fields }: Visit): Promise<HttpResponse> {
  const { threeDSServerTransID, threeDSMethodNotificationURL } = decodeMessage(
    fields.get('threeDSMethodData'),
  )
  const id = sessionIdOf(threeDSServerTransID)
  const { session } = await host.store.read((reader) => findSession(reader, id))
  const url = textOf(threeDSMethodNotificationURL)
  if (url.split('?')[0] !== session.base + methodNotificationPath(id))
    throw new CofferError(
      'validation',
      'The threeDSMethodNotificationURL is not the method_notification_url of this session.',
    )
  const form = renderForm(url, { threeDSMethodData: encodeMessage({ threeDSServerTransID: id }) })
  return answerBankHtml({ title: TITLE, body: renderBank(TITLE, form), script: SEND })
}

/** A second notification changes nothing. */
export async function answerMethodNotification({
  host,
  page,
  search,
  traceId,
}: Visit): Promise<HttpResponse> {
  const id = sessionIdOf(page.id)
  await completeMethodStep(host, id, traceId)
  const message = renderData('message', { type: 'method', isCompleted: true, id })
  const body = renderBank(TITLE, `<p>The method step is done. You can close this page.</p>${message}`)
  const isWindow = new URLSearchParams(search).get('mode') === 'redirect'
  return answerBankHtml({ title: TITLE, body, script: isWindow ? CLOSE : TELL })
}
