/** Runs one operation from the command line: input, confirmation, `perform`, output. */
import { isObject } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError, usage } from '../errors.js'
import { mayShareUnit, type OperationInput } from '../framework/operation.js'
import { resultOf } from '../framework/outcome.js'
import { itemOutput, PAGE_PROPERTIES } from '../framework/page.js'
import type { EachOutcome } from '../framework/perform-each.js'
import type { RegisteredOperation } from '../framework/registry.js'
import { findUnknownName } from '../framework/schema.js'
import { loadOperation } from '../operations/load.js'
import type { OperationRequest, Vault } from '../vault/vault.js'
import { findPresentation } from './commands/presentations.js'
import type { CommandContext } from './context/context.js'
import { readApiKey, requireVault, warnOfStore } from './context/credentials.js'
import type { Options, Steps, Task, Words } from './context/task.js'
import { findTenantChoice } from './context/tenant-choice.js'
import type { Form } from './input/form.js'
import { readIds } from './input/ids.js'
import { type ListNoun, resolveName, resolveNames } from './input/names.js'
import { listFlags, listWords } from './input/options.js'
import { gatherInputs } from './input/request.js'
import { completeWords, requireWords } from './input/words.js'
import { describeUnknown } from './output/fields.js'
import { isList } from './output/layout.js'
import { chooseFormat, printNotice, printResult } from './output/output.js'
import { listAll, printPages } from './pages.js'

const REPLAYED = 'Nothing was done: this is the answer to the first command with this idempotency key.'
/** How long a command that only reads purges expired tokens. */
const SWEEP_BY_READING_MS = 20

/** @throws CofferError those of the operation */
export async function runOperation(
  context: CommandContext,
  definition: RegisteredOperation,
  given: Words,
  options: Options,
  ownSteps?: Steps,
): Promise<void> {
  const { terminal, config } = context
  const presentation = findPresentation(definition)
  const format = chooseFormat(terminal, config.output)
  const terms = presentation.arguments ?? listWords(definition)
  if (!terminal.mayPrompt || options.curl === true) requireWords(definition.name, terms, given)
  if (options.curl === true)
    return (await import('./commands/curl.js')).printCurl(context, definition, given, options)
  await warnOfStore(context)
  const key =
    definition.audience === 'owner' && definition.control === undefined
      ? undefined
      : await readApiKey(context)
  const isExplained = options.explain === true || typeof options.explainAs === 'string'
  if (config.url !== undefined) {
    const served =
      presentation.servedBy === undefined ? definition : await loadOperation(presentation.servedBy)
    const { requireServed } = await import('./context/server.js')
    requireServed(config, served!, key, isExplained)
  } else if (terminal.mayPrompt && definition.runOffline === undefined) requireVault(context)
  if (terminal.mustHaveFields && !isExplained) requireFields(definition, config.fields ?? [])
  const steps = ownSteps ?? (await presentation.load?.()) ?? {}
  const unasked = { context, definition, options, words: given, format, key, empty: presentation.empty }
  const list = (noun: string, task = createTask({ ...unasked, input: {} })) => listAll(task, noun)
  const form = terminal.mayPrompt ? await openForm(context, definition, list) : undefined
  const words = form === undefined ? given : await completeWords(terms, given, form.askWord)
  const ids = await readIds(context, definition, words)
  const asked = await steps.gather?.(context, words, options)
  const gathered =
    asked === undefined
      ? await gatherInputs({ ...context, form }, definition, ids?.words ?? words, options)
      : [asked]
  const facts = { ...unasked, words }
  const asking = createTask({ ...facts, input: {} })
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
  const correct = async (refused: OperationInput, error: unknown) => {
    const corrected = await form?.correct(refused, error)
    return corrected && resolve(corrected)
  }
  const task = createTask({ ...facts, input, correct })
  await confirmDestruction(task, steps)
  if (steps.run !== undefined) await steps.run(task)
  else await askAndPrint(task)
}

/** @throws CofferError `usage` for an unknown field, naming the existing ones */
function requireFields({ output }: RegisteredOperation, fields: readonly string[]): void {
  for (const field of output === undefined ? [] : fields) {
    const unknown = findUnknownName(itemOutput(output!), field)
    if (unknown !== undefined) throw usage(describeUnknown(field, unknown.level, unknown.names))
  }
}

async function openForm(
  { terminal, input, env, signal, clock }: CommandContext,
  definition: RegisteredOperation,
  list: ListNoun,
): Promise<Form> {
  const { createForm } = await import('./input/form.js')
  const { createCheckTools } = await import('./bulk/send.js')
  return createForm({ terminal, input, env, signal }, definition, { list, tools: createCheckTools(clock) })
}

