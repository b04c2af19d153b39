/** Writes an export to a new file, to standard output, or directly to a pipe or device. */
import { constants, openSync, type Stats, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { Socket } from 'node:net'
import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { pause } from '../../client/pause.js'
import { codeOf, interrupted } from '../../errors.js'
import { beginUserFile } from '../../vault/user-file.js'
import type { CommandContext } from '../context.js'
import { displayLines } from '../output/display.js'
import { isTerminal, write } from '../output/terminal.js'
import { refuseWrite } from './import-log.js'

const { O_APPEND, O_NOCTTY = 0, O_NONBLOCK = 0, O_WRONLY } = constants
const STANDARD_OUTPUT = /^\/(?:dev\/stdout|(?:dev|proc\/self)\/fd\/1)$/
const DESCRIPTOR = /^\/(?:dev|proc\/self)\/fd\/\d+$/
const RETRY_MS = 20

export interface ExportTarget {
  /** Resolves to false if the reader has closed the stream. @throws CofferError `storage_failed` */
  put(text: string): Promise<boolean>
  /** Like `put`, but writes the bytes unchanged, also on a terminal. */
  putBytes(bytes: Uint8Array): Promise<boolean>
  complete(): Promise<void>
  discard(): Promise<void>
}

/**
 * `path`: `-` is standard output.
 * @throws CofferError `conflict` for a file that exists, `storage_failed`, `interrupted`
 */
export async function openExportTarget(context: CommandContext, path: string): Promise<ExportTarget> {
  const { cwd, signal, terminal } = context
  const place = resolve(cwd, path)
  if (path === '-' || STANDARD_OUTPUT.test(place)) return writeTo(terminal.stdout)
  const stat = statSync(place, { throwIfNoEntry: false })
  if (stat?.isFIFO()) return writeToPipe(place, signal)
  if (stat !== undefined && isDirect(place, stat))
    return writeToDevice(place, await open(place, O_WRONLY | O_APPEND | O_NOCTTY).catch(refuseWrite(path)))
  const file = beginUserFile(place)
  return {
    put: async (text) => {
      file.append(Buffer.from(text))
      return true
    },
    putBytes: async (bytes) => {
      file.append(bytes)
      return true
    },
    complete: async () => file.publish(),
    discard: async () => file.discard(),
  }
}

/** `/dev/fd/3` may refer to a regular file that the shell has opened. */
function isDirect(path: string, stat: Stats): boolean {
  return stat.isCharacterDevice() || stat.isBlockDevice() || (stat.isFile() && DESCRIPTOR.test(path))
}

type Output = Parameters<typeof write>[0]

function writeTo(stream: Output): ExportTarget {
  const show = isTerminal(stream) ? displayLines : String
  return {
    put: (text) => write(stream, show(text)),
    putBytes: (bytes) => write(stream, bytes),
    complete: async () => {},
    discard: async () => {},
  }
}

function writeToDevice(path: string, file: FileHandle): ExportTarget {
  const show = isatty(file.fd) ? displayLines : String
  return {
    put: async (text) => {
      await file.appendFile(show(text)).catch(refuseWrite(path))
      return true
    },
    putBytes: async (bytes) => {
      await file.appendFile(bytes).catch(refuseWrite(path))
      return true
    },
    complete: () => file.close(),
    discard: () => file.close(),
  }
}

/** Polls, because a thread that waits in `open` would keep the process from ending. */
async function writeToPipe(path: string, signal: AbortSignal): Promise<ExportTarget> {
  for (;;) {
    if (signal.aborted) throw interrupted()
    const fd = openPipe(path)
    if (fd !== undefined) return writeToSocket(new Socket({ fd, readable: false, writable: true }))
    await pause(RETRY_MS, signal)
  }
}

/** Returns undefined while the pipe has no reader. @throws CofferError `storage_failed` */
function openPipe(path: string): number | undefined {
  try {
    return openSync(path, O_WRONLY | O_NONBLOCK)
  } catch (error) {
    if (codeOf(error) === 'ENXIO') return undefined
    return refuseWrite(path)(error)
  }
}

function writeToSocket(socket: Socket): ExportTarget {
  const end = async () => {
    if (socket.destroyed) return
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve())
      socket.end(() => socket.destroy())
    })
  }
  return { ...writeTo(socket), complete: end, discard: async () => void socket.destroy() }
}
