/** The script of the card fields, with the address of this server. */
import { readFileSync } from 'node:fs'
import { findAsset } from '../../../assets.js'
import { CofferError } from '../../../errors.js'
import { answerText, type HttpRequest, type HttpResponse } from '../../exchange.js'
import { HttpOrigin } from '../../origin.js'

/** The address of the hosted API, which `coffer/playwright` routes to this server. */
const ROUTED_API = 'https://js.basistheory.com/api'

/**
 * Query parameters: with `frame=true`, each field is in a frame. With `routed=true`, the fields send their requests to
 * the hosted address.
 */
export function answerScript(request: HttpRequest, query: URLSearchParams, prefix: string): HttpResponse {
  const url = query.get('routed') === 'true' ? ROUTED_API : new HttpOrigin(request).base
  if (url === undefined) throw new CofferError('validation', 'The header Host has to name this server.')
  const given = { url, prefix, frame: query.get('frame') === 'true' }
  const program = readFileSync(findAsset('elements.js'), 'utf8').trim().replace(/;$/, '')
  const answer = answerText(200, 'text/javascript; charset=utf-8', `${program}(${JSON.stringify(given)})\n`)
  // A page that isolates itself (COEP) loads only resources with this header.
  answer.headers['cross-origin-resource-policy'] = 'cross-origin'
  return answer
}
