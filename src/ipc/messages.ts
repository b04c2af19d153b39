/** Messages over a stream socket, each a frame that is bounded before it is parsed. */
import type { Socket } from 'node:net'
import { encodeFrame, FrameReader } from './frames.js'

export type Messages = ReturnType<typeof readMessages>

/** Contract: a socket has one reader. */
export function readMessages(socket: Socket) {
  const reader = new FrameReader()
  let isOver = false
  let wake = () => {}
  const end = () => {
    isOver = true
    wake()
  }
  socket.on('data', (chunk: Buffer) => {
    reader.add(chunk)
    wake()
  })
  for (const event of ['end', 'close', 'error']) socket.on(event, end)
  return {
    /** The next message; undefined when the other side ended, broke the rules, or took longer than `limitMs`. */
    async next(limitBytes: number, limitMs?: number): Promise<unknown> {
      const timer = limitMs === undefined ? undefined : setTimeout(end, limitMs)
      try {
        for (;;) {
          const text = reader.next(limitBytes)
          if (text !== undefined) return JSON.parse(text.toString())
          if (isOver) return undefined
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      } catch {
        // Only a program other than Coffer sends anything but JSON.
        return undefined
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/** Resolves when the socket has accepted the message or is closed. */
export function writeMessage(socket: Socket, message: unknown): Promise<void> {
  return new Promise((resolve) => {
    socket.write(encodeFrame(message), () => resolve())
  })
}
