/** Runs one operation from the command line: input, confirmation, `perform`, output. */
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError } from '../errors.js'
import type { CursorPage } from '../framework/cursor.js'
import { type OperationInput, resultOf } from '../framework/operation.js'
import { type List, listOf, PAGE_PROPERTIES } from '../framework/page.js'
import { ASK_SMALLER } from '../framework/recipient.js'
import type { RegisteredOperation } from '../framework/registry.js'
import type { NumberSchema } from '../framework/schema.js'
import { loadOperation } from '../operations/load.js'
import type { OperationRequest, Vault } from '../vault/vault.js'
import { findPresentation } from './commands/presentations.js'
import type { CommandContext } from './context/context.js'
import { readApiKey, requireVault } from './context/credentials.js'
import type { Options, Steps, Task } from './context/task.js'
import { findTenantChoice } from './context/tenant-choice.js'
import { readIds } from './input/ids.js'
import { resolveName, resolveNames } from './input/names.js'
import { listFlags } from './input/options.js'
import { gatherInputs } from './input/request.js'
import { chooseFormat, printNotice, printResult } from './output/output.js'

const LARGEST_PAGE = 1000
/** The largest page of members. */
const NAMES_AT_ONCE = 50
const REPLAYED = 'Nothing was done: this is the answer to the first command with this idempotency key.'
/** How long a command that only reads purges expired tokens. */
const SWEEP_BY_READING_MS = 20

/** @throws CofferError those of the operation */
export async function runOperation(
  context: CommandContext,
  definition: RegisteredOperation,
  words: readonly (string | undefined)[],
  options: Options,
  given?: Steps,
): Promise<void> {
  const { terminal, config } = context
  const presentation = findPresentation(definition)
  const format = chooseFormat(terminal, config.output)
  if (options.curl === true)
    return (await import('./commands/curl.js')).printCurl(context, definition, words, options)
  const key =
    definition.audience === 'owner' && definition.control === undefined
      ? undefined
      : await readApiKey(context)
  const isExplained = options.explain === true || typeof options.explainAs === 'string'
  if (config.url !== undefined) {
    const served =
      presentation.servedBy === undefined ? definition : await loadOperation(presentation.servedBy)
    const { requireServed } = await import('./context/server.js')
    requireServed(served!, key, isExplained)
  } else if (terminal.mayPrompt && definition.runOffline === undefined) requireVault(context)
  if (terminal.mustHaveFields && !isExplained)
    (await import('./context/known-fields.js')).requireFields(definition.output, config.fields ?? [])
  const steps = given ?? (await presentation.load?.()) ?? {}
  const ids = await readIds(context, definition, words)
  const asked = await steps.gather?.(context, words, options)
  const gathered =
    asked === undefined ? await gatherInputs(context, definition, ids?.words ?? words, options) : [asked]
  const facts = { context, definition, options, words, format, key, empty: presentation.empty }
  const asking = createTask({ ...facts, input: {} })
  const list = (noun: string, task = asking) => listAll(task, noun)
  const resolve = (each: OperationInput, task?: Task) =>
    resolveNames(definition.input.properties ?? {}, each, (noun) => list(noun, task))
  if (ids !== undefined || gathered.length > 1) {
    const { runEach } = await import('./many.js')
    await confirmDestruction(asking, steps)
    const create = (input: OperationInput) => createTask({ ...facts, input })
    return runEach({ createTask: create, resolve, steps, inputs: gathered, ids })
  }
  const input = await resolve(gathered[0]!)
  if (isExplained) {
    const { explainOperation } = await import('./commands/explain.js')
    const application = (await resolveName('app', options.explainAs, list)) as string | undefined
    return explainOperation(context, definition, input, { key, application, reveal: options.reveal === true })
  }
  const task = createTask({ ...facts, input })
  await confirmDestruction(task, steps)
  if (steps.run !== undefined) await steps.run(task)
  else await askAndPrint(task)
}

async function askAndPrint(task: Task): Promise<void> {
  if (task.options.all === true) return printPages(task)
  const result = await task.ask()
  await task.print(result)
  await noteHiddenData(task, result)
}

