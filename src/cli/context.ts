/** The context of a command: terminal, settings and access to the vault. */
import type { Fetch } from '../client/http-client.js'
import type { Config, Environment } from '../config.js'
import type { Registry } from '../framework/registry.js'
import type { App } from '../vault/app.js'
import type { Clock } from '../vault/open.js'
import type { Vault } from '../vault/vault.js'
import type { InputReader } from './input/input.js'
import type { InputStream, OutputStream, Terminal } from './output/terminal.js'

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** The part of a process that the command line uses; `bin/` passes the real one, tests a fake. */
export interface ProcessLike {
  readonly argv: readonly string[]
  readonly env: Environment
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly pid: number
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

export interface OptionFacts {
  /** `-o` and `--output`. */
  names: readonly string[]
  hasValue: boolean
  description: string
  choices?: readonly string[]
}

/** A command, for completion and help. */
export interface CommandFacts {
  words: readonly string[]
  summary: string
  /** Only for a command without an operation. */
  details?: string
  examples?: readonly string[]
  /** Long flags, including those of the program. */
  flags: readonly string[]
  /** The arguments and the flags of the command itself. */
  arguments: readonly { name: string; description: string; required: boolean }[]
  options: readonly OptionFacts[]
}

export interface CommandContext {
  readonly terminal: Terminal
  readonly config: Config
  readonly env: Environment
  readonly cwd: string
  readonly pid: number
  readonly nodeVersion: string
  /** Node and the script of this program. */
  readonly self: readonly [node: string, script: string]
  /** How to call this program: `coffer`, or `node` with a path. */
  readonly program: string
  readonly clock: Clock
  /** One reader for the whole run, because standard input can be read once. */
  readonly input: InputReader
  readonly registry: Registry
  /** All commands, the program itself first. */
  listCommands(): CommandFacts[]
  /** The help of a command. @throws CofferError `usage` */
  describeCommand(words: readonly string[]): string
  /** Sends the requests of `--url`; absent for sockets. */
  readonly fetch?: Fetch
  /** Answers and notices of this run, so that opening the vault again does not repeat them. */
  readonly typed: {
    passphrase?: string
    storePassword?: string
    triesLeft?: number
    isDemoTold?: true
    isKeyTold?: true
    isStoreTold?: true
  }
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal
  /** The command ends by itself when `signal` is aborted: from then on nothing interrupts it, not SIGHUP either. */
  handlesSignals(): void
  /** Runs `work` on the vault of this run, through a server that has it open or opened here; then closes it. */
  reachVault<T>(work: (vault: Vault) => Promise<T>, role?: 'command' | 'server'): Promise<T>
  /** Opens the vault of this run in this process for `work`; then closes it. */
  withVault<T>(
    work: (app: App) => Promise<T>,
    options?: { role?: 'command' | 'server'; migrates?: boolean },
  ): Promise<T>
}
