import type { RequestOrigin } from '../framework/context.js'
import type { HttpRequest } from './exchange.js'
import { readHeader } from './headers.js'

/**
 * Matches a Host header from which the server builds addresses. Any other text could make an address of another server.
 */
const HOST = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

export class HttpOrigin implements RequestOrigin {
  readonly #request: HttpRequest

  constructor(request: HttpRequest) {
    this.#request = request
  }

  get base(): string | undefined {
    const { headers, isSecure = false, origin } = this.#request
    if (origin !== undefined) return origin
    const host = readHeader(headers, 'host')
    return host !== undefined && HOST.test(host) ? `${isSecure ? 'https' : 'http'}://${host}` : undefined
  }

  get accept(): string | undefined {
    return readHeader(this.#request.headers, 'accept')
  }
}
