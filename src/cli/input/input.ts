import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { decodeUtf8 } from '../../domain/json/json.js'
import { collectBytes } from '../../domain/proxy/collect-bytes.js'
import { CofferError, codeOf, usage } from '../../errors.js'
import { printWarning } from '../output/output.js'
import type { InputStream, Terminal } from '../output/terminal.js'

/** The limit for a value: 1 MiB, which is also the default limit of a request body. */
export const VALUE_LIMIT_BYTES = 1024 * 1024
/** The limit for a secret, in bytes: enough for a passphrase of 1,024 characters. */
export const SECRET_LIMIT_BYTES = 4096

const BYTE_ORDER_MARK = /^\ufeff/
const NEWLINE = 0x0a
const EXPOSED_ARGUMENTS = 'Other processes can see the arguments of a command'

type Io = { cwd(): string; readonly stdin: InputStream }

export function isSource(text: string): boolean {
  return text === '-' || (text.startsWith('@') && !text.startsWith('@@'))
}

export function warnOfArguments(terminal: Terminal, names: readonly string[]): Promise<void> {
  const advice = `Give ${names[0]} as @FILE, or on standard input.`
  return printWarning(terminal, `${EXPOSED_ARGUMENTS} (${names.join(', ')}). ${advice}`)
}

/**
 * Reads the sources of flags and arguments. Error messages contain the name of the flag or argument. Standard input can
 * be read only once.
 */
export class InputReader {
  readonly #io: Io
  #stdinFlag: string | undefined

  constructor(io: Io) {
    this.#io = io
  }

  get isStdinTaken(): boolean {
    return this.#stdinFlag !== undefined
  }

  /** Lets the process end although standard input has not ended. */
  release(): void {
    if (this.isStdinTaken) this.#io.stdin.unref?.()
  }

  /**
   * `@path` reads a file. `-` and `@-` read standard input. The byte order mark and the last line break are removed.
   * `@@x` is the text `@x`.
   * @throws CofferError `usage`, `too_large` beyond {@link VALUE_LIMIT_BYTES}, `validation` for invalid UTF-8
   */
  async readValue(source: string, flag: string): Promise<string> {
    if (source.startsWith('@@')) return source.slice(1)
    if (!isSource(source)) return source
    const text = await this.readFile(source === '-' ? source : source.slice(1), flag)
    return text.replace(BYTE_ORDER_MARK, '').replace(/\r?\n$/, '')
  }

  /**
   * Returns the unchanged text of a file. `-` is standard input.
   * @throws CofferError the errors of {@link readValue}
   */
  async readFile(path: string, flag: string, limitBytes = VALUE_LIMIT_BYTES): Promise<string> {
    const { name, chunks, close } = await this.openStream(path, flag)
    try {
      const bytes = await collectBytes(chunks, limitBytes)
      if (bytes !== undefined) return decodeUtf8(bytes, name)
      throw new CofferError('too_large', `${name} is larger than the limit of ${limitBytes} bytes.`)
    } finally {
      close()
    }
  }

