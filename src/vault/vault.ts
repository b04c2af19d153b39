/**
 * A vault as commands use it: opened by this process, or kept open by a server that does what they ask. Which of the
 * two it is makes no difference to what they get.
 */
import { CofferError, type ErrorCode, type PropertyErrors } from '../errors.js'
import type { Outcome } from '../framework/perform.js'
import type { ReactorOptions } from '../framework/reactor-runtime.js'
import type { VaultSocketClient } from '../ipc/vault-socket.js'
import type { ResultOf } from '../operations/all.js'

/** An operation, and as whom: the owner of the vault, or the application with this key. */
export interface OperationRequest<Name extends string = string> {
  operation: Name
  input: Record<string, unknown>
  as: { key: string } | { reveal: boolean; tenant?: string }
  /** Nothing is done; the result says what would be, for the application with this id where one is named. */
  explain?: { application?: string; reveal: boolean }
}

export interface Vault {
  /** What goes in and out is JSON. @throws CofferError whatever the operation refuses. */
  ask<Name extends string>(asked: OperationRequest<Name>): Promise<Outcome<ResultOf<Name>>>
  /** Only where this process has the vault open: elsewhere whoever opened it said what reactors may. */
  configureReactors?(options: ReactorOptions): void
  /** Takes tokens whose time is over off the disk, where nobody else does; for about `ms`, where that is given. */
  sweep(ms?: number): Promise<number>
  close(): Promise<void>
}

type Reply = { outcome: Outcome } | { error: SentError }

/** An error as it crosses the socket; its cause stays where it happened. */
interface SentError {
  code: ErrorCode
  message: string
  status: number
  errors?: PropertyErrors
}

/** The vault behind `peer`. */
export function createRemoteVault(peer: VaultSocketClient): Vault {
  return {
    ask: async (asked) => {
      const reply = (await peer.ask(asked)) as Reply
      if ('outcome' in reply) return reply.outcome as Outcome<never>
      const { code, message, ...details } = reply.error
      throw new CofferError(code, message, details)
    },
    // A server sweeps by itself.
    sweep: async () => 0,
    close: async () => peer.close(),
  }
}

/** What `vault` says to a message of another process, failures included. */
export async function answerMessage(vault: Vault, message: unknown): Promise<Reply> {
  try {
    return { outcome: await vault.ask(message as OperationRequest) }
  } catch (error) {
    return { error: toSent(error) }
  }
}

function toSent(error: unknown): SentError {
  const known =
    error instanceof CofferError ? error : new CofferError('internal', 'Something went wrong on our side.')
  const { code, message, status, errors } = known
  return { code, message, status, ...(errors === undefined ? {} : { errors }) }
}
