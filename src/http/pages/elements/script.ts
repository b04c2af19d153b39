import { readFileSync } from 'node:fs'
import { findAsset } from '../../../assets.js'
import { CofferError } from '../../../errors.js'
import { answerText, type HttpRequest, type HttpResponse } from '../../exchange.js'
import { HttpOrigin } from '../../origin.js'

/** The address of the hosted API, which `coffer/playwright` routes to this server. */
const ROUTED_API = 'https://js.basistheory.com/api'

/**
 * Query parameters: `frame=true` puts each field into a frame. `routed=true` makes the fields send requests to the
 * address of the hosted API.
 */
export function answerScript(request: HttpRequest, query: URLSearchParams, prefix: string): HttpResponse {
  const url = query.get('routed') === 'true' ? ROUTED_API : new HttpOrigin(request).base
  if (url === undefined) throw new CofferError('validation', 'The header Host has to name this server.')
  const given = { url, prefix, frame: query.get('frame') === 'true' }
  const program = readFileSync(findAsset('elements.js'), 'utf8').trim().replace(/;$/, '')
  const answer = answerText(200, 'text/javascript; charset=utf-8', `${program}(${JSON.stringify(given)})\n`)
  // A page with COEP loads only resources with this header.
  answer.headers['cross-origin-resource-policy'] = 'cross-origin'
  return answer
}
