/** Metrics of a server in Prometheus' text format. Metrics contain no ids, names, addresses or data. */
import type { LogSinkStatus } from '../framework/ports/log-sink.js'
import { countTriedAgain, countUntried } from '../operations/webhook/waiting.js'
import { eachRecord, readAll } from '../storage/store.js'
import type { App } from '../vault/app.js'
import { VERSION } from '../version.js'
import { BUCKETS_S, type RequestCounts } from './request-counts.js'

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
/** The indexes give the counts of these kinds, without reading the records. */
const COUNTED = ['token', 'token_intent', 'application', 'reactor', 'proxy', 'session', 'webhook'] as const
/** The vault is read at most once in this time, so that frequent requests do not slow the server down. */
const MEASURED_EVERY_MS = 1000
/** Metrics leave out further tenants. */
const MAX_TENANTS = 100

type Labels = Readonly<Record<string, string>>
type Sample = readonly [labels: Labels, value: number, suffix?: string]

export function createMetrics(app: App, requests: RequestCounts): () => Promise<string> {
  let measured: { at: number; text: Promise<string> } | undefined
  return async () => {
    const now = performance.now()
    if (measured === undefined || now - measured.at > MEASURED_EVERY_MS) {
      const text = measure(app)
      measured = { at: now, text }
      text.catch(() => {
        measured = undefined
      })
    }
    return formatRequests(requests) + (await measured.text) + formatSink(app.logSink?.status())
  }
}

function formatRequests(requests: RequestCounts): string {
  const counted: Sample[] = []
  const latency: Sample[] = []
  for (const [operation, { statuses, others, buckets, sumMs }] of requests.list()) {
    for (const [status, count] of [...statuses].sort(([one], [other]) => one - other))
      counted.push([{ operation, status: String(status) }, count])
    if (others > 0) counted.push([{ operation, status: 'other' }, others])
    let total = 0
    for (const [at, count] of buckets.entries()) {
      total += count
      latency.push([{ operation, le: String(BUCKETS_S[at] ?? '+Inf') }, total, '_bucket'])
    }
    latency.push([{ operation }, sumMs / 1000, '_sum'], [{ operation }, total, '_count'])
  }
  return (
    format('coffer_build_info', 'gauge', 'The version of the server.', [[{ version: VERSION }, 1]]) +
    format('coffer_requests_total', 'counter', 'Answered requests by operation and status.', counted) +
    format(
      'coffer_request_duration_seconds',
      'histogram',
      'The time until the answer is complete, without the time to send the answer.',
      latency,
    )
  )
}

async function measure(app: App): Promise<string> {
  const { store } = app
  const tenants = (await readAll(store, 'tenant', 0)).slice(0, MAX_TENANTS)
  const records = new Map<string, number>(COUNTED.map((kind) => [kind, 0]))
  const states = new Map(['working', 'blocked', 'failing', 'disabled'].map((state) => [state, 0]))
  const add = (counts: Map<string, number>, name: string, count: number) =>
    counts.set(name, (counts.get(name) ?? 0) + count)
  let logs = 0
  let waiting = 0
  for (const { number } of tenants)
    await store.read(async (reader) => {
      const none = { page: 1, size: 1 }
      for (const kind of COUNTED) add(records, kind, (await reader.locate(kind, number, none)).total)
      logs += (await reader.locate('log', number, none)).total
      for await (const { id, status, destination } of eachRecord(reader, 'webhook', number)) {
        add(states, status === 'disabled' ? status : (destination?.state ?? 'working'), 1)
        const hook = { tenant: number, id }
        waiting += (await countUntried(reader, hook)) + (await countTriedAgain(reader, hook))
      }
    })
  const byLabel = (name: string, counts: Map<string, number>) =>
    [...counts].map(([value, count]): Sample => [{ [name]: value }, count])
  return (
    format('coffer_records', 'gauge', 'Records by kind.', byLabel('kind', records)) +
    format('coffer_log_records', 'gauge', 'Records of the audit log.', [[{}, logs]]) +
    format('coffer_webhooks', 'gauge', 'Webhooks by state.', byLabel('state', states)) +
    format('coffer_webhook_events_waiting', 'gauge', 'Events that wait for a first or further attempt.', [
      [{}, waiting],
    ]) +
    (await measureStorage(app))
  )
}

async function measureStorage(app: App): Promise<string> {
  if (app.header === undefined) return ''
  const { storage } = await app.maintenance().describe()
  const { journal_bytes, segment_bytes, dead } = storage
  const sizes: Sample[] = [
    [{ part: 'journals' }, journal_bytes],
    [{ part: 'segments' }, segment_bytes],
  ]
  return (
    format('coffer_vault_bytes', 'gauge', 'The size of the files of the vault.', sizes) +
    format('coffer_vault_dead_rows', 'gauge', 'Replaced and deleted rows that compaction will remove.', [
      [{}, dead],
    ])
  )
}

function formatSink(status: LogSinkStatus | undefined): string {
  if (status === undefined) return ''
  const { state, behind, sent, lost, failures } = status
  return (
    format('coffer_log_sink_up', 'gauge', '1 if the log sink receives records.', [
      [{}, state === 'working' ? 1 : 0],
    ]) +
    format('coffer_log_sink_records_behind', 'gauge', 'Records that the sink has not received.', [
      [{}, behind],
    ]) +
    format('coffer_log_sink_sent_total', 'counter', 'Records that the sink has received.', [[{}, sent]]) +
    format(
      'coffer_log_sink_lost_total',
      'counter',
      'Records that were deleted before the sink received them.',
      [[{}, lost]],
    ) +
    format('coffer_log_sink_failures_total', 'counter', 'Failed attempts to send records.', [[{}, failures]])
  )
}

/** Label values are names in this program or numbers, so no value needs escaping. */
function format(name: string, type: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value, suffix = '']) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
    return `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
  })
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}
