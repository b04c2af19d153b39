/** Reads values from files, standard input and descriptors, limits their size and decodes them. */
import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  openSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs'
import { resolve } from 'node:path'
import { collectBytes } from '../../domain/collect-bytes.js'
import { decodeUtf8 } from '../../domain/json/json.js'
import { CofferError, codeOf, usage } from '../../errors.js'
import type { InputStream } from '../output/terminal.js'

/** The part of an open file that is used here; a `FileHandle` of node:fs/promises is one. */
export interface OpenFile {
  read(target: Uint8Array, offset: number, length: number): Promise<{ bytesRead: number }>
  stat(): Promise<Pick<Stats, 'mode' | 'isFile' | 'size'>>
  close(): Promise<void>
}

/** The port to the disk; `openDescriptor` streams a descriptor without closing it. */
export interface InputFiles {
  open(path: string, flags: number): Promise<OpenFile>
  openDescriptor(descriptor: number): AsyncIterable<Uint8Array>
}

export const diskFiles: InputFiles = {
  open: async (path, flags) => {
    if ((flags & (constants.O_NONBLOCK ?? 0)) !== 0) return openAtOnce(path, flags)
    return statSync(path).isFIFO() ? openPipe(path) : (await import('node:fs/promises')).open(path, flags)
  },
  openDescriptor: (descriptor) => createReadStream('', { fd: descriptor, autoClose: false }),
}

/** A file opened non-blocking is read synchronously, which avoids starting a thread pool. */
function openAtOnce(path: string, flags: number): OpenFile {
  const file = openSync(path, flags)
  return {
    read: async (target, offset, length) => ({ bytesRead: readSync(file, target, offset, length, null) }),
    stat: async () => fstatSync(file),
    close: async () => closeSync(file),
  }
}

/** Waits for a writer in the event loop. In a thread, a pending open or read would keep the process from ending. */
async function openPipe(path: string): Promise<OpenFile> {
  const { Socket } = await import('node:net')
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const stat = fstatSync(fd)
  const socket = new Socket({ fd, readable: true, writable: false })
  const chunks = socket[Symbol.asyncIterator]()
  let rest: Uint8Array = new Uint8Array()
  return {
    read: async (target, offset, length) => {
      if (rest.length === 0) rest = (await chunks.next()).value ?? rest
      const part = rest.subarray(0, length)
      rest = rest.subarray(part.length)
      target.set(part, offset)
      return { bytesRead: part.length }
    },
    stat: async () => stat,
    close: async () => void socket.destroy(),
  }
}

/** `flag` is the flag or argument with the source, for error messages. */
export interface InputReader {
  /**
   * The text of a source: `@path` reads a file, `-` or `@-` standard input, `@@x` is `@x`, any other source is the text
   * itself. Removes a byte order mark and one final line break of a file or standard input.
   * @throws CofferError `usage`, `too_large` beyond {@link VALUE_LIMIT_BYTES}, `validation` for invalid UTF-8
   */
  readValue(source: string, flag: string): Promise<string>
  /** The unchanged text of a file; `-` is standard input. @throws CofferError like {@link InputReader.readValue} */
  readFile(path: string, flag: string): Promise<string>
  /** The bytes of a file, or of standard input (`-`), as they come. @throws CofferError `usage` */
  openStream(path: string, flag: string): Promise<ByteStream>
  /** Whether standard input was already read. */
  readonly isStdinTaken: boolean
  /** The first line of a file, no link, of its owner alone. @throws CofferError `vault_exposed`, `usage` */
  readSecretFile(path: string, flag: string): Promise<string>
  /** The first line of standard input. @throws CofferError `usage` */
  readStdinLine(flag: string): Promise<string>
  /** Standard input itself, for `flag` alone. @throws CofferError `usage` if it was already read */
  claimStdin(flag: string): InputStream
  /** The first line of a descriptor. @throws CofferError `usage` */
  readDescriptor(descriptor: number, flag: string): Promise<string>
}

