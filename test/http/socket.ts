/** A client that sends any bytes, whether they are valid HTTP or not. This client does not use code of the server. */
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

export interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

export interface RawOptions {
  /** If true, the client sends FIN after the last byte and continues reading. */
  halfClose?: boolean
  /** The client stops reading after this time. */
  deadlineMs?: number
}

const DEADLINE_MS = 8_000

/**
 * Sends `parts` in order. Resolves with all text that the server sent until the server closed the connection or the
 * deadline passed.
 */
export async function sendRaw(
  port: number,
  parts: string | Uint8Array | readonly (string | Uint8Array)[],
  { halfClose = false, deadlineMs = DEADLINE_MS }: RawOptions = {},
): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  // If the connection is reset, the client still returns the bytes that arrived before.
  socket.on('error', () => {})
  const over = Promise.race([
    new Promise<void>((resolve) => {
      socket.once('end', resolve)
      socket.once('close', () => resolve())
    }),
    wait(deadlineMs, undefined, { ref: false }),
  ])
  const list = typeof parts === 'string' || parts instanceof Uint8Array ? [parts] : parts
  for (const part of list) if (socket.writable) await write(socket, part)
  if (halfClose) socket.end()
  await over
  socket.destroy()
  return Buffer.concat(chunks).toString('utf8')
}

function write(socket: Socket, part: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => socket.write(part, () => resolve()))
}

/** Parses `text`, which must be a sequence of responses with a content length. */
export function readAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n')
    if (end === -1) throw new Error(`this is no answer: ${rest.toString().slice(0, 200)}`)
    const [line = '', ...fields] = rest.subarray(0, end).toString().split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
    if (Number.isNaN(status)) throw new Error(`this is no status line: ${line}`)
    const headers = Object.fromEntries(
      fields.map((field) => {
        const at = field.indexOf(':')
        return [field.slice(0, at).toLowerCase(), field.slice(at + 1).trim()]
      }),
    )
    const length = Number(headers['content-length'] ?? 0)
    const body = rest.subarray(end + 4, end + 4 + length).toString()
    if (status >= 200) answers.push({ status, headers, body })
    rest = rest.subarray(end + 4 + (status >= 200 ? length : 0))
  }
  return answers
}

/** Returns the text of a request, with the content length of its body. */
export function requestText(
  line: string,
  headers: Record<string, string> = {},
  body: string | undefined = undefined,
): string {
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  const all = { Host: 'localhost', ...headers, ...length }
  const fields = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${line} HTTP/1.1\r\n${fields.join('')}\r\n${body ?? ''}`
}
