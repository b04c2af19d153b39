/** Events to webhooks, signed, by the outbound sender of proxies: only to hosts of --allow-net, and never to this server. */
import type { Signer } from '../crypto/ports.js'
import { formatDate } from '../domain/dates.js'
import { canonicalJson } from '../domain/json/json.js'
import type { DeliveryRecord, WebhookRecord } from '../domain/records/records.js'
import { pauseAfter, payloadOf } from '../domain/webhook/events.js'
import { CofferError } from '../errors.js'
import type { Effects } from '../framework/context.js'
import { keptUntil } from '../framework/events.js'
import { disableWebhook } from '../operations/webhook/subscription.js'
import type { Store } from '../storage/store.js'
import type { Channel, Outcome } from './queue.js'

const ANSWER_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_ANSWER_CHARACTERS = 2000
/** The shortest pause before an address that may not be called is tried again. The pause grows with the age of an event. */
const REFUSED_MS = 60_000

export interface WebhookOptions extends Pick<Effects, 'outbound' | 'createUuid'> {
  store: Store
  signer(): Promise<Signer>
  /** The beginning of the names of our headers. */
  prefix(): string
}

type Attempt = Pick<DeliveryRecord, 'status' | 'answer' | 'failure'> & { isRefused?: boolean }

export class WebhookChannel implements Channel<'delivery'> {
  readonly kind = 'delivery'
  readonly atOnce = 16
  readonly leaseMs = 60_000
  readonly putOptions = keptUntil
  readonly #options: WebhookOptions
  readonly #stopping = new AbortController()
  /** Webhooks whose addresses may not be called, which the operator was told of. */
  readonly #refused = new Set<string>()

  constructor(options: WebhookOptions) {
    this.#options = options
  }

  laneOf({ webhook_id }: DeliveryRecord): string {
    return webhook_id
  }

  async send(tenant: number, record: DeliveryRecord): Promise<Outcome<'delivery'>> {
    const { store, createUuid } = this.#options
    const { webhook_id: id, queued_at } = record
    const [hook, now] = await store.read(async (reader) => [
      await reader.get('webhook', tenant, id),
      formatDate(reader.now),
    ])
    if (hook?.status !== 'enabled' || queued_at < hook.enabled_at)
      return { change: async ({ due_at: _, ...found }) => ({ ...found, state: 'dropped' }) }
    const attempt = await this.#post(hook.url, canonicalJson(payloadOf({ ...record, attempted_at: now })))
    if (attempt.status === undefined && this.#stopping.signal.aborted)
      return { change: async (found) => ({ ...found, due_at: now }) }
    if (attempt.isRefused) return this.#postpone(hook, attempt.failure!)
    return {
      change: async ({ due_at: _, status: __, answer: ___, failure: ____, ...found }, writer, enqueue) => {
        const tried = { ...found, ...attempt, attempts: found.attempts + 1, attempted_at: now }
        if (tried.failure === undefined) return { ...tried, state: 'sent' }
        const pauseMs = pauseAfter(tried.attempts)
        if (pauseMs !== undefined) return { ...tried, due_at: formatDate(writer.now + pauseMs) }
        enqueue(await disableWebhook({ store: writer, createUuid }, tenant, id))
        return { ...tried, state: 'failed' }
      },
    }
  }

  abort(): void {
    this.#stopping.abort()
  }

  /** That an address may not be called is no attempt. The operator is told once. */
  #postpone({ id, name }: WebhookRecord, failure: string): Outcome<'delivery'> {
    const notice = this.#refused.has(id) ? {} : { notice: () => `Webhook "${name}": ${failure}` }
    this.#refused.add(id)
    return {
      change: async (found, { now }) => {
        const pauseMs = Math.max(REFUSED_MS, now - Date.parse(found.created_at))
        return { ...found, failure, due_at: formatDate(now + pauseMs) }
      },
      isOfLane: true,
      ...notice,
    }
  }

  async #post(url: string, text: string): Promise<Attempt> {
    const { signer, outbound, prefix } = this.#options
    const { pathname, search } = new URL(url)
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'coffer',
      [`${prefix()}-signature-version`]: 'v1',
      [`${prefix()}-signature`]: (await signer()).sign(text),
    }
    const late = AbortSignal.timeout(ANSWER_MS)
    const ended = AbortSignal.any([late, this.#stopping.signal])
    const left = (listener: () => void) => ended.addEventListener('abort', listener)
    const request = { method: 'POST', target: `${pathname}${search}`, headers, body: Buffer.from(text) }
    try {
      const destination = (await outbound()).reach(new URL(url))
      const { status, collect } = await destination.send(request, { sent: () => undefined, left })
      const read = collect(MAX_ANSWER_BYTES).catch(() => undefined)
      const body = await Promise.race([
        read,
        new Promise<undefined>((resolve) => left(() => resolve(undefined))),
      ])
      const answer = Buffer.from(body ?? [])
        .toString()
        .slice(0, MAX_ANSWER_CHARACTERS)
      return { status, answer, ...(status > 299 && { failure: `The answer has the status ${status}.` }) }
    } catch (error) {
      if (late.aborted) return { failure: `There was no answer within ${ANSWER_MS / 1000} s.` }
      if (!(error instanceof CofferError)) throw error
      return { failure: error.message, ...(error.code === 'forbidden' && { isRefused: true }) }
    }
  }
}
