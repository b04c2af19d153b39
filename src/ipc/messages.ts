/** Messages over a stream socket: the length in four bytes (big-endian), then JSON. Bounded before it is parsed. */
import type { Socket } from 'node:net'

const LENGTH_BYTES = 4

export interface Messages {
  /** The next message; undefined when the other side ended, broke the rules, or took longer than `limitMs`. */
  next(limitBytes: number, limitMs?: number): Promise<unknown>
}

/** Reads message after message; a socket has one reader. */
export function readMessages(socket: Socket): Messages {
  let parts: Buffer[] = []
  let length = 0
  let isOver = false
  let wake = () => {}
  socket.on('data', (chunk: Buffer) => {
    parts.push(chunk)
    length += chunk.length
    wake()
  })
  const end = () => {
    isOver = true
    wake()
  }
  socket.on('end', end)
  socket.on('close', end)
  socket.on('error', end)
  const take = (count: number): Buffer => {
    const all = Buffer.concat(parts)
    parts = [all.subarray(count)]
    length -= count
    return all.subarray(0, count)
  }
  const enough = async (count: number): Promise<boolean> => {
    while (length < count && !isOver) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    return length >= count
  }
  return {
    async next(limitBytes, limitMs) {
      const timer = limitMs === undefined ? undefined : setTimeout(end, limitMs)
      try {
        if (!(await enough(LENGTH_BYTES))) return undefined
        const size = take(LENGTH_BYTES).readUInt32BE()
        if (size > limitBytes || !(await enough(size))) return undefined
        return JSON.parse(take(size).toString('utf8'))
      } catch {
        // Whoever sends something else than JSON is not one of us.
        return undefined
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/** Resolves when the socket took it, or is gone. */
export function writeMessage(socket: Socket, message: unknown): Promise<void> {
  const body = Buffer.from(JSON.stringify(message), 'utf8')
  const head = Buffer.allocUnsafe(LENGTH_BYTES)
  head.writeUInt32BE(body.length)
  return new Promise((resolve) => {
    socket.write(head)
    socket.write(body, () => resolve())
  })
}