async function askAndPrint(task: Task): Promise<void> {
  if (task.options.all === true) return printPages(task)
  const result = await task.ask()
  await task.print(result)
  if (task.format === 'table' && isObject(result) && typeof result.key === 'string')
    await task.notice('The key is shown only once.')
  await noteHiddenData(task, result)
  await noteMore(task, result)
}

/** Lines do not tell that they are those of the first page, as a table and JSON do. */
async function noteMore({ format, input, notice }: Task, result: unknown): Promise<void> {
  if (!isList(result) || format === 'table' || format === 'json' || input.size !== undefined) return
  const { page_number, total_pages, total_items } = result.pagination
  if (page_number !== 1 || total_pages <= 1 || input.page !== undefined) return
  await notice(`These are the first ${result.data.length} of ${total_items}: --all has all.`)
}

type TaskFacts = Pick<Task, 'context' | 'definition' | 'input' | 'options' | 'words' | 'format' | 'key'> & {
  empty: string | undefined
  /** Another input for one that was refused; undefined where there is none. */
  correct?: Form['correct']
}

function createTask({ empty, correct, ...facts }: TaskFacts): Task {
  const { context, definition, input, options, format, key } = facts
  const { terminal, config } = context
  const use = createUse(context, definition)
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
    use(async (vault) => {
      const request = { operation, input: asked, as, ...omitUndefined({ idempotencyKey }) }
      const outcome = await vault.ask(request)
      if (outcome.isReplayed && idempotencyKey !== undefined && idempotencyKey === options.idempotencyKey)
        await printNotice(terminal, REPLAYED)
      return resultOf(outcome)
    })
  const askCorrecting: typeof askAs = async (operation, first, as, key) => {
    for (let asked = first; ; ) {
      try {
        return await askAs(operation, asked, as, key)
      } catch (error) {
        const corrected = await correct?.(asked, error)
        if (corrected === undefined) throw error
        asked = corrected
      }
    }
  }
  return {
    ...facts,
    ask: async (asked = input, operation = definition.name, repeatKey) => {
      const isOther = operation !== definition.name
      const mayBeOffline = !isOther && definition.runOffline !== undefined
      const askHere = async () =>
        (await import('./context/offline.js')).askOffline(context, definition, asked)
      // Before the tenant is looked up: there may be no vault yet.
      if (mayBeOffline && (definition.run ?? definition.runDetached) === undefined) return askHere()
      const as = key === undefined ? await findOwner() : { key }
      const idempotencyKey = isOther ? repeatKey : (options.idempotencyKey as string | undefined)
      if (isOther) return askAs(operation, asked, as, idempotencyKey)
      if (!mayBeOffline) return askCorrecting(operation, asked, as, idempotencyKey)
      return askAs(operation, asked, as).catch(async (error: unknown) => {
        if (!(error instanceof CofferError) || error.code !== 'vault_damaged') throw error
        await printNotice(terminal, `The vault cannot be opened: ${error.message} Reading what is readable…`)
        return askHere()
      })
    },
    ...(config.url === undefined &&
      mayShareUnit(definition) && {
        askEach: async (inputs: readonly OperationInput[]) => {
          const as = key === undefined ? await findOwner() : { key }
          const request = { operation: definition.name, input: {}, each: inputs, as }
          return use(async (vault) => (await vault.ask(request)).result as EachOutcome)
        },
      }),
    askAsOwner: async (operation, asked, tenant) => askAs(operation, asked, await findOwner(tenant)),
    together: use,
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
function createUse(context: CommandContext, definition: RegisteredOperation) {
  let opened: Vault | undefined
  return async <T>(work: (vault: Vault) => Promise<T>, role?: 'command' | 'server'): Promise<T> => {
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
  }
}

/** A failure to purge does not make the command fail. */
async function sweepExpired({ terminal }: CommandContext, vault: Vault, { endpoint }: RegisteredOperation) {
  try {
    await vault.sweep(endpoint === undefined || endpoint.method === 'GET' ? SWEEP_BY_READING_MS : undefined)
  } catch (error) {
    const reason = error instanceof CofferError ? error.message : 'The reason is unknown.'
    const what = 'Expired tokens could not be purged; a later command will try again.'
    await printNotice(terminal, `${what} ${reason}`)
  }
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

function hintsFor({ context, definition, input }: Pick<Task, 'context' | 'definition' | 'input'>) {
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
async function noteHiddenData({ context, definition, options, format }: Task, result: unknown) {
  if (options.reveal === true || definition.isRevealable !== true || format !== 'table') return
  // Where the body is any JSON, so is the answer.
  if (definition.wholeBody !== undefined) return
  if (typeof result !== 'object' || result === null || 'data' in result) return
  const isRead = definition.log?.operation === 'read'
  const how = isRead ? 'Show it with --reveal.' : 'Show it with: coffer token get ID --reveal'
  await printNotice(context.terminal, `The data has no mask, so it is not shown. ${how}`)
}