/** `size`: of a file, in bytes. `close` also ends a read that is waiting, with an error. */
export interface ByteStream {
  chunks: AsyncIterable<Uint8Array>
  size?: number
  close(): Promise<void>
}

/** Whether `text` names a source instead of being the value. */
export function isSource(text: string): boolean {
  return text === '-' || (text.startsWith('@') && !text.startsWith('@@'))
}

/** The text of an answer to a prompt, in which `@path` reads a file. @throws CofferError `usage` */
export async function readAnswer(input: InputReader, answer: string, flag: string): Promise<string> {
  // Standard input is the terminal of the prompt.
  return answer.startsWith('@') && answer !== '@-' ? input.readValue(answer, flag) : answer
}

/** 1 MiB, the default limit of a request body. */
export const VALUE_LIMIT_BYTES = 1024 * 1024
/** Enough for a passphrase of 1,024 characters. */
export const SECRET_LIMIT_BYTES = 4096

const BYTE_ORDER_MARK = /^\ufeff/

/** Standard input can be read once; the error of a second read names both flags. */
export function createInputReader(sources: {
  cwd: string
  streams: { readonly stdin: InputStream }
  files?: InputFiles
}): InputReader {
  const { cwd, streams, files = diskFiles } = sources
  let reader: string | undefined

  function takeStdin(flag: string): InputStream {
    if (reader !== undefined) {
      const both = reader === flag ? `${flag} twice` : `${reader} and ${flag}`
      throw usage(`Standard input was given to ${both}. Give one of them as a file.`)
    }
    reader = flag
    return streams.stdin
  }

  /** `path` undefined is standard input. */
  async function read(path: string | undefined, flag: string): Promise<{ name: string; bytes: Uint8Array }> {
    const place = path ?? 'standard input'
    const name = place === flag ? place : `${flag} (${place})`
    if (path === undefined) return { name, bytes: await collect(takeStdin(flag), name) }
    if (path === '') throw usage(`${flag} names no file.`)
    const file = await openFile(files, resolve(cwd, path), name, constants.O_RDONLY)
    return { name, bytes: await closing(file, () => collect(chunksOf(file), name)) }
  }

  return {
    async readValue(source, flag) {
      if (source.startsWith('@@')) return source.slice(1)
      if (!isSource(source)) return source
      const path = source === '-' || source === '@-' ? undefined : source.slice(1)
      const { name, bytes } = await read(path, flag)
      return decodeUtf8(bytes, name)
        .replace(BYTE_ORDER_MARK, '')
        .replace(/\r?\n$/, '')
    },

    async readFile(path, flag) {
      const { name, bytes } = await read(path === '-' ? undefined : path, flag)
      return decodeUtf8(bytes, name)
    },

    async openStream(path, flag) {
      if (path === '-') {
        const stdin = takeStdin(flag)
        return { chunks: guard(stdin, 'standard input'), close: async () => void stdin.destroy() }
      }
      const name = `${flag} (${path})`
      const file = await openFile(files, resolve(cwd, path), name, constants.O_RDONLY)
      const { size } = await file.stat()
      return { chunks: guard(chunksOf(file), name), size, close: () => file.close() }
    },

    get isStdinTaken() {
      return reader !== undefined
    },

    readSecretFile: (path, flag) => readSecretFile(files, resolve(cwd, path), `${flag} (${path})`),

    claimStdin: takeStdin,

    async readStdinLine(flag) {
      return readFirstLine(takeStdin(flag), `${flag} (standard input)`)
    },
    async readDescriptor(descriptor, flag) {
      const name = `${flag} (descriptor ${descriptor})`
      if (!Number.isInteger(descriptor) || descriptor < 0)
        throw usage(`${flag} takes the number of an open descriptor.`)
      return readFirstLine(descriptor === 0 ? takeStdin(flag) : files.openDescriptor(descriptor), name)
    },
  }
}

