/**
 * The pages of the test bank. This code decodes forms and writes HTML. The operations in `operations/3ds/` do the work.
 */
import { encodeHtml as encode } from '../../../domain/text/html.js'
import { CofferError } from '../../../errors.js'
import type { HttpRequest, HttpResponse } from '../../exchange.js'
import type { AnswererOptions } from '../../options.js'
import { readFields } from '../form.js'
import { answerBankHtml, renderBank, renderData } from './bank-page.js'
import { answerAnswer, answerChallengeFrame, answerChallengeNotification, answerCreq } from './challenge.js'
import { decodeMessage, textOf } from './envelope.js'
import { answerMethod, answerMethodFrame, answerMethodNotification } from './method.js'
import { answerRedirect, answerRedirectAuthenticate, answerRedirectFinish } from './redirect.js'
import type { BankPage, BankPageName } from './routes.js'
import { TELL } from './scripts.js'
import type { Visit } from './visit.js'

const FORM_LIMIT_BYTES = 64 * 1024

const PAGES: Record<BankPageName, (visit: Visit) => HttpResponse | Promise<HttpResponse>> = {
  methodFrame: answerMethodFrame,
  challengeFrame: answerChallengeFrame,
  method: answerMethod,
  methodNotification: answerMethodNotification,
  challenge: answerCreq,
  answer: answerAnswer,
  challengeNotification: answerChallengeNotification,
  redirect: answerRedirect,
  redirectAuthenticate: answerRedirectAuthenticate,
  redirectFinish: answerRedirectFinish,
}

/**
 * The page around the frame waits for a message from these pages. Therefore these pages also send errors as messages.
 */
const TOLD: readonly BankPageName[] = ['challenge', 'answer', 'challengeNotification']

export async function answerPageOfBank(
  { host, authenticate }: Pick<AnswererOptions, 'host' | 'authenticate'>,
  page: BankPage,
  { request, search, traceId }: Pick<Visit, 'request' | 'search' | 'traceId'>,
): Promise<HttpResponse> {
  let fields = new URLSearchParams()
  try {
    if (page.method === 'POST') fields = await readFields(request, FORM_LIMIT_BYTES)
    return await PAGES[page.name]({ host, authenticate, page, request, search, traceId, fields })
  } catch (error) {
    if (!(error instanceof CofferError) || error.status >= 500) throw error
    return answerFault(page, error, namedSession(page, fields))
  }
}

function answerFault({ name }: BankPage, { status, message }: CofferError, id: string): HttpResponse {
  const isTold = TOLD.includes(name)
  const title = 'The test bank cannot do this'
  const told = { type: 'error', isCompleted: false, id, details: message }
  const body = renderBank(title, `<p>${encode(message)}</p>${isTold ? renderData('message', told) : ''}`)
  const refusesFrames = name.startsWith('redirect')
  return answerBankHtml({ status, title, body, script: isTold ? TELL : undefined, refusesFrames })
}

export async function readNamedSession(page: BankPage, request: HttpRequest): Promise<string> {
  if (page.id !== undefined || page.method === 'GET') return page.id ?? ''
  const fields = await readFields(request, FORM_LIMIT_BYTES).catch(() => undefined)
  return fields === undefined ? '' : namedSession(page, fields)
}

function namedSession({ id }: BankPage, fields: URLSearchParams): string {
  const message = decodeMessage(fields.get('creq') ?? fields.get('threeDSMethodData'))
  return (id ?? fields.get('session') ?? textOf(message.threeDSServerTransID)).slice(0, 100)
}
