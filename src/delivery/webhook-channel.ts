/** Sends signed events to webhooks. Calls only hosts that `--allow-net` permits, and never this server. */
import type { Signer } from '../crypto/ports.js'
import { formatDate } from '../domain/dates.js'
import { canonicalJson } from '../domain/json/json.js'
import type { DeliveryRecord, WebhookRecord } from '../domain/records/records.js'
import { pauseAfter, payloadOf } from '../domain/webhook/events.js'
import type { Effects } from '../framework/context.js'
import { keptUntil } from '../framework/events.js'
import type { DeliveryPort, Lane } from '../framework/ports/deliveries.js'
import { removeAbandoned } from '../operations/webhook/remove-webhook.js'
import { signedHeaders } from '../operations/webhook/signed-request.js'
import { disableWebhook } from '../operations/webhook/subscription.js'
import {
  dropExcess,
  type Hook,
  isKnown,
  MAX_WAITING,
  noteDestination,
  oldestBatches,
  refusalOf,
  removeTaken,
  takeEvents,
} from '../operations/webhook/waiting.js'
import type { Store, StoreWriter } from '../storage/store.js'
import { type Attempt, post } from './post.js'
import type { BatchChannel, Channel, Outcome, Taken } from './queue.js'

/** A webhook is failing after this many failed attempts in a row. */
const FAILING_AFTER = 100
/** Must be shorter than 30 s, because the queue takes an event of a failing webhook every 30 s. */
const FAILING_PAUSE_MS = 20_000
/** The waiting events of a webhook are counted again after at least this many new events. */
const COUNTED_EVERY = MAX_WAITING / 10
const BATCHES = 16
/** The shortest time between two notices about dropped events of a webhook. */
const NOTICE_EVERY_MS = 10 * 60_000

export interface WebhookOptions extends Pick<Effects, 'outbound' | 'createUuid'> {
  store: Store
  silenceOf: DeliveryPort['silenceOf']
  signer(): Promise<Signer>
  prefix(): string
}

/** The state of a webhook in this process. Times are ms since the epoch. */
interface Experience {
  /** The number of failed attempts in a row. `failingSince`: the time of the first failure. */
  failures: number
  failingSince: number
  hasRefusalNotice: boolean
  /** The number of events that were dropped since `droppedNoticeAt`. */
  dropped: number
  droppedNoticeAt: number
}

const NOTHING: Taken<'delivery'> = { records: [], left: [], more: 'none' }

export class WebhookChannel implements Channel<'delivery'> {
  readonly kind = 'delivery'
  readonly atOnce = 16
  readonly leaseMs = 60_000
  readonly putOptions = keptUntil
  readonly batches: BatchChannel<'delivery'>
  readonly #options: WebhookOptions
  readonly #stopping = new AbortController()
  readonly #experience = new Map<string, Experience>()

  constructor(options: WebhookOptions) {
    this.#options = options
    this.batches = {
      boundAfter: COUNTED_EVERY,
      lanesOf: ({ webhooks = {} }) => Object.keys(webhooks),
      whereLane: (value) => ({ field: 'webhook', value }),
      take: (lane, from) => this.#take(hookOf(lane), from),
      bound: (lane) => this.#bound(hookOf(lane)),
      tidy: async (tenant) => {
        await removeTaken(options.store, tenant)
        await removeAbandoned(options, tenant)
      },
    }
  }

  laneOf({ webhook_id }: DeliveryRecord): string {
    return webhook_id
  }

