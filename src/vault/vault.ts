/** The vault of a command. Either this process has opened the vault, or a server has it open and answers over a socket. */
import { fromSent, type SentError, toSent } from '../errors.js'
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
  /** Explains the operation instead of performing it, for the application with this id, or else for the caller. */
  explain?: { application?: string | undefined }
  idempotencyKey?: PerformOptions['idempotencyKey']
  /** Turns on no-reveal mode. A setting of the vault may also turn on no-reveal mode. */
  noReveal?: boolean
}

export interface Vault {
  /** Input and result are JSON. @throws the CofferErrors of the operation */
  ask<Name extends string>(asked: OperationRequest<Name>): Promise<Outcome<ResultOf<Name>>>
  /** Undefined if a server has the vault open, because the server has its own options. */
  configureReactors?(options: ReactorOptions): void
  /**
   * Attaches the server that answers the code of runs. The returned function detaches the server. Absent if a server has the
   * vault open.
   */
  attachServer?(server: AttachedServer): () => void
  /** Purges some thousands of expired tokens at most, for about `ms` if given. Resolves to the number of purged tokens. */
  sweep(ms?: number): Promise<number>
  /**
   * Resolves when no reactor run is in progress. Undefined if a server has the vault open, because the server continues its runs
   * after the command has ended.
   */
  settle?(): Promise<void>
  close(): Promise<void>
}

type Reply = { outcome: Outcome } | { error: SentError }

export function createRemoteVault(peer: VaultSocketClient): Vault {
  return {
    ask: async (asked) => {
      const reply = (await peer.ask(asked)) as Reply
      if ('outcome' in reply) return reply.outcome as Outcome<never>
      throw fromSent(reply.error)
    },
    // The server purges expired tokens itself.
    sweep: async () => 0,
    close: async () => peer.close(),
  }
}

/** Answers a message of another process. If the operation fails, the answer contains the error. */
export async function answerMessage(vault: Vault, message: unknown): Promise<Reply> {
  try {
    return { outcome: await vault.ask(message as OperationRequest) }
  } catch (error) {
    return { error: toSent(error) }
  }
}
