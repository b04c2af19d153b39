/** What one run of the command line is given: its terminal, its settings, and the way to the vault. */

import type { Config, Environment } from '../../config.js'
import type { Registry } from '../../framework/registry.js'
import type { App } from '../../vault/app.js'
import type { Clock } from '../../vault/open.js'
import type { Vault } from '../../vault/vault.js'
import type { InputReader } from '../input/input.js'
import type { InputStream, OutputStream, Terminal } from '../output/terminal.js'

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** The part of a process that the command line needs; `bin/` hands in the real one, tests a fake. */
export interface ProcessLike {
  readonly argv: readonly string[]
  readonly env: Environment
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly pid: number
  /** Whoever started it; absent where that tells nothing. */
  readonly ppid?: number
  /** ms since the epoch; absent for the system's. */
  readonly clock?: Clock
  cwd(): string
  on(event: Signal, listener: () => void): unknown
  off(event: Signal, listener: () => void): unknown
}

/** A command as completion and help list it. */
export interface CommandFacts {
  words: readonly string[]
  summary: string
  /** Long flags, those of the program included. */
  flags: readonly string[]
}

export interface CommandContext {
  readonly terminal: Terminal
  readonly config: Config
  readonly env: Environment
  readonly cwd: string
  readonly pid: number
  readonly clock: Clock
  /** Files and standard input; one for the whole run, because standard input can be read once. */
  readonly input: InputReader
  readonly registry: Registry
  /** Every command there is, the program itself first. */
  listCommands(): CommandFacts[]
  /** The help of the command that `words` name. @throws CofferError `usage` */
  describeCommand(words: readonly string[]): string
  /** Runs another command line in this process and gives its exit code. */
  runProcess(process: ProcessLike): Promise<number>
  /** What a person typed in this run, so that one that opens the vault more than once asks them only once. */
  readonly typed: { passphrase?: string }
  /** Aborted by Ctrl-C and by a request to stop. */
  readonly signal: AbortSignal
  /**
   * Said by a task that ends by itself once `signal` is aborted: from then on nothing else ends it, and a terminal that
   * hangs up means nothing.
   */
  stopsItself(): void
  /** Runs `work` on the vault of this run, through a server that has it open or opened here; closes it whatever happens. */
  reachVault<T>(work: (vault: Vault) => Promise<T>): Promise<T>
  /** The same for work that needs the vault to itself. A server has it open for long. */
  withVault<T>(work: (app: App) => Promise<T>, role?: 'command' | 'server'): Promise<T>
}
