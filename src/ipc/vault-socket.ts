/**
 * The socket by which commands reach the server that has a vault open. TLS with a shared key (PSK, RFC 5489) has each side
 * prove that it holds the same secret of the vault, before anything else is said.
 */
import { once } from 'node:events'
import { chmodSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import type { Mac } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import { type Files, storageError } from '../storage/files.js'
import { encodeFrame, FrameReader } from './frames.js'

const SOCKET = 'socket'
/** The longest path of a socket on every system (108 bytes on Linux, 104 elsewhere, with the final zero byte). */
const LONGEST_PATH_BYTES = 103
const KEY_BYTES = 32
const IDENTITY_BYTES = 16
const HANDSHAKE_LIMIT_MS = 5000
/** A list of a hundred tokens of 1 MiB, with their masks. */
const MESSAGE_LIMIT_BYTES = 256 * 1024 * 1024
/** Both sides offer one suite alone, which needs the shared key. TLS 1.3 would add others. */
const TLS = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const

export interface VaultSocketOptions {
  files: Files
  directory: string
  /** Keyed with a secret of the vault, so that only a holder of the vault's key can make it. */
  proof: Mac
}

export type VaultSocketClient = NonNullable<Awaited<ReturnType<typeof connectToVault>>>

/** Listens for commands. Contract: `answer` never throws; failures are in its answer. */
export async function serveVaultSocket(
  { files, directory, proof }: VaultSocketOptions,
  answer: (message: unknown) => Promise<unknown>,
) {
  const path = `${directory}/${SOCKET}`
  // Only the holder of the vault's lock gets here, so a socket that exists is left over from a dead process.
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
  // A connection that could not be accepted, as with too many open files, is lost; the vault stays open.
  server.on('error', () => {})
  await withShortPath(directory, async (address) => {
    server.listen(address)
    await once(server, 'listening').catch((cause: unknown) => {
      throw new CofferError('storage_failed', `Cannot listen on ${path}.`, { cause })
    })
  })
  chmodSync(path, 0o600)
  return {
    /** Accepts nothing new; resolves when every request is answered. */
    async close(): Promise<void> {
      isClosing = true
      files.remove(path)
      server.close()
      await Promise.all(answering)
      for (const socket of connections) socket.destroy()
    },
  }
}

/** Whether a server may be listening; unlike connecting, this needs no keys. */
export function hasVaultSocket(vault: Pick<VaultSocketOptions, 'files' | 'directory'>): boolean {
  return vault.files.stat(`${vault.directory}/${SOCKET}`) !== undefined
}

/** Connects to the server of this vault; undefined when none listens, or when it does not hold the vault's key. */
export async function connectToVault({ files, directory, proof }: VaultSocketOptions) {
  if (!hasVaultSocket({ files, directory })) return undefined
  const { connect } = await import('node:tls')
  const key = deriveKey(proof, directory)
  // Without certificates there is no name to check, and no authority to load.
  const options = { ...TLS, ca: [], checkServerIdentity: () => undefined, pskCallback: () => key }
  const socket = await withShortPath(directory, async (path) => {
    const opening = connect({ ...options, path })
    const signal = AbortSignal.timeout(HANDSHAKE_LIMIT_MS)
    return once(opening, 'secureConnect', { signal }).then(
      () => opening,
      () => void opening.destroy(),
    )
  })
  if (socket === undefined) return undefined
  socket.on('error', () => {})
  const replies = readMessages(socket)
  return {
    /** @throws CofferError `unavailable` when the server went away before it answered. */
    async ask(message: unknown): Promise<unknown> {
      await write(socket, message)
      const reply = await replies.next().catch(() => undefined)
      if (reply?.done === false) return reply.value
      throw new CofferError(
        'unavailable',
        'The server that has the vault open went away before it answered. Look whether it was done, then try again.',
      )
    },
    close: () => void socket.destroy(),
  }
}

/** Resolves when the socket has accepted the message or is closed. */
function write(socket: TLSSocket, message: unknown): Promise<void> {
  return new Promise((resolve) => {
    socket.write(encodeFrame(message), () => resolve())
  })
}

/** The messages of the other side. @throws if it ends within one, or sends one that is too long */
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

/** Bound to the directory, because a copy of a vault has the same secrets and may have a link to the original's socket. */
function deriveKey(mac: Mac, directory: string): { identity: string; psk: Uint8Array } {
  const derive = (purpose: string, bytes: number) =>
    mac(Buffer.from(`coffer/1/${purpose}/${realpathSync(directory)}`), bytes)
  const identity = Buffer.from(derive('identity', IDENTITY_BYTES)).toString('hex')
  return { identity, psk: derive('psk', KEY_BYTES) }
}

/** Runs `use` with a path of the socket that the system accepts: through a link if the directory's path is long. */
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
