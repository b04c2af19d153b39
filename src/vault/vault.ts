/** A vault as commands use it: opened by this process, or open in a server that answers over a socket. */
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError, type ErrorCode, type PropertyErrors } from '../errors.js'
import type { Outcome } from '../framework/operation.js'
import type { PerformOptions } from '../framework/perform.js'
import type { ReactorOptions } from '../framework/reactor-runtime.js'
import type { VaultSocketClient } from '../ipc/vault-socket.js'
import type { ResultOf } from '../operations/all.js'

/** A request to perform an operation as the owner of the vault, or as the application with this key. */
export interface OperationRequest<Name extends string = string> {
  operation: Name
  input: Record<string, unknown>
  as: { key: string } | { reveal: boolean; tenant?: string | undefined }
  /** Explains the operation instead, for the application with this id, or else for the caller. */
  explain?: { application?: string | undefined; reveal: boolean }
  /** As in {@link PerformOptions}. */
  idempotencyKey?: PerformOptions['idempotencyKey']
}

export interface Vault {
  /** Input and result are JSON. @throws CofferError those of the operation */
  ask<Name extends string>(asked: OperationRequest<Name>): Promise<Outcome<ResultOf<Name>>>
  /** Absent if a server has the vault open, which has its own options. */
  configureReactors?(options: ReactorOptions): void
  /** Purges expired tokens, some thousands at most, for about `ms` if given; resolves to their number. */
  sweep(ms?: number): Promise<number>
  close(): Promise<void>
}

type Reply = { outcome: Outcome } | { error: SentError }

/** An error as it is sent over the socket, without its cause. */
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

function toSent(error: unknown): SentError {
  const known =
    error instanceof CofferError ? error : new CofferError('internal', 'Something went wrong on our side.')
  const { code, message, status, errors } = known
  return { code, message, status, ...omitUndefined({ errors }) }
}