type TaskFacts = Pick<Task, 'context' | 'definition' | 'input' | 'options' | 'words' | 'format' | 'key'> & {
  empty: string | undefined
}

function createTask({ empty, ...facts }: TaskFacts): Task {
  const { context, definition, input, options, format, key } = facts
  const { terminal, config } = context
  const opened = createOpened(context, definition)
  const reveal = options.reveal === true
  let chosen: Promise<string | undefined> | undefined
  const findOwner = async (tenant?: string): Promise<OperationRequest['as']> => {
    chosen ??= findTenantChoice(context)
    return { reveal, tenant: tenant ?? (await chosen) }
  }
  const askAs = (
    operation: string,
    asked: OperationInput,
    as: OperationRequest['as'],
    idempotencyKey?: string,
  ) =>
    opened.use(async (vault) => {
      const request = { operation, input: asked, as, ...omitUndefined({ idempotencyKey }) }
      const outcome = await vault.ask(request)
      if (outcome.isReplayed && idempotencyKey !== undefined && idempotencyKey === options.idempotencyKey)
        await printNotice(terminal, REPLAYED)
      return resultOf(outcome)
    })
  return {
    ...facts,
    ask: async (asked = input, operation = definition.name, repeatKey) => {
      const as = key === undefined ? await findOwner() : { key }
      const isOther = operation !== definition.name
      const idempotencyKey = isOther ? repeatKey : (options.idempotencyKey as string | undefined)
      if (isOther || definition.runOffline === undefined) return askAs(operation, asked, as, idempotencyKey)
      const { askOffline } = await import('./context/offline.js')
      if ((definition.run ?? definition.runDetached) === undefined)
        return askOffline(context, definition, asked)
      return askAs(operation, asked, as).catch(async (error: unknown) => {
        if (!(error instanceof CofferError) || error.code !== 'vault_damaged') throw error
        await printNotice(terminal, `The vault cannot be opened: ${error.message} Reading what is readable…`)
        return askOffline(context, definition, asked)
      })
    },
    askAsOwner: async (operation, asked, tenant) => askAs(operation, asked, await findOwner(tenant)),
    together: (work, role) => opened.use(work, role),
    notice: (text) => printNotice(terminal, text),
    print: (result, other = format) =>
      printResult(terminal, result, {
        format: other,
        columns: definition.columns,
        fields: config.fields,
        known: true,
        hints: { ...hintsFor(facts), ...omitUndefined({ empty }) },
      }),
  }
}

/** Opens the vault per request, or once for several, and purges expired tokens each time. */
function createOpened(context: CommandContext, definition: RegisteredOperation) {
  let opened: Vault | undefined
  return {
    use: async <T>(work: (vault: Vault) => Promise<T>, role?: 'command' | 'server'): Promise<T> => {
      if (opened !== undefined) return work(opened)
      return context.reachVault(async (vault) => {
        opened = vault
        try {
          const result = await work(vault)
          await sweepExpired(context, vault, definition)
          return result
        } finally {
          opened = undefined
        }
      }, role)
    },
  }
}

/** A failure to purge does not make the command fail. */
async function sweepExpired(
  { terminal }: CommandContext,
  vault: Vault,
  { endpoint }: RegisteredOperation,
): Promise<void> {
  try {
    await vault.sweep(endpoint === undefined || endpoint.method === 'GET' ? SWEEP_BY_READING_MS : undefined)
  } catch (error) {
    const reason = error instanceof CofferError ? error.message : 'The reason is unknown.'
    await printNotice(
      terminal,
      `Expired tokens could not be purged; a later command will try again. ${reason}`,
    )
  }
}

/** Prints all pages: as ndjson and ids while they are read, else after that. */
async function printPages(task: Task): Promise<void> {
  const { context, definition, input, format } = task
  const size = typeof input.size === 'number' ? input.size : pageSizeOf(definition)
  const pages = walkPages(task, { ...input, size }, context.signal)
  if (format === 'ndjson' || format === 'id') await task.together(() => task.print(itemsOf(pages)))
  else await task.print(await task.together(() => collectPages(pages)))
}

