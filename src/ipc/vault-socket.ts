/**
 * The socket that connects commands to the server that has a vault open. With TLS and a shared key (PSK, RFC 5489),
 * each side proves to the other side that it has the vault's key.
 */
import { once } from 'node:events'
import { chmodSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import type { Mac } from '../crypto/ports.js'
import { CofferError, codeOf } from '../errors.js'
import { type Files, storageError } from '../storage/files.js'
import { encodeFrame, FrameReader } from './frames.js'

const SOCKET = 'socket'
/**
 * Every system accepts socket paths up to this length (108 bytes on Linux, 104 elsewhere, with the final zero byte).
 */
const LONGEST_PATH_BYTES = 103
const KEY_BYTES = 32
const IDENTITY_BYTES = 16
const HANDSHAKE_LIMIT_MS = 5000
const PROBE_MS = 5000
/** Enough for a list of 100 tokens of 1 MiB, with their masks. */
const MESSAGE_LIMIT_BYTES = 256 * 1024 * 1024
/** Both sides offer a single cipher suite, which needs the shared key. TLS 1.3 would add other suites. */
const TLS = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const

export interface VaultSocketOptions {
  files: Files
  directory: string
  /** A MAC that only a holder of the vault's key can compute. */
  proof: Mac
}

export interface ConnectOptions extends VaultSocketOptions {
  /** A server that does not accept a connection within this time counts as silent. */
  limitMs: number
  describeSilence(): CofferError
  /** The interval, in ms, at which a command that waits for an answer checks that the server accepts connections. */
  probeMs?: number
}

export type VaultSocketClient = NonNullable<Awaited<ReturnType<typeof connectToVault>>>

/** Listens for commands. Requires: `answer` never rejects. Its result reports failures too. */
export async function serveVaultSocket(
  { files, directory, proof }: VaultSocketOptions,
  answer: (message: unknown) => Promise<unknown>,
) {
  const path = `${directory}/${SOCKET}`
  // The caller has the vault's lock. No other process can have this lock, so an existing socket belongs to a process
  // that has ended.
  files.remove(path)
  const { identity, psk } = deriveKey(proof, directory)
  const pskCallback = (_: TLSSocket, given: string) => (given === identity ? psk : null)
  const connections = new Set<TLSSocket>()
  const answering = new Set<Promise<void>>()
  let isClosing = false
  const serve = async (socket: TLSSocket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
    for await (const message of readMessages(socket)) {
      if (isClosing) break
      const done = answer(message).then((reply) => write(socket, reply))
      answering.add(done)
      await done.finally(() => answering.delete(done))
    }
  }
  const { createServer } = await import('node:tls')
  const options = { ...TLS, pskCallback, handshakeTimeout: HANDSHAKE_LIMIT_MS }
  const server = createServer(options, (socket) => void serve(socket).catch(() => socket.destroy()))
  // If a connection cannot be accepted, for example because too many files are open, the connection is dropped and the
  // vault stays open.
  server.on('error', () => {})
  await withShortPath(directory, async (address) => {
    server.listen(address)
    await once(server, 'listening').catch((cause: unknown) => {
      throw new CofferError('storage_failed', `Cannot listen on ${path}.`, { cause })
    })
  })
  chmodSync(path, 0o600)
  return {
    /** Accepts no more requests. Resolves when all requests are answered. */
    async close(): Promise<void> {
      isClosing = true
      files.remove(path)
      server.close()
      await Promise.all(answering)
      for (const socket of connections) socket.destroy()
    },
  }
}

export function hasVaultSocket(vault: Pick<VaultSocketOptions, 'files' | 'directory'>): boolean {
  return vault.files.stat(`${vault.directory}/${SOCKET}`) !== undefined
}

/**
 * Returns whether the socket belongs to a killed server. A server that stops normally removes its socket. The result is
 * also correct for a server in another container.
 */
export async function isSocketAbandoned(
  vault: Pick<VaultSocketOptions, 'files' | 'directory'>,
): Promise<boolean> {
  if (!hasVaultSocket(vault)) return false
  const { connect } = await import('node:net')
  return withShortPath(vault.directory, async (path) => {
    const socket = connect({ path, timeout: HANDSHAKE_LIMIT_MS })
    try {
      return await new Promise<boolean>((resolve) => {
        socket.once('connect', () => resolve(false))
        socket.once('timeout', () => resolve(false))
        socket.once('error', (error) => resolve(codeOf(error) === 'ECONNREFUSED'))
      })
    } finally {
      socket.destroy()
    }
  })
}

/**
 * Connects to the server of this vault. Resolves to undefined if no server listens, or if the server does not have
 * the vault's key.
 * @throws the error of `describeSilence`
 */
export async function connectToVault(options: ConnectOptions) {
  if (!hasVaultSocket(options)) return undefined
  // Derives the key now, because the caller wipes its keys after this call, and `ask` opens more connections.
  const key = deriveKey(options.proof, options.directory)
  const open = () => openSocket(options, key)
  const socket = await open()
  if (socket === undefined) return undefined
  const replies = readMessages(socket)
  const ask = async (message: unknown): Promise<unknown> => {
    await write(socket, message)
    const reply = await replies.next().catch(() => undefined)
    if (reply?.done === false) return reply.value
    throw new CofferError(
      'unavailable',
      'The server that has the vault open ended before it answered. Check whether the change was made. If not, try again.',
    )
  }
  return {
    /** @throws CofferError `unavailable` if the server ends before the answer, or accepts no more connections */
    async ask(message: unknown): Promise<unknown> {
      const probing = new AbortController()
      try {
        const silence = awaitSilence(open, options.probeMs ?? PROBE_MS, probing.signal)
        return await Promise.race([ask(message), silence])
      } finally {
        probing.abort()
      }
    },
    close: () => void socket.destroy(),
  }
}

async function openSocket(
  { directory, limitMs, describeSilence }: ConnectOptions,
  key: ReturnType<typeof deriveKey>,
): Promise<TLSSocket | undefined> {
  const { connect } = await import('node:tls')
  // Without certificates, there is no name to check and no authority to load.
  const options = { ...TLS, ca: [], checkServerIdentity: () => undefined, pskCallback: () => key }
  return withShortPath(directory, async (path) => {
    const socket = connect({ ...options, path })
    const signal = AbortSignal.timeout(limitMs)
    try {
      await once(socket, 'secureConnect', { signal })
      socket.on('error', () => {})
      return socket
    } catch {
      socket.destroy()
      if (signal.aborted) throw describeSilence()
      return undefined
    }
  })
}

/**
 * Rejects if the server does not accept a connection in time. If the server accepts connections, the promise never
 * settles, because an answer may take any time.
 */
async function awaitSilence(
  open: () => Promise<TLSSocket | undefined>,
  probeMs: number,
  signal: AbortSignal,
): Promise<never> {
  while (!signal.aborted) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, probeMs)
      signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
    })
    // A server that refuses a connection is closing, but still answers the pending request.
    const probe = await open()
    probe?.destroy()
  }
  return new Promise<never>(() => {})
}

