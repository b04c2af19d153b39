/** A vault as commands use it: opened by this process, or open in a server that answers over a socket. */
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
  /** Explains the operation instead, for the application with this id, or else for the caller. */
  explain?: { application?: string | undefined }
  idempotencyKey?: PerformOptions['idempotencyKey']
  /** In no-reveal mode, which a setting of the vault may also turn on. */
  noReveal?: boolean
}

export interface Vault {
  /** Input and result are JSON. @throws CofferError those of the operation */
  ask<Name extends string>(asked: OperationRequest<Name>): Promise<Outcome<ResultOf<Name>>>
  /** Absent if a server has the vault open, which has its own options. */
  configureReactors?(options: ReactorOptions): void
  /** Purges expired tokens, some thousands at most, for about `ms` if given; resolves to their number. */
  sweep(ms?: number): Promise<number>
  /** Resolves when no run of a reactor waits. Absent if a server has the vault open, which outlives its callers. */
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
    // The server has an expiry sweeper of its own.
    sweep: async () => 0,
    close: async () => peer.close(),
  }
}

/** Answers a message of another process, failures included. */
export async function answerMessage(vault: Vault, message: unknown): Promise<Reply> {
  try {
    return { outcome: await vault.ask(message as OperationRequest) }
  } catch (error) {
    return { error: toSent(error) }
  }
}
