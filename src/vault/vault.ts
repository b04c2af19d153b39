/** The vault of a command. If a server has the vault open, the command sends its requests to the server. */
import { BoundedMap } from '../bounded-map.js'
import { splitIntoChunks } from '../domain/document/chunks.js'
import { CofferError, fromSent, type SentError, toSent } from '../errors.js'
import { Content, isStream, piecesOf } from '../framework/content.js'
import type { Outcome } from '../framework/outcome.js'
import type { PerformOptions } from '../framework/perform.js'
import type { AttachedServer } from '../framework/ports/own-server.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'
import type { VaultSocketClient } from '../ipc/vault-socket.js'
import type { ResultOf } from '../operations/all.js'

export interface OperationRequest<Name extends string = string> {
  operation: Name
  input: Record<string, unknown>
  as: { key: string } | { reveal: boolean; tenant?: string | undefined }
  /**
   * Explains the operation instead of performing it. The explanation is for the application with this id, or else for
   * the caller.
   */
  explain?: { application?: string | undefined }
  idempotencyKey?: PerformOptions['idempotencyKey']
  /** Turns on no-reveal mode. A setting of the vault can also turn on this mode. */
  noReveal?: boolean
}

export interface Vault {
  /** Input and result are JSON, except the content of a file. @throws the CofferErrors of the operation */
  ask<Name extends string>(asked: OperationRequest<Name>): Promise<Outcome<ResultOf<Name>>>
  /** Undefined if a server has the vault open, because the server has its own options. */
  configureReactors?(options: ReactorOptions): void
  /**
   * Attaches the server that answers requests of reactor code. The returned function detaches the server. Undefined if
   * another process has the vault open.
   */
  attachServer?(server: AttachedServer): () => void
  /** Purges at most 2,000 expired records, and ends after about `ms`. Resolves to the number of purged records. */
  sweep(ms?: number): Promise<number>
  /**
   * Resolves when no reactor run is in progress. Undefined if a server has the vault open, because the server continues
   * its runs after the command has ended.
   */
  settle?(): Promise<void>
  close(): Promise<void>
}

/** `stream`: the number of a download. A command sends this number in {@link NextPiece} to get the next piece. */
type Reply =
  | { outcome: Outcome }
  | { error: SentError }
  | { status: number; stream: number; type: string; size?: number | undefined }
  | { piece: string | null }

interface NextPiece {
  next: number
}

/** If commands begin more downloads at the same time, the oldest download fails. */
const MAX_STREAMS = 100

export function createRemoteVault(peer: VaultSocketClient): Vault {
  return {
    ask: async (asked) => {
      const document = asked.input.document
      if (!isStream(document) && !(document instanceof Uint8Array)) return askPeer(peer, asked)
      const upload = await sendPieces(peer, asked, piecesOf(document))
      return askPeer(peer, { ...asked, input: { ...asked.input, document: { upload } } })
    },
    // The server purges expired records itself.
    sweep: async () => 0,
    close: async () => peer.close(),
  }
}

async function askPeer(
  peer: VaultSocketClient,
  message: OperationRequest | NextPiece,
): Promise<Outcome<never>> {
  const reply = (await peer.ask(message)) as Reply
  if ('error' in reply) throw fromSent(reply.error)
  if ('stream' in reply) {
    const { status, stream, type, size } = reply
    return { status, result: new Content(type, size, receivePieces(peer, stream)) as never }
  }
  if ('outcome' in reply) return reply.outcome as Outcome<never>
  throw new CofferError(
    'internal',
    'The server that has the vault open sent an answer of another kind than was requested.',
  )
}

async function* receivePieces(peer: VaultSocketClient, next: number): AsyncGenerator<Uint8Array> {
  for (;;) {
    const reply = (await peer.ask({ next } satisfies NextPiece)) as Reply
    if ('error' in reply) throw fromSent(reply.error)
    if (!('piece' in reply) || reply.piece === null) return
    yield Buffer.from(reply.piece, 'base64')
  }
}

/** Sends content in pieces, because a message is JSON and is in memory as a whole. Returns the id of the upload. */
async function sendPieces(
  peer: VaultSocketClient,
  { as, noReveal }: OperationRequest,
  content: AsyncIterable<Uint8Array>,
): Promise<string> {
  const ask = async (operation: string, input: Record<string, unknown>) =>
    (await askPeer(peer, { operation, input, as, ...(noReveal && { noReveal }) })) as Outcome
  let upload: string | undefined
  try {
    for await (const { bytes, isLast } of splitIntoChunks(content)) {
      const input = {
        ...(upload && { upload }),
        bytes: Buffer.from(bytes).toString('base64'),
        is_last: isLast,
      }
      const { result } = await ask('document append', input)
      upload = (result as { upload: string }).upload
    }
    return upload!
  } catch (error) {
    // If the removal fails too, the upload expires.
    const discard = async () => {
      while (!((await ask('document discard', { upload })).result as { is_done: boolean }).is_done);
    }
    if (upload !== undefined) await discard().catch(() => undefined)
    throw error
  }
}

/** Returns a function that answers messages of other processes. The function never rejects. */
export function createMessageAnswerer(vault: Vault): (message: unknown) => Promise<Reply> {
  const streams = new BoundedMap<number, AsyncIterator<Uint8Array>>(MAX_STREAMS)
  let count = 0
  const answer = async (message: OperationRequest | NextPiece): Promise<Reply> => {
    if ('next' in message) {
      const stream = streams.get(message.next)
      if (stream === undefined)
        throw new CofferError('unavailable', 'Too many downloads run at the same time.')
      const { done, value } = await stream.next()
      if (!done) return { piece: Buffer.from(value as Uint8Array).toString('base64') }
      streams.delete(message.next)
      return { piece: null }
    }
    const outcome: Outcome = await vault.ask(message)
    const { status, result } = outcome
    if (!(result instanceof Content)) return { outcome }
    streams.set(++count, result[Symbol.asyncIterator]())
    return { status, stream: count, type: result.type, size: result.size }
  }
  return (message) =>
    answer(message as OperationRequest | NextPiece).catch((error: unknown) => ({ error: toSent(error) }))
}
