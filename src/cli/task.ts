import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError } from '../errors.js'
import type { Explanation } from '../framework/caller/explain.js'
import type { OperationInput } from '../framework/context.js'
import { mayRunOffline } from '../framework/operation.js'
import { resultOf } from '../framework/outcome.js'
import { itemOutput, PAGE_PROPERTIES } from '../framework/page.js'
import type { Schema } from '../framework/schema.js'
import type { Format } from '../global-flags.js'
import type { OperationName } from '../operations/all.js'
import type { OperationRequest, Vault } from '../vault/vault.js'
import type {
  ArgSpecs,
  Args,
  CommandContext,
  CommandOption,
  OperationLine,
  Options,
  Prints,
} from './context.js'
import { explainDurations } from './input/durations.js'
import { itemsOf, readField } from './output/fields.js'
import { explainLoss, hasSecret } from './output/lost-output.js'
import { type PrintOptions, printNotice, printResult, printWarning, type Summarize } from './output/output.js'
import { listFormats } from './short-forms.js'
import { hasVaultHeader } from './target/place.js'
import { askOnce, findTenantChoice, type Role, reachThisVault, withVault } from './target/vault.js'

/** Each hook replaces a step of the usual run. The usual run performs the operation once and prints the answer. */
export interface Hooks {
  /** Reads the input. If `gather` resolves to undefined, the input comes from flags and standard input. */
  gather?(context: CommandContext, args: Args, options: Options): Promise<OperationInput | undefined>
  /** Replaces the usual question before data is destroyed. @throws CofferError `interrupted` */
  confirm?(task: Task): Promise<void>
  /**
   * Returns the value to print instead of the answer. `answer` is a page, all pages, or a stream of items if `--all`
   * prints lines.
   */
  view?(answer: unknown, task: Task): unknown
  /** Performs the operation and prints the answer. `usual` is what a command without this hook does. */
  run?(task: Task, usual?: (task: Task) => Promise<void>): Promise<void>
}

export interface Presentation {
  readonly arguments?: ArgSpecs
  readonly options?: readonly CommandOption[]
  /** The operation to request from a server, if a local vault performs another operation. */
  readonly servedBy?: OperationName
  readonly result?: Schema
  readonly empty?: string
  readonly layout?: Pick<PrintOptions, 'wraps' | 'optional'>
  /** Not called with `--wide`. */
  summarize?(items: readonly unknown[], nowMs: number): ReturnType<Summarize>
  readonly hooks?: Hooks
}

export type Presentations = { readonly [Name in OperationName]?: Presentation }

export interface TerminalCommand {
  readonly name: string
  readonly summary: string
  readonly details?: string
  readonly arguments?: ArgSpecs
  readonly options?: readonly CommandOption[]
  readonly examples: readonly string[]
  readonly prints: Prints
  /** The command is parsed without loading the operations. The command itself loads the operations that it needs. */
  readonly isAlone?: true
  run(context: CommandContext, args: Args, options: Options): Promise<void>
}

interface RunOptions extends OperationLine {
  readonly format: Format
  /** The API key of the caller; undefined for the owner. */
  readonly key: string | undefined
  readonly presentation: Presentation
}

export type Task = ReturnType<Run['createTask']>

const REPLAYED = 'Nothing was done: this is the answer to the first command with this idempotency key.'
/** The time limit for purging expired tokens after a command that only reads. */
const SWEEP_BY_READING_MS = 20

/** One run of a command, with a task for each input. The tasks share the open vault. */
export class Run {
  readonly #run: RunOptions
  #opened: Vault | undefined
  #tenant: Promise<string | undefined> | undefined

  constructor(run: RunOptions) {
    this.#run = run
  }

  createTask(input: Readonly<OperationInput>, args: Args) {
    const { context, definition, options, format, key } = this.#run
    const { terminal } = context
    const { name } = definition
    const notice = (text: string) => printNotice(terminal, text)
    const askOffline = async (asked: OperationInput) =>
      (await import('./target/offline.js')).askOffline(context, definition, asked)
    return {
      ...this.#run,
      input,
      args,
      notice,
      withOpenVault: this.#withOpenVault,
      /**
       * Performs an operation as the caller of the command. `repeatKey`: the idempotency key for an operation that is
       * not the operation of the command.
       */
      ask: async (asked = input, operation = name, repeatKey?: string): Promise<unknown> => {
        const mayFallBack = operation === name && mayRunOffline(definition)
        // An offline operation may run before a vault exists.
        if (mayFallBack && definition.kind === 'offline') return askOffline(asked)
        const idempotencyKey = operation === name ? (options.idempotencyKey as string) : repeatKey
        const as = key === undefined ? await this.#asOwner() : { key }
        try {
          return await this.#send({ operation, input: asked, as, ...omitUndefined({ idempotencyKey }) })
        } catch (error) {
          const { output } = context.config
          const isJson = output === 'json' || output === 'ndjson'
          const isDamaged = error instanceof CofferError && error.code === 'vault_damaged'
          if (!mayFallBack || !isDamaged || !hasVaultHeader(context))
            // If JSON is requested, problems are the same as over HTTP.
            throw operation === name && !isJson ? explainDurations(error, definition) : error
          await printWarning(
            terminal,
            `The vault cannot be opened: ${error.message} Reading what is readable…`,
          )
          return askOffline(asked)
        }
      },
      /** Performs an operation as the owner, in `tenant` (default: the tenant of this run). */
      askAsOwner: async (operation: string, asked: OperationInput, tenant?: string): Promise<unknown> =>
        this.#send({ operation, input: asked, as: await this.#asOwner(tenant) }),
      explain: async (application?: string): Promise<Explanation> => {
        const as = application !== undefined || key === undefined ? await this.#asOwner() : { key }
        const request = { operation: name, input, as, explain: { application } }
        return (await askOnce(context, request)) as Explanation
      },
      /** `marks`: texts that follow the names of fields. */
      print: (result: unknown, other = format, marks?: PrintOptions['marks']) =>
        this.#print(input, result, { format: other, marks, hints: this.#describeHints(input) }),
    }
  }

