/** The socket by which commands reach the server that has a vault open. Both sides prove that they hold its key. */
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, realpathSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { dirname } from 'node:path'
import type { Mac, RandomSource } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import { fromBase64, toBase64 } from '../storage/bytes.js'
import { type Files, readWhole } from '../storage/files.js'
import { type Messages, readMessages, writeMessage } from './messages.js'

const SOCKET = 'socket'
/** The longest path of a socket on every system (108 bytes on Linux, 104 elsewhere, with the final zero byte). */
const LONGEST_PATH_BYTES = 103
const NONCE_BYTES = 32
const PROOF_BYTES = 32
/** Limits until the other side has proved that it holds the key. */
const HELLO_LIMIT_BYTES = 4096
const HELLO_LIMIT_MS = 5000
/** A list of a hundred tokens of 1 MiB, with their masks. */
const MESSAGE_LIMIT_BYTES = 256 * 1024 * 1024

export interface VaultSocketOptions {
  files: Files
  directory: string
  random: RandomSource
  /** Keyed with a secret of the vault, so that only a holder of the vault's key can make it. */
  proof: Mac
  /** Keyed with a secret that ends with this server, for commands that were given that secret alone. */
  sessionProof?: Mac | undefined
  /** Makes a directory that only this user can enter, for a socket whose path in the vault would be too long. */
  makePrivateDirectory(): string
}

export type VaultSocketClient = NonNullable<Awaited<ReturnType<typeof connectToVault>>>

/** Listens for commands. Contract: `answer` never throws; failures are in its answer. */
export async function serveVaultSocket(
  options: VaultSocketOptions,
  answer: (message: unknown) => Promise<unknown>,
) {
  const { files, directory } = options
  const path = `${directory}/${SOCKET}`
  const isShort = Buffer.byteLength(path) <= LONGEST_PATH_BYTES
  const address = isShort ? path : `${options.makePrivateDirectory()}/s`
  // Only the holder of the vault's lock gets here, so a socket that exists is left over from a dead process.
  files.remove(path)
  const sockets = new Set<Socket>()
  const answering = new Set<Promise<void>>()
  const { createServer } = await import('node:net')
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    void serve(socket, options, answer, answering)
  })
  // A connection that could not be accepted, as with too many open files, is lost; the vault stays open.
  server.on('error', () => {})
  server.listen(address)
  await once(server, 'listening').catch((cause: unknown) => {
    throw new CofferError('storage_failed', `Cannot listen on ${address}.`, { cause })
  })
  chmodSync(address, 0o600)
  if (!isShort) {
    const file = files.open(path, 'create')
    if (file === undefined) throw new CofferError('storage_failed', `Cannot create ${path}.`)
    files.write(file, new TextEncoder().encode(address), 0)
    files.close(file)
  }
  return {
    /** Accepts nothing new; resolves when every request is answered. */
    async close(): Promise<void> {
      files.remove(path)
      server.close()
      for (const socket of sockets) socket.pause()
      await Promise.all(answering)
      for (const socket of sockets) socket.destroy()
      if (!isShort) rmSync(dirname(address), { recursive: true, force: true })
    },
  }
}

/** Whether a server may be listening; unlike connecting, this needs no keys. */
export function hasVaultSocket(vault: Pick<VaultSocketOptions, 'files' | 'directory'>): boolean {
  return vault.files.stat(`${vault.directory}/${SOCKET}`) !== undefined
}

/** Connects to the server of this vault; undefined when none listens, or when it does not hold the vault's key. */
export async function connectToVault(options: VaultSocketOptions) {
  const address = findAddress(options)
  const socket = address === undefined ? undefined : await open(address)
  if (socket === undefined) return undefined
  const messages = readMessages(socket)
  if (!(await introduce(socket, messages, options))) {
    socket.destroy()
    return undefined
  }
  return {
    /** @throws CofferError `unavailable` when the server went away before it answered. */
    async ask(message: unknown): Promise<unknown> {
      await writeMessage(socket, message)
      const answer = await messages.next(MESSAGE_LIMIT_BYTES)
      if (answer !== undefined) return answer
      throw new CofferError(
        'unavailable',
        'The server that has the vault open went away before it answered. Look whether it was done, then try again.',
      )
    },
    close: () => void socket.destroy(),
  }
}