/** Resolves when the socket has taken the message, or is closed. */
function write(socket: TLSSocket, message: unknown): Promise<void> {
  return new Promise((resolve) => {
    socket.write(encodeFrame(message), () => resolve())
  })
}

async function* readMessages(socket: TLSSocket): AsyncGenerator<unknown, void> {
  const reader = new FrameReader()
  for await (const chunk of socket) {
    reader.add(chunk)
    for (;;) {
      const text = reader.next(MESSAGE_LIMIT_BYTES)
      if (text === undefined) break
      yield JSON.parse(text.toString())
    }
  }
}

/**
 * The key depends on the directory. Otherwise a command could open a copy of a vault and reach the server of the
 * original, because the copy has the same secrets and may contain a link to the original's socket.
 */
function deriveKey(mac: Mac, directory: string): { identity: string; psk: Uint8Array } {
  const derive = (purpose: string, bytes: number) =>
    mac(Buffer.from(`coffer/1/${purpose}/${realpathSync(directory)}`), bytes)
  const identity = Buffer.from(derive('identity', IDENTITY_BYTES)).toString('hex')
  return { identity, psk: derive('psk', KEY_BYTES) }
}

/**
 * Calls `use` with a path of the socket that is short enough. If the directory's path is too long, this path goes
 * through a symbolic link.
 */
async function withShortPath<T>(directory: string, use: (address: string) => Promise<T>): Promise<T> {
  const path = `${directory}/${SOCKET}`
  if (Buffer.byteLength(path) <= LONGEST_PATH_BYTES) return use(path)
  let link: string | undefined
  try {
    link = mkdtempSync(join(tmpdir(), 'coffer-'))
    symlinkSync(realpathSync(directory), `${link}/v`)
    return await use(`${link}/v/${SOCKET}`)
  } catch (cause) {
    if (cause instanceof CofferError) throw cause
    throw storageError('make a directory in', tmpdir(), cause)
  } finally {
    if (link !== undefined) rmSync(link, { recursive: true, force: true })
  }
}
