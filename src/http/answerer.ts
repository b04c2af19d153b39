import type { HttpRequest, HttpResponse } from './exchange.js'
import type { AnswererOptions } from './options.js'
import { createRouter } from './router.js'
import { answerBankPage } from './steps/answer-bank-page.js'
import { answerElements } from './steps/answer-elements.js'
import { answerPage } from './steps/answer-page.js'
import { answerUpdaterFile } from './steps/answer-updater-file.js'
import { createAuthenticator } from './steps/authenticate.js'
import { checkHost } from './steps/check-host.js'
import { findRelay, passOn } from './steps/pass-on.js'
import { performOperation } from './steps/perform-operation.js'
import { respond } from './steps/respond.js'
import { type Answer, Exchange, inOrder } from './steps/step.js'

/** Never rejects. */
export type Answerer = (request: HttpRequest) => Promise<HttpResponse>

export function createAnswerer(options: AnswererOptions): Answerer {
  const answer = createService(options)
  return (request) => answer(new Exchange(request))
}

/** Never rejects. */
export function createService(options: AnswererOptions): Answer {
  const router = createRouter(options.registry)
  const authenticator = createAuthenticator(options)
  return inOrder(
    [
      respond(options),
      findRelay(router),
      checkHost(options.host, options.allowHosts),
      passOn(options, authenticator),
      answerBankPage(options),
      answerElements(options),
      answerUpdaterFile(options),
      answerPage(options),
    ],
    performOperation(options, router, authenticator),
  )
}