function pageSizeOf({ input }: RegisteredOperation): number {
  const size: NumberSchema | undefined = input.properties?.size
  return Math.min(size?.maximum ?? LARGEST_PAGE, LARGEST_PAGE)
}

type AnyPage = List<unknown> | CursorPage<unknown>

/** Requests smaller pages if a page exceeds the size limit. */
async function* walkPages(
  { ask }: Pick<Task, 'ask'>,
  input: OperationInput & { size: number },
  signal: AbortSignal,
): AsyncGenerator<AnyPage> {
  let { size } = input
  let next: string | undefined
  for (let done = 0; !signal.aborted; ) {
    // A list by cursor has no number, and ignores that of its first page.
    const place = next === undefined ? { page: done / size + 1 } : { start: next }
    try {
      const list = (await ask({ ...input, size, ...place })) as AnyPage
      const { pagination } = list
      done += size
      yield list
      if ('total_items' in pagination ? done >= pagination.total_items : pagination.next === undefined) return
      if ('next' in pagination) next = pagination.next
    } catch (error) {
      if (!isTooLarge(error) || size === 1) throw error
      size = largestDivisor(size)
    }
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof CofferError && error.errors?.size?.[0]?.startsWith(ASK_SMALLER) === true
}

/** A divisor, so that the next page begins where the last one ended. */
function largestDivisor(size: number): number {
  let divisor = Math.floor(size / 2)
  while (size % divisor !== 0) divisor--
  return divisor
}

async function* itemsOf(pages: AsyncIterable<AnyPage>): AsyncGenerator<unknown> {
  for await (const { data } of pages) yield* data
}

/** All things of a noun. */
async function listAll({ context, ask, together }: Task, noun: string): Promise<unknown[]> {
  const asPage = (input?: OperationInput) => ask(input, `${noun} list`)
  const pages = walkPages({ ask: asPage }, { size: NAMES_AT_ONCE }, context.signal)
  return together(async () => (await collectPages(pages)).data)
}

/** All pages as one page. */
async function collectPages(pages: AsyncIterable<AnyPage>): Promise<List<unknown>> {
  const items: unknown[] = []
  for await (const item of itemsOf(pages)) items.push(item)
  return listOf(items, items.length, { page: 1, size: Math.max(1, items.length) })
}

async function confirmDestruction(task: Task, { confirm }: Steps): Promise<void> {
  const { context, definition, words } = task
  const { terminal, config } = context
  const { destroys } = definition
  if (destroys === undefined || config.yes) return
  if (confirm !== undefined) return confirm(task)
  const prompt = await import('./input/prompt.js')
  const message = `${[destroys, ...words].join(' ')}${words.length === 0 ? '' : '.'} Go on?`
  if (!(await prompt.confirm(terminal, { message })))
    throw new CofferError('interrupted', 'Nothing was changed.')
}

function hintsFor({ context, definition, input }: Pick<Task, 'context' | 'definition' | 'input'>): {
  empty: string
  done: string
} {
  const { noun, output, destroys } = definition
  const isFiltered = listFlags(definition).some(
    ({ property }) => !PAGE_PROPERTIES.includes(property) && input[property] !== undefined,
  )
  const creator = context.registry.operations.find((other) => other.noun === noun && other.success === 201)
  const first = creator === undefined ? '' : ` Create one: coffer ${creator.name} --help`
  return {
    empty: isFiltered ? `No ${noun} matches these filters.` : `No ${noun}s yet.${first}`,
    done: output === undefined && destroys !== undefined ? 'Deleted.' : 'Done.',
  }
}

/** Explains why a token without a mask has no data in the output. */
async function noteHiddenData(
  { context, definition, options, format }: Task,
  result: unknown,
): Promise<void> {
  if (options.reveal === true || definition.isRevealable !== true || format !== 'table') return
  // Where the body is any JSON, so is the answer.
  if (definition.wholeBody !== undefined) return
  if (typeof result !== 'object' || result === null || 'data' in result) return
  const isRead = definition.log?.operation === 'read'
  const how = isRead ? 'Show it with --reveal.' : 'Show it with: coffer token get ID --reveal'
  await printNotice(context.terminal, `The data has no mask, so it is not shown. ${how}`)
}
