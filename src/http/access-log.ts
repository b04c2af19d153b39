/** The access log has one line for each request, with the pattern of the route, but no body, key, query or id. */

export interface AccessEntry {
  /** `-` if the received bytes are not a valid HTTP request. */
  method: string
  route: string
  /** For metrics. The access log does not show this name. */
  operation?: string | undefined
  status: number
  ms: number
  traceId: string
  applicationId?: string | undefined
}

export const LOG_FORMATS = ['text', 'json', 'none'] as const

export function formatEntry(entry: AccessEntry, time: number, format: 'text' | 'json'): string {
  const { method, route, status, traceId, applicationId } = entry
  const ms = Math.round(entry.ms * 100) / 100
  const at = new Date(time).toISOString()
  if (format === 'json') {
    const line = { time: at, method, route, status, ms, trace_id: traceId, application_id: applicationId }
    return `${JSON.stringify(line)}\n`
  }
  return `${at} ${method} ${route} ${status} ${ms} ms ${traceId} ${applicationId ?? '-'}\n`
}

/** At this limit of buffered text, further lines are dropped and counted. */
const MAX_WAITING_BYTES = 65_536

/** Returns a function that adds a line. Lines of the same iteration of the event loop are written together. */
export function createAccessLog(
  sink: { write(text: string): unknown; readonly writableLength: number },
  format: 'text' | 'json',
  clock: () => number,
) {
  let waiting = ''
  let dropped = 0
  const flush = () => {
    const notice = dropped === 0 ? '' : `${JSON.stringify({ dropped_lines: dropped })}\n`
    sink.write(notice + waiting)
    waiting = ''
    dropped = 0
  }
  return (entry: AccessEntry): void => {
    if (sink.writableLength + waiting.length > MAX_WAITING_BYTES) {
      dropped++
      return
    }
    if (waiting === '') setImmediate(flush)
    waiting += formatEntry(entry, clock(), format)
  }
}