function findAddress({ files, directory }: VaultSocketOptions): string | undefined {
  const path = `${directory}/${SOCKET}`
  const stat = files.stat(path)
  if (stat === undefined) return undefined
  if (stat.kind !== 'file') return path
  const bytes = readWhole(files, path, HELLO_LIMIT_BYTES)
  // The file is empty if a server died while writing it.
  return bytes === undefined || bytes.length === 0 ? undefined : new TextDecoder().decode(bytes)
}

/** Undefined when nothing listens: the socket of a server that died. */
async function open(address: string): Promise<Socket | undefined> {
  const { connect } = await import('node:net')
  const socket = connect(address)
  const isOpen = await once(socket, 'connect').catch(() => undefined)
  return isOpen && socket
}

async function serve(
  socket: Socket,
  options: VaultSocketOptions,
  answer: (message: unknown) => Promise<unknown>,
  answering: Set<Promise<void>>,
): Promise<void> {
  const messages = readMessages(socket)
  if (!(await challenge(socket, messages, options))) {
    socket.destroy()
    return
  }
  for (;;) {
    const message = await messages.next(MESSAGE_LIMIT_BYTES)
    if (message === undefined) break
    const done = answer(message).then((reply) => writeMessage(socket, reply))
    answering.add(done)
    await done.finally(() => answering.delete(done))
  }
  socket.destroy()
}

/** The server's side: asks for a proof, and gives its own only in return for one. */
async function challenge(socket: Socket, messages: Messages, options: VaultSocketOptions): Promise<boolean> {
  const mine = options.random.bytes(NONCE_BYTES)
  await writeMessage(socket, { nonce: toBase64(mine) })
  const hello = await messages.next(HELLO_LIMIT_BYTES, HELLO_LIMIT_MS)
  const theirs = readBytes(hello, 'nonce', NONCE_BYTES)
  const given = readBytes(hello, 'proof', PROOF_BYTES)
  if (theirs === undefined || given === undefined) return false
  const { proof, sessionProof = proof } = options
  const known = [proof, sessionProof].find((each) =>
    timingSafeEqual(given, prove({ ...options, proof: each }, 'command', mine, theirs)),
  )
  if (known === undefined) return false
  await writeMessage(socket, { proof: toBase64(prove({ ...options, proof: known }, 'owner', mine, theirs)) })
  return true
}

/** The command's side: gives its proof first, then checks the server's. */
async function introduce(socket: Socket, messages: Messages, options: VaultSocketOptions): Promise<boolean> {
  const hello = await messages.next(HELLO_LIMIT_BYTES, HELLO_LIMIT_MS)
  const theirs = readBytes(hello, 'nonce', NONCE_BYTES)
  if (theirs === undefined) return false
  const mine = options.random.bytes(NONCE_BYTES)
  await writeMessage(socket, {
    nonce: toBase64(mine),
    proof: toBase64(prove(options, 'command', theirs, mine)),
  })
  const answer = await messages.next(HELLO_LIMIT_BYTES, HELLO_LIMIT_MS)
  const given = readBytes(answer, 'proof', PROOF_BYTES)
  return given !== undefined && timingSafeEqual(given, prove(options, 'owner', theirs, mine))
}

/**
 * A proof over both nonces and the role, so that it cannot be replayed to its maker; and over the directory, because a
 * copy of a vault has the same key and may have a pointer to the original's socket.
 */
function prove(
  { proof, directory }: VaultSocketOptions,
  role: 'owner' | 'command',
  owner: Uint8Array,
  command: Uint8Array,
): Uint8Array {
  const words = Buffer.from(`coffer/1/${role}/${realpathSync(directory)}/`)
  return proof(Buffer.concat([words, owner, command]), PROOF_BYTES)
}

function readBytes(message: unknown, field: string, length: number): Uint8Array | undefined {
  const text = (message as Record<string, unknown> | null | undefined)?.[field]
  if (typeof text !== 'string') return undefined
  const bytes = fromBase64(text)
  return bytes.length === length ? bytes : undefined
}
