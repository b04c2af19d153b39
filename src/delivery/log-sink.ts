/**
 * Sends the audit log to a sink. For each tenant, the vault stores the position of the last record that the sink has
 * received. After a crash of the server or the sink, sending continues after this position, so records may be sent
 * twice.
 */
import { formatDate } from '../domain/dates.js'
import type { LogRecord, TenantRecord } from '../domain/records/records.js'
import { CofferError } from '../errors.js'
import type { LogSinkPort, LogSinkStatus } from '../framework/ports/log-sink.js'
import { readAll, type Store } from '../storage/store.js'

const AT_ONCE = 100
const READ_EVERY_MS = 500
/** A stopping server sends the remaining records for at most this time. A vault in memory loses the unsent records. */
const LAST_MS = 400
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000

export interface SinkSender {
  readonly id: string
  /** Resolves when the sink has received the records. @throws CofferError `unavailable` */
  send(records: readonly LogRecord[], signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

export interface LogSinkOptions {
  store: Store
  sender: SinkSender
  notice(text: string): void
  /** Resolves after `ms`, or when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<unknown>
}

export class LogSink implements LogSinkPort {
  readonly #options: LogSinkOptions
  readonly #status: LogSinkStatus
  #failedInRow = 0

  constructor(options: LogSinkOptions) {
    this.#options = options
    const { id } = options.sender
    this.#status = { id, state: 'starting', behind: 0, sent: 0, lost: 0, failures: 0 }
  }

  status(): LogSinkStatus {
    return { ...this.#status }
  }

  /** Sends records until `signal` is aborted, and then the remaining records for at most {@link LAST_MS}. */
  async run(signal: AbortSignal): Promise<void> {
    const { wait, sender } = this.#options
    while (!signal.aborted) {
      const pauseMs = await this.#pass(signal)
      if (pauseMs > 0) await wait(pauseMs, signal)
    }
    const last = new AbortController()
    const timer = setTimeout(() => last.abort(), LAST_MS)
    let isDone = this.#status.state === 'failing'
    while (!isDone && !last.signal.aborted) isDone = (await this.#pass(last.signal)) > 0
    clearTimeout(timer)
    await sender.close()
  }

  /** Sends a part of each tenant's log. Returns the pause before the next pass, ms. */
  async #pass(signal: AbortSignal): Promise<number> {
    try {
      await this.#options.store.sealPending()
      const tenants = await readAll(this.#options.store, 'tenant', 0)
      let behind = 0
      let sent = 0
      for (const tenant of tenants) {
        if (signal.aborted) return 0
        const part = await this.#sendPart(tenant, signal)
        behind += part.left
        sent += part.sent
      }
      this.#status.behind = behind
      if (this.#failedInRow === 0 && this.#status.state !== 'working') this.#status.state = 'working'
      return sent > 0 ? 0 : READ_EVERY_MS
    } catch (error) {
      if (signal.aborted) return 0
      return this.#fail(error)
    }
  }

  async #sendPart({ number }: TenantRecord, signal: AbortSignal): Promise<{ sent: number; left: number }> {
    const { store, sender } = this.#options
    const { id } = sender
    const part = await store.read(async (reader) => {
      // The tenant may have been deleted meanwhile, together with its log.
      if ((await reader.get('tenant', 0, String(number))) === undefined) return undefined
      const { position = {} } = (await reader.get('log_sink', number, id)) ?? {}
      return reader.readLogAfter(number, position, AT_ONCE)
    })
    if (part === undefined) return { sent: 0, left: 0 }
    const { records, position, lost, left } = part
    if (records.length === 0) return { sent: 0, left }
    this.#status.behind = Math.max(this.#status.behind, records.length + left)
    await sender.send(records, signal)
    await store.write(async (writer) => {
      if ((await writer.get('tenant', 0, String(number))) === undefined) return
      const isKnown = (await writer.get('log_sink', number, id)) !== undefined
      const record = { id, position: { ...position } }
      if (isKnown) await writer.replace('log_sink', number, record)
      else await writer.insert('log_sink', number, record)
    }, 'soon')
    this.#succeed(records.length, lost, await store.read(async ({ now }) => now))
    return { sent: records.length, left }
  }

  #succeed(count: number, lost: number, now: number): void {
    const { notice } = this.#options
    if (this.#failedInRow > 0) notice(`The log sink ${this.#status.id} receives records again.`)
    const records = lost === 1 ? '1 log record was' : `${lost} log records were`
    if (lost > 0) notice(`${records} deleted because of age before the log sink received them.`)
    this.#failedInRow = 0
    const { failure: _, ...status } = this.#status
    const { sent } = status
    delete this.#status.failure
    Object.assign(this.#status, {
      state: 'working',
      sent: sent + count,
      lost: status.lost + lost,
      last_sent_at: formatDate(now),
    })
  }

  #fail(error: unknown): number {
    // The message of any other error may contain log data.
    const failure = error instanceof CofferError ? error.message : 'The log cannot be read or sent.'
    if (this.#failedInRow === 0)
      this.#options.notice(
        `The log sink ${this.#status.id} receives nothing. ${failure} Records wait in the log. Trying again.`,
      )
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failedInRow, 10))
    this.#failedInRow++
    Object.assign(this.#status, { state: 'failing', failure, failures: this.#status.failures + 1 })
    return pauseMs
  }
}
