/** How an operation runs from the command line, and what its command may add, such as options or a confirmation. */
import type { OperationInput } from '../framework/operation.js'
import type { EachOutcome } from '../framework/perform-each.js'
import type { RegisteredOperation } from '../framework/registry.js'
import type { Format } from '../global-flags.js'
import type { OperationName } from '../operations/all.js'
import type { CommandContext } from './context.js'

/** The options of a command line, by commander's names. */
export type Options = Readonly<Record<string, unknown>>

/** Its positional arguments. */
export type Args = readonly (string | undefined)[]

/** Arguments of a command in commander's syntax: `<id>`, `<id...>`, `[file]`. */
export type ArgSpecs = readonly (readonly [name: string, description: string])[]

/** One run of one operation. */
export interface Task {
  readonly context: CommandContext
  readonly definition: RegisteredOperation
  readonly input: Readonly<OperationInput>
  readonly options: Options
  readonly args: Args
  readonly format: Format
  /** The API key of the caller; undefined for the owner. */
  readonly key: string | undefined
  /**
   * Performs the operation, or another one, as the same caller. Opens the vault, unless within `withOpenVault`. `repeatKey`:
   * the idempotency key for a server.
   */
  ask(input?: OperationInput, operation?: string, repeatKey?: string): Promise<unknown>
  /** Performs the operation for several inputs in one unit of work. Absent where it must be asked one by one. */
  askEach?(inputs: readonly OperationInput[]): Promise<EachOutcome>
  /** Performs an operation as the owner, in `tenant` (default: the tenant of this run). */
  askAsOwner(operation: string, input: OperationInput, tenant?: string): Promise<unknown>
  /** Keeps the vault open while `work` runs; as a server, other commands can use it meanwhile. */
  withOpenVault<T>(work: () => Promise<T>, role?: 'command' | 'server'): Promise<T>
  /** Prints a result of the operation, by default in the format of this run. */
  print(result: unknown, format?: Format): Promise<void>
  /** Prints to standard error, unless `--quiet`. */
  notice(text: string): Promise<void>
}

/** The steps of a command that differ from performing its operation once and printing the answer. */
export interface Hooks {
  /** Reads the input, instead of from the schema's flags and standard input. */
  gather?(context: CommandContext, args: Args, options: Options): Promise<OperationInput>
  /** Confirms a destruction, instead of the usual prompt. @throws CofferError `interrupted` */
  confirm?(task: Task): Promise<void>
  /** Performs and prints. */
  run?(task: Task): Promise<void>
}

/** An option of a command in commander's syntax: `-f, --follow`. */
export type CommandOption = readonly [flag: string, description: string, isRepeatable?: true]

/** Arguments, options and hooks that a command adds to the declaration of its operation. */
export interface Presentation {
  /** Its arguments, if they are not properties of the input. */
  readonly arguments?: ArgSpecs
  readonly options?: readonly CommandOption[]
  /** The operation by which a server does what the command does, if not its own. */
  readonly servedBy?: OperationName
  /** The notice for an empty list. */
  readonly empty?: string
  /** Loaded when the command runs. */
  load?(): Promise<Hooks>
}

/** A command without an operation. */
export interface TerminalCommand {
  /** `serve`, or noun and verb. */
  readonly name: string
  readonly summary: string
  readonly details?: string
  readonly arguments?: ArgSpecs
  readonly options?: readonly CommandOption[]
  readonly examples: readonly string[]
  /** Its line is parsed without the operations, which it loads itself. */
  readonly isAlone?: true
  run(context: CommandContext, args: Args, options: Options): Promise<void>
}
