/**
 * Sends the answer of a run to the `callback_url` of the call that started the run. The request is not signed. The
 * pauses between attempts are the same as for events of webhooks.
 */
import { formatDate } from '../domain/dates.js'
import { laneOfCallback } from '../domain/reactor/callback.js'
import type { CallbackRecord } from '../domain/records/records.js'
import { pauseAfter } from '../domain/webhook/events.js'
import type { Effects } from '../framework/context.js'
import type { Store } from '../storage/store.js'
import { post } from './post.js'
import type { Channel, Outcome } from './queue.js'

export interface CallbackOptions extends Pick<Effects, 'outbound'> {
  store: Store
}

export class CallbackChannel implements Channel<'callback'> {
  readonly kind = 'callback'
  readonly atOnce = 16
  readonly leaseMs = 60_000
  readonly putOptions = ({ expires }: CallbackRecord) => ({ expires })
  readonly #options: CallbackOptions
  readonly #stopping = new AbortController()

  constructor(options: CallbackOptions) {
    this.#options = options
  }

  laneOf({ url }: CallbackRecord): string {
    return laneOfCallback(url)
  }

  async send(tenant: number, record: CallbackRecord): Promise<Outcome<'callback'>> {
    const { url, content_type, body } = record
    const { signal } = this.#stopping
    const headers = { 'content-type': content_type, 'user-agent': 'coffer' }
    const { status, failure } = await post(await this.#options.outbound(), { url, headers, body }, signal)
    // The stopping server has aborted this attempt. The server sends the callback again after its next start.
    if (status === undefined && signal.aborted) return { change: async () => undefined }
    if (failure === undefined) return { change: (found, writer) => remove(tenant, found, writer) }
    const notice = describeFailure(record, failure)
    return {
      change: async (found, writer) => {
        const attempts = found.attempts + 1
        const pauseMs = pauseAfter(attempts)
        if (pauseMs === undefined) return remove(tenant, found, writer)
        return { ...found, attempts, due_at: formatDate(writer.now + pauseMs) }
      },
      ...(notice !== undefined && { notice: () => notice }),
    }
  }

  abort(): void {
    this.#stopping.abort()
  }
}

async function remove(
  tenant: number,
  { id }: CallbackRecord,
  writer: Parameters<Outcome<'callback'>['change']>[1],
): Promise<undefined> {
  await writer.remove('callback', tenant, id)
}

/** Describes only the first and the last failure. Omits the path of the URL, because the path may be secret. */
function describeFailure({ url, reactor_id, attempts }: CallbackRecord, failure: string): string | undefined {
  const isLast = pauseAfter(attempts + 1) === undefined
  if (attempts > 0 && !isLast) return undefined
  const next = isLast ? 'It will not be tried again.' : 'It will be tried again, for about 2½ hours.'
  return `The callback of reactor ${reactor_id} to ${laneOfCallback(url)} failed: ${failure} ${next}`
}
