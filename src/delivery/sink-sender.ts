/** Sends log records to an HTTP server as lines of JSON, or to a syslog server (RFC 5424). */
import { once } from 'node:events'
import { HttpSender, hostOf } from '../client/http-sender.js'
import type { LogRecord } from '../domain/records/records.js'
import { CofferError, codeOf, usage } from '../errors.js'
import type { SinkSender } from './log-sink.js'

const ANSWER_MS = 30_000
/** Facility 13 (log audit), severity 6 (informational). */
const PRIORITY = 13 * 8 + 6
const SYSLOG_PORT = 514
const MAX_MESSAGE_ID = 32
/** A longer UDP datagram may be dropped on the way. */
const MAX_DATAGRAM_BYTES = 8192

const EXAMPLES =
  'https://logs.example.com/coffer, syslog+tcp://logs.example.com:514 or syslog+udp://localhost:514'

/** `token`: the Bearer token of HTTP requests. @throws CofferError `usage` */
export function createSinkSender(
  address: string,
  { token }: { token?: string | undefined } = {},
): SinkSender {
  const url = URL.canParse(address) ? new URL(address) : undefined
  const known = /^(https?|syslog\+(tcp|udp)):$/.exec(url?.protocol ?? '')
  if (
    url === undefined ||
    known === null ||
    url.hostname === '' ||
    url.username + url.password + url.hash !== ''
  )
    throw usage(`--log-sink takes an address without user and fragment, such as ${EXAMPLES}.`)
  const id = `${url.protocol}//${url.host}${url.pathname}`
  if (known[2] === undefined) return { id, ...overHttp(url, token) }
  return { id, close: async () => undefined, send: known[2] === 'tcp' ? overTcp(url) : overUdp(url) }
}

function overHttp(url: URL, token: string | undefined): Omit<SinkSender, 'id'> {
  const sender = new HttpSender(() => ({}))
  const headers = {
    'content-type': 'application/x-ndjson',
    'user-agent': 'coffer',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
  return {
    send: async (records, stopping) => {
      const body = records.map((record) => `${JSON.stringify(record)}\n`).join('')
      const signal = AbortSignal.any([stopping, AbortSignal.timeout(ANSWER_MS)])
      const request = { method: 'POST', target: url.pathname + url.search, headers, body, signal }
      const answer = await sender.send(url, request).catch((error) => {
        throw unreachable(url, error)
      })
      // The connection can be reused only after the whole body was read.
      answer.on('error', () => undefined).resume()
      const { statusCode = 0 } = answer
      if (statusCode < 200 || statusCode > 299)
        throw new CofferError('unavailable', `It answered with the status ${statusCode}.`)
    },
    close: () => sender.close(),
  }
}

/**
 * Opens a connection for each call, because syslog has only one acknowledgement: the sink closes the connection after
 * the sink has read everything.
 */
function overTcp(url: URL): SinkSender['send'] {
  return async (records, stopping) => {
    const { connect } = await import('node:net')
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(ANSWER_MS)])
    const socket = connect({ host: hostOf(url), port: Number(url.port) || SYSLOG_PORT })
    // The promise also rejects if the socket fails.
    const closed = once(socket, 'close', { signal })
    try {
      const lines = records.map((record) => {
        const message = Buffer.from(formatSyslog(record))
        return Buffer.concat([Buffer.from(`${message.length} `), message])
      })
      socket.end(Buffer.concat(lines))
      socket.resume()
      await closed
    } catch (error) {
      throw unreachable(url, error)
    } finally {
      closed.catch(() => undefined)
      socket.destroy()
    }
  }
}

/** UDP has no acknowledgement, so the loss of a datagram is not noticed. */
function overUdp(url: URL): SinkSender['send'] {
  return async (records) => {
    const { createSocket } = await import('node:dgram')
    const host = hostOf(url)
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    try {
      for (const record of records) {
        const bytes = Buffer.from(formatSyslog(record)).subarray(0, MAX_DATAGRAM_BYTES)
        await new Promise<void>((resolve, reject) => {
          socket.once('error', reject)
          socket.send(bytes, Number(url.port) || SYSLOG_PORT, host, (error) => {
            socket.removeAllListeners('error')
            if (error) reject(error)
            else resolve()
          })
        })
      }
    } catch (error) {
      throw unreachable(url, error)
    } finally {
      socket.close()
    }
  }
}

/** Formats a log record as a message of RFC 5424. JSON escapes all control characters. */
export function formatSyslog(record: LogRecord): string {
  const { created_at, entity_type, operation } = record
  const time = new Date(created_at).toISOString()
  const id = `${entity_type}.${operation}`.replaceAll(/[^!-~]/g, '_').slice(0, MAX_MESSAGE_ID)
  return `<${PRIORITY}>1 ${time} - coffer - ${id} - \ufeff${JSON.stringify(record)}`
}

/** Omits the message of the cause, because that message may quote the request. */
function unreachable(url: URL, error: unknown): CofferError {
  const cause = error instanceof AggregateError ? error.errors[0] : error
  const code = codeOf(cause) || (cause instanceof Error ? cause.name : '')
  return new CofferError('unavailable', `${url.host} cannot be reached (${code}).`, { cause: error })
}
