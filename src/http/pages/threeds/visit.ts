import type { Host } from '../../../framework/host.js'
import type { HttpRequest } from '../../exchange.js'
import type { AnswererOptions } from '../../options.js'
import type { BankPage } from './routes.js'

export interface Visit extends Pick<AnswererOptions, 'authenticate'> {
  host: Host
  page: BankPage
  request: HttpRequest
  search: string
  traceId: string
  fields: URLSearchParams
}
