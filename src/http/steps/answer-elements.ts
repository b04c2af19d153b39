import type { AnswererOptions } from '../options.js'
import { findElements } from '../pages/elements/routes.js'
import { refuseMethod } from './respond.js'
import type { Step } from './step.js'

/** Pages load the script of the card fields without an API key. */
export function answerElements({ prefix, cors }: Pick<AnswererOptions, 'prefix' | 'cors'>): Step {
  return async (exchange, next) => {
    const { path, request, search } = exchange
    const route = findElements(path)
    if (route === undefined) return next(exchange)
    exchange.route = route
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return refuseMethod(exchange, 'GET, HEAD', cors)
    const { answerScript } = await import('../pages/elements/script.js')
    return answerScript(request, new URLSearchParams(search), prefix)
  }
}
