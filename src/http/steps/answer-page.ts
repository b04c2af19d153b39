import type { AnswererOptions } from '../options.js'
import { refuseMethod } from './respond.js'
import type { Step } from './step.js'

export function answerPage({ pages, forms, cors }: Pick<AnswererOptions, 'pages' | 'forms' | 'cors'>): Step {
  return async (exchange, next) => {
    const { path, request, traceId } = exchange
    const { method } = request
    const pagePath = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
    const [page, form] = [pages.get(pagePath), forms?.get(pagePath)]
    if (page === undefined && form === undefined) return next(exchange)
    exchange.route = pagePath
    const handler = method === 'POST' ? form : method === 'GET' || method === 'HEAD' ? page : undefined
    if (handler !== undefined) return handler(request, traceId)
    const allow = [page && 'GET, HEAD', form && 'POST'].filter(Boolean).join(', ')
    return refuseMethod(exchange, allow, cors)
  }
}