  async #asOwner(tenant?: string) {
    const { context, options } = this.#run
    this.#tenant ??= findTenantChoice(context)
    return { reveal: options.reveal === true, tenant: tenant ?? (await this.#tenant) }
  }

  async #send(request: OperationRequest): Promise<unknown> {
    const { context, options } = this.#run
    const outcome = await this.#withOpenVault((vault) => vault.ask(request))
    if (outcome.isReplayed && request.idempotencyKey === options.idempotencyKey)
      await printNotice(context.terminal, REPLAYED)
    return resultOf(outcome)
  }

  async #print(
    input: OperationInput,
    result: unknown,
    given: Pick<PrintOptions, 'format' | 'marks' | 'hints'>,
  ): Promise<void> {
    const { context, definition, options, presentation } = this.#run
    const { layout } = presentation
    const summarize = given.format === 'table' && options.wide !== true ? presentation.summarize : undefined
    const formats = definition.output && listFormats(definition.output)
    const columns = columnsOf(definition, result)
    const printed = printResult(context.terminal, result, {
      ...{ ...given, columns, fields: context.config.fields, formats, ...layout },
      summarize: summarize && ((items) => summarize(items, context.clock())),
    })
    const performed = { definition, input, result }
    try {
      // A secret in the answer is lost if the reader closes the output early.
      if (!(await printed) && hasSecret(performed))
        throw new CofferError('storage_failed', 'The output of the command was not read.')
    } catch (error) {
      throw explainLoss(error, context.registry, performed)
    }
  }

  #describeHints(input: OperationInput) {
    const { context, definition, presentation } = this.#run
    const { noun, group = noun, output, cli, positionals } = definition
    const isFiltered = Object.keys(input).some((name) => ![...PAGE_PROPERTIES, ...positionals].includes(name))
    const creator = context.registry.find(`${noun} ${group === noun ? '' : `${group} `}create`)
    const first = creator === undefined ? '' : ` Create one: coffer ${creator.name} --help`
    const none = isFiltered
      ? `No ${group} matches these filters.`
      : `No ${group.replace(/y$/, 'ie')}s yet.${first}`
    const done = output === undefined && cli?.confirmation !== undefined ? 'Deleted.' : 'Done.'
    return { empty: presentation.empty ?? none, done }
  }

  /**
   * Keeps the vault open while `work` runs, then purges expired tokens. The role `server` lets other processes use the
   * vault in the meantime.
   */
  readonly #withOpenVault = async <T>(work: (vault: Vault) => Promise<T>, role?: Role): Promise<T> => {
    if (this.#opened !== undefined) return work(this.#opened)
    const { context, definition } = this.#run
    const { endpoint } = definition
    const opened = await reachThisVault(context, role)
    return withVault(context, opened, async (vault) => {
      this.#opened = vault
      try {
        const result = await work(vault)
        const sweepMs = endpoint === undefined || endpoint.method === 'GET' ? SWEEP_BY_READING_MS : undefined
        // If this purge fails, a later command purges the tokens.
        await vault.sweep(sweepMs).catch(() => 0)
        return result
      } finally {
        this.#opened = undefined
      }
    })
  }
}

/** Adds a column for each secret that is shown only once, such as the keys of new applications. */
function columnsOf({ columns, output }: OperationLine['definition'], result: unknown): readonly string[] {
  const item = output && itemOutput(output)
  const properties = (item?.type === 'object' && item.properties) || {}
  const isThere = (name: string) => itemsOf(result).some((each) => readField(each, name) !== undefined)
  const isAdded = (name: string) => properties[name]?.isShownOnce && !columns.includes(name) && isThere(name)
  return columns.length === 0 ? columns : [...columns, ...Object.keys(properties).filter(isAdded)]
}
