/**
 * A vault as commands use it: opened by this process, or kept open by a server that does what they ask. Which of the
 * two it is makes no difference to what they get.
 */
import { CofferError, type ErrorCode, type PropertyErrors } from '../errors.js'
import type { Outcome } from '../framework/perform.js'
import type { ReactorOptions } from '../framework/reactor-runtime.js'
import type { VaultSocketClient } from '../ipc/vault-socket.js'

/** An operation, and as whom: the owner of the vault, or the application with this key. */
export interface Asked {
  operation: string
  input: Record<string, unknown>
  as: { key: string } | { reveal: boolean; tenant?: string }
}

export interface Vault {
  /** @throws CofferError whatever the operation refuses. */
  ask(asked: Asked): Promise<Outcome>
  /** One of the owner's commands that are no operations; see `vault-commands`. What goes in and out is JSON. */
  command(name: string, input: Record<string, unknown>): Promise<unknown>
  /** Only where this process has the vault open: elsewhere whoever opened it said what reactors may. */
  configureReactors?(options: ReactorOptions): void
  /** Takes tokens whose time is over off the disk, where nobody else does; for about `ms`, where that is given. */
  sweep(ms?: number): Promise<number>
  close(): Promise<void>
}

type Message = ({ kind: 'ask' } & Asked) | { kind: 'command'; name: string; input: Record<string, unknown> }
type Reply = { outcome: unknown } | { error: SentError }

/** An error as it crosses the socket; its cause stays where it happened. */
interface SentError {
  code: ErrorCode
  message: string
  status: number
  errors?: PropertyErrors
}

/** The vault behind `peer`. */
export function createRemoteVault(peer: VaultSocketClient): Vault {
  const send = async (message: Message) => {
    const reply = (await peer.ask(message)) as Reply
    if ('outcome' in reply) return reply.outcome
    const { code, message: text, ...details } = reply.error
    throw new CofferError(code, text, details)
  }
  return {
    ask: async (asked) => (await send({ kind: 'ask', ...asked })) as Outcome,
    command: (name, input) => send({ kind: 'command', name, input }),
    // A server sweeps by itself.
    sweep: async () => 0,
    close: async () => peer.close(),
  }
}

/** What `vault` says to a message of another process, failures included. */
export async function answerMessage(vault: Vault, message: unknown): Promise<Reply> {
  const { kind, ...rest } = message as Message
  try {
    if (kind === 'ask') return { outcome: await vault.ask(rest as Asked) }
    const { name, input } = rest as { name: string; input: Record<string, unknown> }
    return { outcome: (await vault.command(name, input)) ?? null }
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