  async send(tenant: number, record: DeliveryRecord): Promise<Outcome<'delivery'>> {
    const hook = { tenant, id: record.webhook_id }
    const { webhook, now } = await this.#read(hook)
    if (webhook?.listener !== undefined) return { change: async () => undefined, closes: true }
    if (webhook?.status !== 'enabled' || record.queued_at < webhook.enabled_at)
      return { change: async ({ due_at: _, ...found }) => ({ ...found, state: 'dropped' }) }
    const attempted_at = formatDate(now)
    const attempt = await this.#post(webhook.url, canonicalJson(payloadOf({ ...record, attempted_at })))
    if (attempt.status === undefined && this.#stopping.signal.aborted)
      return { change: async (found) => ({ ...found, due_at: attempted_at }) }
    if (attempt.isRefused) return this.#refused(hook, webhook, attempt.failure!, now)
    const tried = ({ due_at: _, status: __, answer: ___, failure: ____, ...found }: DeliveryRecord) => {
      return { ...found, ...attempt, attempts: found.attempts + 1, attempted_at }
    }
    return attempt.failure === undefined
      ? this.#received(hook, webhook, tried)
      : this.#failed(hook, webhook, attempt.failure, now, tried)
  }

  abort(): void {
    this.#stopping.abort()
  }

  #received(hook: Hook, { destination }: WebhookRecord, tried: Tried): Outcome<'delivery'> {
    Object.assign(this.#know(hook), { failures: 0, hasRefusalNotice: false })
    return {
      change: async (found, writer) => {
        if (destination !== undefined) await noteDestination(writer, hook, undefined)
        return { ...tried(found), state: 'sent' }
      },
      opens: destination !== undefined,
    }
  }

  #failed(
    hook: Hook,
    webhook: WebhookRecord,
    failure: string,
    now: number,
    tried: Tried,
  ): Outcome<'delivery'> {
    const { createUuid } = this.#options
    const experience = this.#know(hook)
    if (experience.failures === 0) experience.failingSince = now
    experience.failures++
    const since = formatDate(experience.failingSince)
    const isNews = experience.failures >= FAILING_AFTER && webhook.destination?.state !== 'failing'
    // Reset, so that other attempts in progress do not report the failing webhook too.
    if (isNews) experience.failures = 0
    const notice = () =>
      `Webhook "${webhook.name}": ${FAILING_AFTER} attempts in a row failed. ${failure} Until an attempt succeeds, ` +
      `new events are tried one at a time, every 30 s. See: coffer webhook get ${hook.id}`
    return {
      change: async (found, writer, enqueue) => {
        if (isNews) await noteDestination(writer, hook, { state: 'failing', since, failure })
        const attempted = tried(found)
        const pauseMs = pauseAfter(attempted.attempts)
        if (pauseMs !== undefined) return { ...attempted, due_at: formatDate(writer.now + pauseMs) }
        const { trace_id } = found.event
        const mail = await disableWebhook({ store: writer, createUuid }, hook.tenant, {
          id: hook.id,
          trace_id,
        })
        // The queue then drops the waiting events of the disabled webhook.
        enqueue([...mail, { kind: 'delivery', tenant: hook.tenant, lane: hook.id }])
        return { ...attempted, state: 'failed' }
      },
      ...(isNews && { notice }),
    }
  }