async function readSecretFile(files: InputFiles, path: string, name: string): Promise<string> {
  // Without O_NONBLOCK, opening a named pipe would block until it has a writer.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
  const file = await openFile(files, path, name, flags)
  return closing(file, async () => {
    refuseExposed(await file.stat(), name)
    return readFirstLine(chunksOf(file), name)
  })
}

async function openFile(files: InputFiles, path: string, name: string, flags: number): Promise<OpenFile> {
  try {
    return await files.open(path, flags)
  } catch (error) {
    throw unreadable(error, name)
  }
}

async function closing<T>(file: OpenFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } finally {
    await file.close()
  }
}

async function* chunksOf(file: OpenFile): AsyncGenerator<Uint8Array> {
  for (;;) {
    const chunk = new Uint8Array(64 * 1024)
    const { bytesRead } = await file.read(chunk, 0, chunk.length)
    if (bytesRead === 0) return
    yield chunk.subarray(0, bytesRead)
  }
}

async function collect(chunks: AsyncIterable<Uint8Array | string>, name: string): Promise<Uint8Array> {
  const bytes = await collectBytes(guard(chunks, name), VALUE_LIMIT_BYTES)
  if (bytes !== undefined) return bytes
  throw new CofferError('too_large', `${name} is larger than the limit of ${VALUE_LIMIT_BYTES} bytes.`)
}

/** The line without its line break; wipes the bytes it was read from. */
async function readFirstLine(chunks: AsyncIterable<Uint8Array | string>, name: string): Promise<string> {
  const line = new Uint8Array(SECRET_LIMIT_BYTES)
  let length = 0
  for await (const part of guard(chunks, name)) {
    const end = part.indexOf(NEWLINE)
    const wanted = end < 0 ? part : part.subarray(0, end)
    const isTooLong = length + wanted.length > line.length
    if (!isTooLong) line.set(wanted, length)
    length += wanted.length
    part.fill(0)
    if (isTooLong) throw usage(`The first line of ${name} is longer than ${line.length} bytes.`)
    if (end >= 0) break
  }
  const text = decodeUtf8(line.subarray(0, length), name).replace(BYTE_ORDER_MARK, '').replace(/\r$/, '')
  line.fill(0)
  if (text === '') throw usage(`The first line of ${name} is empty.`)
  return text
}

const NEWLINE = 0x0a

/** Converts chunks to bytes, and failures to CofferErrors. */
async function* guard(chunks: AsyncIterable<Uint8Array | string>, name: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  } catch (error) {
    throw unreadable(error, name)
  }
}

/** Systems without O_NOFOLLOW (Windows) have no mode bits for others either. */
function refuseExposed(stat: Pick<Stats, 'mode' | 'isFile'>, name: string): void {
  if (!stat.isFile()) throw usage(`${name} is not a file. Pass the output of a program through a descriptor.`)
  if (constants.O_NOFOLLOW === undefined || (stat.mode & 0o077) === 0) return
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0')
  const remedy = 'Make it private (chmod 600), and change the secret if others may have read it.'
  throw new CofferError('vault_exposed', `${name} is open to others (mode ${mode}). ${remedy}`)
}

function unreadable(error: unknown, name: string): CofferError {
  if (error instanceof CofferError) return error
  const code = codeOf(error) || 'unknown reason'
  return usage(`${name} ${REASONS[code] ?? `could not be read (${code}).`}`, { cause: error })
}

const REASONS: Record<string, string> = {
  ENOENT: 'does not exist.',
  EACCES: 'cannot be read: permission denied.',
  EISDIR: 'is a directory, not a file.',
  ENOTDIR: 'does not exist.',
  ELOOP: 'is a symbolic link; give the path of its target, or pass the secret through a descriptor.',
  EBADF: 'is not open.',
}