  /** `name` is the name of the stream in messages. `close` makes a waiting read fail. @throws CofferError `usage` */
  async openStream(path: string, flag: string) {
    if (path === '') throw usage(`${flag} names no file.`)
    const place = path === '-' ? 'standard input' : path
    const name = place === flag ? place : `${flag} (${place})`
    try {
      const { stream, size } =
        path === '-'
          ? { stream: this.claimStdin(flag), size: undefined }
          : await openFile(resolve(this.#io.cwd(), path))
      return { name, chunks: guard(stream, name), close: () => void stream.destroy(), size }
    } catch (error) {
      throw unreadable(error, name)
    }
  }

  /**
   * Returns the first line of a private file. The path must not be a symbolic link. `refuse` creates the error for
   * invalid content.
   * @throws CofferError `vault_exposed`, `usage`
   */
  async readSecretFile(path: string, flag: string, refuse?: (name: string) => CofferError): Promise<string> {
    const name = `${flag} (${path})`
    let file: number | undefined
    try {
      // Without O_NONBLOCK, opening a named pipe would block until the pipe has a writer.
      const flags = (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0)
      file = fs.openSync(resolve(this.#io.cwd(), path), fs.constants.O_RDONLY | flags)
      refuseExposed(fs.fstatSync(file), name)
      const start = new Uint8Array(SECRET_LIMIT_BYTES + 2)
      const bytes = start.subarray(0, fs.readSync(file, start))
      return await readFirstLine([bytes], name).catch((error) => {
        throw refuse?.(name) ?? error
      })
    } catch (error) {
      throw unreadable(error, name)
    } finally {
      if (file !== undefined) fs.closeSync(file)
    }
  }

  /** @throws CofferError `usage` if standard input is already claimed */
  claimStdin(flag: string): InputStream {
    const before = this.#stdinFlag
    if (before !== undefined) {
      const both = before === flag ? `${flag} twice` : `${before} and ${flag}`
      throw usage(`Standard input was given to ${both}. Give one of them as a file.`)
    }
    this.#stdinFlag = flag
    return this.#io.stdin
  }

  /** Returns the first line from a descriptor. Descriptor 0 is standard input. @throws CofferError `usage` */
  async readDescriptor(descriptor: number, flag: string): Promise<string> {
    const name = `${flag} (${descriptor === 0 ? 'standard input' : `descriptor ${descriptor}`})`
    const stream =
      descriptor === 0 ? this.claimStdin(flag) : fs.createReadStream('', { fd: descriptor, autoClose: false })
    return readFirstLine(guard(stream, name), name)
  }

  /** If `given` is absent, prompts for the value, or reads it from standard input if prompts are impossible. */
  async readGiven(
    { terminal }: { terminal: Terminal },
    given: string | undefined,
    name: string,
    { message = name, isSecret = false }: { message?: string; isSecret?: boolean } = {},
  ): Promise<string> {
    if (given === undefined && terminal.mayPrompt) {
      const { ask } = await import('./prompt.js')
      return this.readAnswer(await ask(terminal, { message, sensitive: isSecret }), name)
    }
    if (isSecret && given !== undefined && !isSource(given)) await warnOfArguments(terminal, [name])
    return this.readValue(given ?? '-', name)
  }

  /** Returns the value of an answer to a prompt. `@path` reads a file. @throws CofferError `usage` */
  async readAnswer(answer: string, flag: string): Promise<string> {
    // Here `@-` is plain text, because standard input is the terminal with the prompt.
    return answer.startsWith('@') && answer !== '@-' ? this.readValue(answer, flag) : answer
  }
}

/** Reads a pipe as a socket, because a thread that waits for a writer would keep the process from ending. */
async function openFile(path: string) {
  const isPipe = fs.statSync(path).isFIFO()
  const fd = fs.openSync(path, fs.constants.O_RDONLY | (isPipe ? fs.constants.O_NONBLOCK : 0))
  const { size } = fs.fstatSync(fd)
  if (!isPipe) return { stream: fs.createReadStream('', { fd }), size }
  const { Socket } = await import('node:net')
  return { stream: new Socket({ fd, readable: true, writable: false }), size }
}

/** Returns the first line without its line break. Overwrites the bytes that were read with zeros. */
async function readFirstLine(chunks: AsyncIterable<Uint8Array> | Uint8Array[], name: string) {
  const line = new Uint8Array(SECRET_LIMIT_BYTES)
  let length = 0
  for await (const part of chunks) {
    const end = part.indexOf(NEWLINE)
    const wanted = end < 0 ? part : part.subarray(0, end)
    const isTooLong = length + wanted.length > line.length
    if (!isTooLong) line.set(wanted, length)
    length += wanted.length
    part.fill(0)
    if (isTooLong) throw usage(`The first line of ${name} is longer than ${line.length} bytes.`)
    if (end >= 0) break
  }
  let text: string
  try {
    text = decodeUtf8(line.subarray(0, length), name).replace(BYTE_ORDER_MARK, '').replace(/\r$/, '')
  } finally {
    line.fill(0)
  }
  if (text === '') throw usage(`The first line of ${name} is empty.`)
  return text
}

async function* guard(chunks: AsyncIterable<Uint8Array | string>, name: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  } catch (error) {
    throw unreadable(error, name)
  }
}

/** The mode is not checked on Windows, where O_NOFOLLOW is undefined and files have no mode bits for other users. */
function refuseExposed(stat: fs.Stats, name: string): void {
  if (!stat.isFile()) throw usage(`${name} is not a file. Pass the output of a program through a descriptor.`)
  if (fs.constants.O_NOFOLLOW === undefined || (stat.mode & 0o077) === 0) return
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
