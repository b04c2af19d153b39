/**
 * A load generator. The generator uses keep-alive connections with one request in progress on each connection. The
 * generator checks only the status of each response.
 */
import { connect, type Socket } from 'node:net'
import { countOvertaken, type Exchange } from '../test/support/overtaken.js'

export interface Load {
  port: number
  connections: number
  seconds: number
  /** If this number is given, the load ends after this number of requests, or earlier after `seconds`. */
  requests?: number
  /** Returns the next request as text. The load generator calls this function once for each request. */
  next(): string
  /** The HTTP status that every response must have. */
  status: number
}

export interface LoadResult {
  requests: number
  perSecond: number
  /** The median latency in ms. */
  p50: number
  p99: number
  /** The longest latency in ms. */
  worst: number
  /** The number of later requests that were answered before the most overtaken request. */
  overtaken: number
}

/** Sends the load and returns its figures. @throws Error at the first response that has another status than `status` */
export async function runLoad({
  port,
  connections,
  seconds,
  requests,
  next,
  status,
}: Load): Promise<LoadResult> {
  const until = performance.now() + seconds * 1000
  const started = performance.now()
  const exchanges: Exchange[] = []
  let left = requests ?? Number.POSITIVE_INFINITY
  const expected = `HTTP/1.1 ${status} `
  await Promise.all(
    Array.from({ length: connections }, () => {
      return runConnection(port, (socket, again) => {
        let sentAt = performance.now()
        left--
        socket.write(next())
        return (head) => {
          if (!head.startsWith(expected)) throw new Error(`expected ${status}, got ${head.slice(0, 700)}`)
          const now = performance.now()
          exchanges.push({ sentAt, answeredAt: now })
          if (now >= until || left-- <= 0) return again(false)
          sentAt = now
          socket.write(next())
        }
      })
    }),
  )
  const elapsed = (performance.now() - started) / 1000
  const latencies = exchanges.map(({ sentAt, answeredAt }) => answeredAt - sentAt).sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0
  return {
    requests: latencies.length,
    perSecond: latencies.length / elapsed,
    p50: at(0.5),
    p99: at(0.99),
    worst: latencies.at(-1) ?? 0,
    overtaken: countOvertaken(exchanges),
  }
}

type OnAnswer = (text: string) => void

/** For every complete response, calls the function that `begin` has returned. `again(false)` ends the connection. */
function runConnection(
  port: number,
  begin: (socket: Socket, again: (goesOn: boolean) => void) => OnAnswer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.setNoDelay(true)
    let onAnswer: OnAnswer | undefined
    let text = ''
    socket.once('connect', () => {
      onAnswer = begin(socket, (goesOn) => {
        if (!goesOn) socket.end()
      })
    })
    socket.on('data', (chunk) => {
      text = text === '' ? chunk.toString('latin1') : text + chunk.toString('latin1')
      const length = measureAnswer(text)
      if (length === undefined || text.length < length) return
      const answer = text.slice(0, length)
      text = text.slice(length)
      try {
        onAnswer?.(answer)
      } catch (error) {
        socket.destroy()
        reject(error)
      }
    })
    socket.once('error', reject)
    socket.once('close', () => resolve())
  })
}

/** Returns the length in bytes of the response at the start of `text`, or undefined if its headers are incomplete. */
function measureAnswer(text: string): number | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))
  return end + 4 + Number(length?.[1] ?? 0)
}
