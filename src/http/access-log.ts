/**
 * One line for each request: enough to see what happened, and nothing that could be secret. Bodies, keys and queries
 * never come here; the route is the registry's pattern, not the path with its ids.
 */

export interface AccessEntry {
  method: string
  /** `/tokens/{id}`, or `-` where no route was found. */
  route: string
  status: number
  ms: number
  traceId: string
  /** The id of the application that asked; absent before its key was known. */
  applicationId?: string
}

export const LOG_FORMATS = ['text', 'json', 'none'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** `entry` as one line, its end included. `time` is ms since the epoch. */
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

/** Text waiting for a reader; beyond it lines are dropped, and how many were is said. */
const MOST_WAITING_BYTES = 65_536

export interface AccessLog {
  record(entry: AccessEntry): void
}

/** The part of a stream that lines are written to. */
export interface LineSink {
  write(text: string): unknown
  readonly writableLength: number
}

/**
 * Gathers the lines of one turn of the event loop into one write. A reader that does not read costs lines, never memory
 * nor time. `clock` is ms since the epoch.
 */
export function createAccessLog(sink: LineSink, format: 'text' | 'json', clock: () => number): AccessLog {
  let waiting = ''
  let dropped = 0
  const flush = () => {
    const notice = dropped === 0 ? '' : `${JSON.stringify({ dropped_lines: dropped })}\n`
    sink.write(notice + waiting)
    waiting = ''
    dropped = 0
  }
  return {
    record(entry) {
      if (sink.writableLength + waiting.length > MOST_WAITING_BYTES) {
        dropped++
        return
      }
      if (waiting === '') setImmediate(flush)
      waiting += formatEntry(entry, clock(), format)
    },
  }
}
