import { FILES_ROUTE, jobOfPath } from '../../domain/updater/paths.js'
import type { AnswererOptions } from '../options.js'
import { refuseMethod } from './respond.js'
import type { Step } from './step.js'

/**
 * Receives and sends the files of the account updater. The address of a file contains a secret, so these requests need
 * no API key.
 */
export function answerUpdaterFile({ host, cors }: Pick<AnswererOptions, 'host' | 'cors'>): Step {
  return async (exchange, next) => {
    const id = jobOfPath(exchange.path)
    if (id === undefined) return next(exchange)
    exchange.route = FILES_ROUTE
    const { request } = exchange
    const isUpload = request.method === 'PUT'
    if (!isUpload && request.method !== 'GET' && request.method !== 'HEAD')
      return refuseMethod(exchange, 'GET, HEAD, PUT', cors)
    const secret = new URLSearchParams(exchange.search).get('secret') ?? ''
    const { answerDownload, answerUpload } = await import('../updater/updater-file.js')
    return isUpload ? answerUpload(host, { id, secret }, request) : answerDownload(host, { id, secret })
  }
}
