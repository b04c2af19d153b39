import type { Command } from 'commander'
import type { Fetch } from '../client/http-client.js'
import type { Config, Environment } from '../config.js'
import type { RegisteredOperation, Registry } from '../framework/registry.js'
import type { Clock } from '../vault/open.js'
import type { Vault } from '../vault/vault.js'
import type { InputReader } from './input/input.js'
import type { Streams, Terminal } from './output/terminal.js'

export const TOPIC_NAMES = 'flags access-rules search expressions exit-codes environment'.split(' ')

/** The options of a command line, by commander's names. */
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

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** The part of a process that the command line uses; `bin/` passes the real one, tests a fake. */
export interface ProcessLike extends Streams {
  readonly argv: readonly string[]
  readonly env: Environment
  readonly pid: number
  /** Of the process that started this one; another one after that has ended. */
  readonly ppid: number
  /** The version of Node, such as `v20.19.0`. */
  readonly version: string
  /** How other users see the process; may be absent. */
  title?: string
  /** Default: the system's clock. */
  readonly clock?: Clock
  /** Sends the requests of `--url`; default: over sockets. */
  readonly fetch?: Fetch
  cwd(): string
  on(event: Signal, listener: () => void): unknown
  off(event: Signal, listener: () => void): unknown
}

/** The commands that a line may mean. */
export interface Commands {
  readonly registry: Registry
  listCommands(): Command
  listSummaries(): { name: string; summary: string }[]
  findTerminalCommand(name: string): { details?: string; examples: readonly string[] } | undefined
  /** The help of a command. @throws CofferError `usage` */
  describeCommand(words: readonly string[]): string
}

export interface CommandContext extends Commands, Pick<ProcessLike, 'env' | 'pid' | 'fetch'> {
  readonly terminal: Terminal
  readonly config: Config
  readonly cwd: string
  readonly nodeVersion: string
  /** How to call this program: `coffer`, or `node` with a path. */
  readonly program: string
  readonly clock: Clock
  /** One reader for the whole run, because standard input can be read once. */
  readonly input: InputReader
  /** Answers of this run, so that opening the vault again does not ask again, and notices that are printed once. */
  readonly typed: { passphrase?: string; storePassword?: string; triesLeft?: number; told: Set<string> }
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal
  /** Aborted by SIGHUP after {@link handlesSignals}. */
  readonly hangUp: AbortSignal
  /** The present parent. */
  parentPid(): number
  /** The command ends by itself when `signal` is aborted: from then on nothing interrupts it, not SIGHUP either. */
  handlesSignals(): void
  /** The vaults that this run has open, which an interrupt closes. */
  readonly opened: Set<Vault>
}
