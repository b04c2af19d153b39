/** Sends requests that fail, so that the dashboard of the demo has failures to examine. */
import { headerNames } from '../../../http/headers.js'
import type { App } from '../../../vault/app.js'
import type { SampleApplications } from '../../../vault/sample-applications.js'

const OWNER = { reveal: false }

/**
 * Sends no request to the reactor `charge` if this reactor was deleted.
 * @throws TypeError if the server cannot be reached
 */
export async function sendDemoRequests({
  app,
  url,
  prefix,
  samples,
  signal,
}: {
  app: App
  url: string
  prefix: string
  samples: SampleApplications
  signal: AbortSignal
}): Promise<void> {
  const { apiKey } = headerNames(prefix)
  const send = async (path: string, key: string, body?: object) => {
    const headers = { [apiKey]: key, 'content-type': 'application/json' }
    const method = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const answer = await fetch(`${url}${path}`, { headers, signal, ...method })
    await answer.arrayBuffer()
  }
  const { result } = await app.ask({ operation: 'reactor list', input: { name: 'charge' }, as: OWNER })
  const [charge] = result.data
  const { private: backend, public: browser } = samples
  if (backend?.key === undefined || browser?.key === undefined) return
  await send('/tokens', backend.key, { type: 'card', data: { number: '4242 4242', expiration_month: 12 } })
  await send('/tokens/card-1', browser.key)
  if (charge === undefined) return
  await send(`/reactors/${charge.id}/react`, backend.key, { args: { card: '{{ card-1 }}', amount: 1200 } })
}
