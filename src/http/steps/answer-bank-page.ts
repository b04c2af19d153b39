import type { AnswererOptions } from '../options.js'
import { findBankPage } from '../pages/threeds/routes.js'
import { refuseMethod } from './respond.js'
import type { Step } from './step.js'

/** Answers requests for the pages of the 3-D Secure test bank. These requests need no API key. */
export function answerBankPage(options: Pick<AnswererOptions, 'host' | 'authenticate' | 'cors'>): Step {
  return async (exchange, next) => {
    const page = findBankPage(exchange.path)
    if (page === undefined) return next(exchange)
    exchange.route = page.route
    const { request, search, traceId } = exchange
    const method = request.method === 'HEAD' ? 'GET' : request.method
    if (method !== page.method)
      return refuseMethod(exchange, page.method === 'GET' ? 'GET, HEAD' : 'POST', options.cors)
    const { answerPageOfBank } = await import('../pages/threeds/pages.js')
    return answerPageOfBank(options, page, { request, search, traceId })
  }
}