  /** Nothing was sent to a refused address, so the delivery does not change. */
  #refused(hook: Hook, webhook: WebhookRecord, failure: string, now: number): Outcome<'delivery'> {
    const notice = this.#noticeOfRefusal(hook, webhook, failure)
    return {
      change: async (_, writer) => {
        await noteDestination(writer, hook, { state: 'blocked', since: formatDate(now), failure })
        return undefined
      },
      closes: true,
      ...(notice !== undefined && { notice: () => notice }),
    }
  }

  /** Returns undefined if the operator has already got this notice since the last successful attempt. */
  #noticeOfRefusal(hook: Hook, { name }: WebhookRecord, failure: string): string | undefined {
    const experience = this.#know(hook)
    if (experience.hasRefusalNotice) return undefined
    experience.hasRefusalNotice = true
    return `Webhook "${name}": ${failure}`
  }

  async #take(hook: Hook, from: { ids: readonly string[]; most: number }): Promise<Taken<'delivery'>> {
    const { store } = this.#options
    const size = Math.min(BATCHES, from.most)
    const { webhook, now, ids } = await store.read(async (reader) => ({
      webhook: await reader.get('webhook', hook.tenant, hook.id),
      now: reader.now,
      ids: from.ids.length > 0 ? from.ids : (await oldestBatches(reader, hook, size)).map(({ id }) => id),
    }))
    if (webhook === undefined) this.#experience.delete(keyOf(hook))
    if (webhook === undefined || ids.length === 0) return NOTHING
    if (webhook.listener !== undefined) return { ...NOTHING, closes: true }
    const failure =
      webhook.status === 'enabled' ? refusalOf(await this.#options.outbound(), webhook.url) : undefined
    if (failure !== undefined) {
      const notice = this.#noticeOfRefusal(hook, webhook, failure)
      const destination = { state: 'blocked', since: formatDate(now), failure } as const
      if (!isKnown(webhook.destination, destination))
        await store.write((writer) => noteDestination(writer, hook, destination))
      return { ...NOTHING, closes: true, ...(notice !== undefined && { notice }) }
    }
    const { taken, left, isHeld } = await store.write(
      (writer) => this.#takeOf(writer, hook, ids, from.most),
      'soon',
    )
    const mayHaveMore = left.length > 0 || (from.ids.length === 0 && ids.length === size)
    return { records: taken, left, more: isHeld ? 'later' : mayHaveMore ? 'now' : 'none' }
  }

  /** Takes events of a webhook out of their batches. If the webhook is failing, takes one event after each pause. */
  async #takeOf(store: StoreWriter, hook: Hook, ids: readonly string[], most: number) {
    const leaseMs = this.#options.store.isShared ? this.leaseMs : 0
    const { destination, status } = (await store.get('webhook', hook.tenant, hook.id)) ?? {}
    if (destination?.state !== 'failing' || status !== 'enabled')
      return { ...(await takeEvents(store, hook, ids, { most, leaseMs })), isHeld: false }
    if (Date.parse(destination.next_attempt_at ?? '') > store.now)
      return { taken: [], left: [...ids], isHeld: true }
    const next_attempt_at = formatDate(store.now + FAILING_PAUSE_MS)
    await noteDestination(store, hook, { ...destination, next_attempt_at })
    return { ...(await takeEvents(store, hook, ids, { most: 1, leaseMs })), isHeld: true }
  }

  async #bound(hook: Hook): Promise<{ next: number; notice?: string | undefined }> {
    const { store, createUuid } = this.#options
    const { dropped, spare } = await dropExcess(store, hook, createUuid)
    // The events are counted again before `spare` is used up, because other servers of a shared store add events too.
    const next = Math.max(COUNTED_EVERY, spare / 2)
    return { next, notice: dropped === 0 ? undefined : await this.#noticeOfDrop(hook, dropped) }
  }

  async #noticeOfDrop(hook: Hook, count: number): Promise<string | undefined> {
    const { webhook, now } = await this.#read(hook)
    const experience = this.#know(hook)
    experience.dropped += count
    if (webhook === undefined || Math.abs(now - experience.droppedNoticeAt) < NOTICE_EVERY_MS)
      return undefined
    const { dropped } = experience
    Object.assign(experience, { dropped: 0, droppedNoticeAt: now })
    const oldest = dropped === 1 ? 'oldest was' : `oldest ${dropped} were`
    return (
      `Webhook "${webhook.name}": more than ${MAX_WAITING} events wait for it, so the ${oldest} dropped ` +
      `and will not be sent. See: coffer webhook get ${hook.id}`
    )
  }

  #read(hook: Hook) {
    return this.#options.store.read(async (reader) => ({
      webhook: await reader.get('webhook', hook.tenant, hook.id),
      now: reader.now,
    }))
  }

  #know(hook: Hook): Experience {
    const fresh = {
      failures: 0,
      failingSince: 0,
      hasRefusalNotice: false,
      dropped: 0,
      droppedNoticeAt: Number.NEGATIVE_INFINITY,
    }
    const known = this.#experience.get(keyOf(hook)) ?? fresh
    this.#experience.set(keyOf(hook), known)
    return known
  }

  async #post(url: string, text: string): Promise<Attempt> {
    const { signer, outbound, prefix } = this.#options
    const headers = signedHeaders(await signer(), prefix(), text)
    return post(await outbound(), { url, headers, body: text }, this.#stopping.signal)
  }
}

type Tried = (found: DeliveryRecord) => DeliveryRecord

const hookOf = ({ tenant, lane }: Lane): Hook => ({ tenant, id: lane })

const keyOf = ({ tenant, id }: Hook) => `${tenant}/${id}`
