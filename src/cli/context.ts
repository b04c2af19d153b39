import type { Command } from 'commander'
import type { Fetch } from '../client/http-client.js'
import type { Config, Environment } from '../config.js'
import type { RegisteredOperation, Registry } from '../framework/registry.js'
import type { Schema } from '../framework/schema.js'
import type { Format } from '../global-flags.js'
import type { Clock } from '../vault/open.js'
import type { Vault } from '../vault/vault.js'
import type { InputReader } from './input/input.js'
import type { Streams, Terminal } from './output/terminal.js'

export const TOPIC_NAMES = 'flags access-rules search expressions test-cards exit-codes environment'.split(
  ' ',
)

export type Options = Readonly<Record<string, unknown>>

export type Args = readonly (string | undefined)[]

/** Arguments of a command in commander's syntax: `<id>`, `<id...>`, `[file]`. */
export type ArgSpecs = readonly (readonly [name: string, description: string])[]

export interface OperationLine {
  readonly context: CommandContext
  readonly definition: RegisteredOperation
  readonly args: Args
  readonly options: Options
}

/** An option of a command in commander's syntax: `-f, --follow`. */
export type CommandOption = readonly [flag: string, description: string, isRepeatable?: true]

/**
 * `notices`: the command prints notices and has no result. `result`: the schema of the result, which every format can
 * show. `text`: the formats in which the command itself prints its text or result. `itemsOf`: the operation whose items
 * have the fields for `--fields`.
 */
export type Prints =
  | 'notices'
  | { readonly result: Schema }
  | { readonly text: readonly Format[]; readonly itemsOf?: string }

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** The part of a process that the command line uses. `bin/` passes the real process, and tests pass a fake. */
export interface ProcessLike extends Streams {
  readonly argv: readonly string[]
  readonly env: Environment
  readonly pid: number
  /** Changes when the parent ends. */
  readonly ppid: number
  readonly version: string
  /** The name that other users see, for example in `ps`. */
  title?: string
  readonly clock?: Clock
  /** Sends the requests of commands with `--url`. By default, requests are sent over sockets. */
  readonly fetch?: Fetch
  cwd(): string
  on(event: Signal, listener: () => void): unknown
  off(event: Signal, listener: () => void): unknown
}

export interface TerminalHelp {
  readonly details?: string
  readonly examples: readonly string[]
  readonly options?: readonly CommandOption[]
}

export interface Commands {
  readonly registry: Registry
  listCommands(): Command
  listSummaries(): { name: string; summary: string }[]
  findTerminalCommand(name: string): TerminalHelp | undefined
  describeCommand(words: readonly string[]): string
}

export interface CommandContext extends Commands, Pick<ProcessLike, 'env' | 'pid' | 'fetch'> {
  readonly terminal: Terminal
  readonly config: Config
  readonly cwd: string
  readonly nodeVersion: string
  readonly program: string
  readonly clock: Clock
  /** The whole run shares one reader, because standard input can be read only once. */
  readonly input: InputReader
  /**
   * Secrets that a person has typed, so that opening the vault again needs no prompt. `told`: notices already printed.
   */
  readonly typed: { passphrase?: string; storePassword?: string; triesLeft?: number; told: Set<string> }
  readonly signal: AbortSignal
  /** Aborted by SIGHUP after a call of {@link handlesSignals}. */
  readonly hangUp: AbortSignal
  parentPid(): number
  /**
   * A command that ends by itself when `signal` is aborted calls this function. Afterwards, the first SIGINT or SIGTERM
   * only aborts `signal`, and SIGHUP only aborts `hangUp`.
   */
  handlesSignals(): void
  /** The open vaults of this run. An interrupt closes these vaults. */
  readonly opened: Set<Vault>
}
