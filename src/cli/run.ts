/** Runs one operation from the command line: input, confirmation, `perform`, output. */
import { isObject } from '../domain/json/json.js'
import { CofferError, usage } from '../errors.js'
import type { OperationInput } from '../framework/operation.js'
import { itemOutput } from '../framework/page.js'
import type { RegisteredOperation } from '../framework/registry.js'
import { findUnknownName } from '../framework/schema.js'
import { loadOperation } from '../operations/load.js'
import { findPresentation } from './commands/presentations.js'
import type { CommandContext } from './context.js'
import { completeArgs } from './input/args.js'
import type { Form } from './input/form.js'
import { gatherInputs } from './input/gather.js'
import { type ListNoun, resolveName, resolveNames } from './input/names.js'
import { listArgs } from './input/options.js'
import { createTask, type TaskFacts } from './operation-task.js'
import { describeUnknown } from './output/fields.js'
import { isList } from './output/layout.js'
import { chooseFormat } from './output/output.js'
import { listAll, printPages } from './pages.js'
import { readApiKey, requireVault, warnOfStore } from './target/credentials.js'
import type { Args, Hooks, Options, Presentation, Task } from './task.js'

/** @throws CofferError those of the operation */
export async function runOperation(
  context: CommandContext,
  definition: RegisteredOperation,
  given: Args,
  options: Options,
  ownHooks?: Hooks,
): Promise<void> {
  const { terminal, config } = context
  const presentation = findPresentation(definition)
  const specs = presentation.arguments ?? listArgs(definition)
  const format = chooseFormat(terminal, config.output)
  if (options.curl === true) {
    const args = await completeArgs(definition.name, specs, given, undefined)
    return (await import('./commands/curl.js')).printCurl(context, definition, args, options)
  }
  if (!terminal.mayPrompt) await completeArgs(definition.name, specs, given, undefined)
  const key = await checkTarget(context, definition, presentation, options)
  const hooks = ownHooks ?? (await presentation.load?.()) ?? {}
  const facts: TaskFacts = {
    ...{ context, definition, options, args: given, format, key, empty: presentation.empty },
    input: {},
  }
  const list = createNounList(createTask(facts))
  const form = terminal.mayPrompt ? await openForm(context, definition, list) : undefined
  const askArg = form && ((name: string, description: string) => form.askArg(name, description))
  const args = await completeArgs(definition.name, specs, given, askArg)
  const own = await hooks.gather?.(context, args, options)
  const { inputs, names } = await gatherInputs({ ...context, form, list }, definition, args, options, own)
  const create = (input: OperationInput, correct?: Form['correct']) =>
    createTask({ ...facts, args, input, ...(correct && { correct }) })
  if (names !== undefined) {
    await confirmDestruction(create({}), hooks)
    const { runEach } = await import('./many.js')
    return runEach({ createTask: create, hooks, inputs, names })
  }
  const [input = {}] = inputs
  if (isExplained(options)) {
    const { explainOperation } = await import('./commands/explain.js')
    const application = (await resolveName('app', options.explainAs, list)) as string | undefined
    return explainOperation(context, definition, input, { key, application, reveal: options.reveal === true })
  }
  const task = create(input, async (refused, error) => {
    const corrected = await form?.correct(refused, error)
    return corrected && resolveNames(definition.input.properties ?? {}, corrected, list)
  })
  await confirmDestruction(task, hooks)
  await (hooks.run ?? askAndPrint)(task)
}

function isExplained({ explain, explainAs }: Options): boolean {
  return explain === true || typeof explainAs === 'string'
}

/** Checks what can be checked before anything is asked. Resolves to the API key of the caller; undefined for the owner. */
async function checkTarget(
  context: CommandContext,
  definition: RegisteredOperation,
  { servedBy }: Presentation,
  options: Options,
): Promise<string | undefined> {
  const { terminal, config } = context
  await warnOfStore(context)
  const isOwners = definition.audience === 'owner' && definition.control === undefined
  const key = isOwners ? undefined : await readApiKey(context)
  if (config.url !== undefined) {
    const served = servedBy === undefined ? definition : await loadOperation(servedBy)
    const { requireServed } = await import('./target/server.js')
    requireServed(config, served!, key, isExplained(options))
  } else if (terminal.mayPrompt && definition.runOffline === undefined) requireVault(context)
  if (terminal.mustHaveFields && !isExplained(options)) requireFields(definition, config.fields ?? [])
  return key
}

/** @throws CofferError `usage` for an unknown field, naming the existing ones */
function requireFields({ output }: RegisteredOperation, fields: readonly string[]): void {
  for (const field of output === undefined ? [] : fields) {
    const unknown = findUnknownName(itemOutput(output!), field)
    if (unknown !== undefined) throw usage(describeUnknown(field, unknown.level, unknown.names))
  }
}

/** Lists all things of a noun, once for each noun. */
function createNounList(task: Task): ListNoun {
  const lists = new Map<string, Promise<readonly unknown[]>>()
  return (noun) => {
    const known = lists.get(noun) ?? listAll(task, noun)
    lists.set(noun, known)
    return known
  }
}

async function openForm(
  { terminal, input, env, signal, clock }: CommandContext,
  definition: RegisteredOperation,
  list: ListNoun,
): Promise<Form> {
  const { Form } = await import('./input/form.js')
  const { createCheckTools } = await import('./bulk/send.js')
  return new Form({ terminal, input, env, signal, list, tools: createCheckTools(clock) }, definition)
}

async function confirmDestruction(task: Task, { confirm }: Hooks): Promise<void> {
  const { context, definition, args } = task
  const { terminal, config } = context
  const { destroys } = definition
  if (destroys === undefined || config.yes) return
  if (confirm !== undefined) return confirm(task)
  const prompt = await import('./input/prompt.js')
  const message = `${[destroys, ...args].join(' ')}${args.length === 0 ? '' : '.'} Go on?`
  if (!(await prompt.confirm(terminal, { message })))
    throw new CofferError('interrupted', 'Nothing was changed.')
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

/** Explains why a token without a mask has no data in the output. */
async function noteHiddenData({ definition, options, format, notice }: Task, result: unknown): Promise<void> {
  if (options.reveal === true || definition.isRevealable !== true || format !== 'table') return
  // If the body is any JSON, so is the answer.
  if (definition.wholeBody !== undefined || !isObject(result) || 'data' in result) return
  const isRead = definition.log?.operation === 'read'
  const how = isRead ? 'Show it with --reveal.' : 'Show it with: coffer token get ID --reveal'
  await notice(`The data has no mask, so it is not shown. ${how}`)
}

/** Tells that lines are those of the first page only; a table and JSON show that. */
async function noteMore({ format, input, notice }: Task, result: unknown): Promise<void> {
  if (!isList(result) || format === 'table' || format === 'json' || input.size !== undefined) return
  const { page_number, total_pages, total_items } = result.pagination
  if (page_number !== 1 || total_pages <= 1 || input.page !== undefined) return
  await notice(`These are the first ${result.data.length} of ${total_items}: --all has all.`)
}
