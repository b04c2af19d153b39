/** The vault of a command: this process has opened it, or a server has it open and answers over a socket. */
import { fromSent, type SentError, toSent } from '../errors.js'
import type { Outcome } from '../framework/outcome.js'
import type { PerformOptions } from '../framework/perform.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'
import type { VaultSocketClient } from '../ipc/vault-socket.js'
import type { ResultOf } from '../operations/all.js'

export interface OperationRequest<Name extends string = string> {
  operation: Name
  input: Record<string, unknown>
  as: { key: string } | { reveal: boolean; tenant?: string | undefined }
  /** Explains the operation instead of doing it, for the application with this id, or else for the caller. */
  explain?: { application?: string | undefined }
  idempotencyKey?: PerformOptions['idempotencyKey']
  /** Turns on no-reveal mode. A setting of the vault may also turn it on. */
  noReveal?: boolean
}

export interface Vault {
  /** Input and result are JSON. @throws the CofferErrors of the operation */
  ask<Name extends string>(asked: OperationRequest<Name>): Promise<Outcome<ResultOf<Name>>>
  /** Absent if a server has the vault open, because the server has its own options. */
  configureReactors?(options: ReactorOptions): void
  /** Purges up to some thousands of expired tokens, for about `ms` if given. Resolves to their number. */
  sweep(ms?: number): Promise<number>
  /**
   * Resolves when no reactor run is in progress. Absent if a server has the vault open, because it continues without its
   * callers.
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

/** Answers a message of another process. A failure is an answer too. */
export async function answerMessage(vault: Vault, message: unknown): Promise<Reply> {
  try {
    return { outcome: await vault.ask(message as OperationRequest) }
  } catch (error) {
    return { error: toSent(error) }
  }
}
