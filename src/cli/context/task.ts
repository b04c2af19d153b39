/**
 * How an operation is run from the command line, and what a command may add to that: words and options of its own, a
 * question, another way to print. Most operations add nothing.
 */
import type { Format } from '../../config.js'
import type { OperationInput } from '../../framework/operation.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import type { CommandContext } from './context.js'

/** The options of a command line, by the names that commander gives them. */
export type Options = Readonly<Record<string, unknown>>

/** One run of one operation. */
export interface Task {
  readonly context: CommandContext
  readonly definition: RegisteredOperation
  readonly input: Readonly<OperationInput>
  readonly options: Options
  /** What follows the name of the command, as it was typed. */
  readonly words: readonly (string | undefined)[]
  readonly format: Format
  /** The API key to act with; undefined for the owner. */
  readonly key: string | undefined
  /** Performs the operation, or another one as the same caller; opens the vault for it unless `together` has. */
  ask(input?: OperationInput, operation?: string): Promise<unknown>
  /** The same as the owner of the vault, in the tenant given, else in that of this run. */
  askAsOwner(operation: string, input: OperationInput, tenant?: string): Promise<unknown>
  /** Keeps the vault open for everything that `work` asks. */
  together<T>(work: () => Promise<T>): Promise<T>
  /** Prints a result of the operation, in the format of this run unless another is given. */
  print(result: unknown, format?: Format): Promise<void>
}

/** What a command does besides asking once and printing the answer. */
export interface Steps {
  /** The input, where the schema's flags and standard input are not all of it. */
  gather?(
    context: CommandContext,
    words: readonly (string | undefined)[],
    options: Options,
  ): Promise<OperationInput>
  /** Asks before something is destroyed, in place of the usual question. @throws CofferError `interrupted` */
  confirm?(task: Task): Promise<void>
  /** In place of asking once and printing the answer. */
  run?(task: Task): Promise<void>
}

/** An option of a command as commander spells it: `-f, --follow`, what it does, and whether it may be repeated. */
export type CommandOption = readonly [flag: string, description: string, isRepeatable?: true]

/** What the command of an operation has that does not follow from its declaration. */
export interface Presentation {
  /** Its words, where they are no properties of the input. */
  readonly arguments?: readonly (readonly [name: string, description: string])[]
  readonly options?: readonly CommandOption[]
  /** Said when a list is empty. */
  readonly empty?: string
  /** Loaded when the command runs. */
  load?(): Promise<Steps>
}

/** A command of the terminal alone: no operation stands behind it. */
export interface TerminalCommand {
  /** `serve`, or noun and verb. */
  readonly name: string
  readonly summary: string
  readonly details?: string
  readonly arguments?: readonly (readonly [name: string, description: string])[]
  readonly options?: readonly CommandOption[]
  readonly examples: readonly string[]
  run(context: CommandContext, words: readonly (string | undefined)[], options: Options): Promise<void>
}
