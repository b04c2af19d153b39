import { isObject } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import type { SettingView } from '../domain/settings.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { isShortId, SHORT_LENGTH } from '../domain/token/short-id.js'
import { CofferError, interrupted, usage } from '../errors.js'
import { itemOutput, type List } from '../framework/page.js'
import type { RegisteredOperation } from '../framework/registry.js'
import type { TokenView } from '../operations/token/token-attributes.js'
import type { CommandContext, OperationLine, Options } from './context.js'
import { keyOf, listArgs, listFlags } from './input/flags.js'
import { completeArgs, gatherInputs } from './input/gather.js'
import { type ListNoun, resolveName } from './input/names.js'
import { explainMissing } from './missing.js'
import { findPresentation } from './nouns/all.js'
import { displayLines } from './output/display.js'
import { isList } from './output/fields.js'
import { chooseFormat, printForRun } from './output/output.js'
import { createProgress } from './output/progress.js'
import { isTerminal, write } from './output/terminal.js'
import { findMasked, listAll, printPages } from './pages.js'
import { checkTarget } from './target/check.js'
import { type Hooks, Run, type Task } from './task.js'

const SINGLE_INPUT_FLAGS = ['all', 'curl', 'explain', 'explain-as', 'follow', 'idempotency-key']
const ROUTE_FLAGS = ['curl', 'idempotency-key']
const NO_TOKEN = 'There is no token with this id.'
const MAX_SILENT = 100

/** Finds the form of the operation that the flags choose. @throws CofferError `usage` for a flag of another form */
export function chooseForm(
  forms: readonly RegisteredOperation[],
  line: Omit<OperationLine, 'definition'>,
): OperationLine {
  const { options } = line
  const definition = forms.find(({ cli }) => cli?.form && options[cli.form.flag] !== undefined) ?? forms[0]!
  const chosen = definition.cli?.form
  const known = listFlags(definition).map(({ name }) => name)
  for (const each of forms)
    for (const { name, key } of listFlags(each))
      if (options[key] !== undefined && !known.includes(name))
        throw usage(
          `${name} ${chosen ? `cannot be combined with --${chosen.flag}` : `needs --${each.cli!.form!.flag}`}.`,
        )
  for (const flag of chosen && definition.endpoint === undefined ? ROUTE_FLAGS : [])
    if (options[keyOf(flag)] !== undefined)
      throw usage(`--${flag} cannot be combined with --${chosen!.flag}.`)
  // The flag that chose the form is removed if it has no value.
  const given = Object.entries(options).filter(([key, value]) => key !== chosen?.flag || value !== true)
  return { ...line, definition, options: Object.fromEntries(given) }
}

export async function runOperation(given: OperationLine, ownHooks?: Hooks): Promise<void> {
  const { context, definition, options } = given
  const { terminal, config } = context
  const presentation = findPresentation(definition)
  const { arguments: specs = listArgs(definition) } = presentation
  const format = isIdEnough(given) ? 'id' : chooseFormat(terminal, config.output)
  if (options.curl === true) {
    const args = await completeArgs(context, definition.name, specs, given.args)
    return (await import('./commands/curl.js')).printCurl({ ...given, args })
  }
  const key = await checkTarget(given, isExplained(options))
  const hooks = ownHooks ?? presentation.hooks ?? {}
  const run = new Run({ ...given, format, key, presentation })
  const list = createNounList(run.createTask({}, given.args))
  const form = terminal.mayPrompt
    ? new (await import('./input/form.js')).Form({ ...context, list }, definition)
    : undefined
  if (presentation.arguments === undefined) await form?.checkFlags(options)
  const args = await completeArgs({ terminal, form }, definition.name, specs, given.args)
  const own = await hooks.gather?.(context, args, options)
  const { inputs, names, faults } = await gatherInputs({ ...context, form, list }, { ...given, args }, own)
  const tasks = inputs.map((input) => viewAnswers(run.createTask(input, args), hooks))
  const [task = run.createTask({}, args)] = tasks
  if (names === undefined && isExplained(options)) {
    const application = (await resolveName('app', options.explainAs, list)) as string | undefined
    return explainTask(task, application)
  }
  await askConfirmation(task, tasks, hooks)
  if (names !== undefined) return runEach(task, tasks, { names, faults }, hooks)
  const perform = () => (hooks.run ?? askAndPrint)(task, askAndPrint)
  try {
    // The vault stays open while a table is drawn, because the view may need further answers of the vault.
    await (hooks.view !== undefined && format === 'table' ? task.withOpenVault(perform) : perform())
  } catch (error) {
    throw await explainMissing(task, error)
  }
}

function viewAnswers(task: Task, { view }: Hooks): Task {
  if (view === undefined) return task
  return { ...task, print: async (answer, ...more) => task.print(await view(answer, task), ...more) }
}

export function runOnTokens(context: CommandContext, options: Options, run: NonNullable<Hooks['run']>) {
  const definition = context.registry.find('token list-after')!
  return runOperation({ context, definition, args: [], options }, { run })
}

/**
 * On a terminal, `--quiet` prints only the ids of lists and new records. A new record with a key is printed as usual,
 * because the key is shown only once.
 */
function isIdEnough({ context, definition }: OperationLine): boolean {
  const { terminal, config } = context
  const { output, endpoint } = definition
  if (!terminal.quiet || (config.output ?? config.fields) !== undefined || output === undefined) return false
  const item = itemOutput(output)
  const names = Object.keys((item.type === 'object' && item.properties) || {})
  const isMade =
    endpoint !== undefined && endpoint.method !== 'GET' && !names.some((name) => /key/.test(name))
  return isTerminal(terminal.stdout) && names.includes('id') && (item !== output || isMade)
}

export function isExplained({ explain, explainAs }: Options): boolean {
  return explain === true || typeof explainAs === 'string'
}

/** If `application` is undefined, explains the request of the caller. @throws CofferError `not_found` */
async function explainTask(task: Task, application: string | undefined): Promise<void> {
  const explanation = await task.explain(application).catch(async (error: unknown) => {
    throw await explainMissing(task, error, application)
  })
  const { terminal, config } = task.context
  if (chooseFormat(terminal, config.output) === 'table' && config.fields === undefined) {
    const { describeExplanation } = await import('./output/explanation.js')
    const { explainAs } = task.options
    const name = typeof explainAs === 'string' ? explainAs : undefined
    for (const line of describeExplanation(explanation, name))
      await write(terminal.stdout, `${displayLines(line)}\n`)
    if (explanation.sees !== undefined) await printForRun(task.context, explanation.sees)
  } else await printForRun(task.context, explanation)
  await task.notice('The operation was not performed. Plaintext that the caller would see is masked.')
}

function createNounList(task: Task): ListNoun {
  const lists = new Map<string, Promise<readonly unknown[]>>()
  return (noun, given = '', input = {}) => {
    if (noun === 'token') return findTokens(task, given)
    const { application_id } = input
    if (noun === 'app key') return task.ask({ application_id }, 'app key list') as Promise<unknown[]>
    if (noun === 'app template') return task.ask({}, 'app template list') as Promise<unknown[]>
    const known = lists.get(noun) ?? listAll(task, noun)
    lists.set(noun, known)
    return known
  }
}

/** Finds tokens whose id is `id` or begins with `id`. Uses a search, so that the command need not list all tokens. */
async function findTokens({ ask, context }: Task, id: string): Promise<readonly unknown[]> {
  if (!isShortId(id)) return []
  const query = `id:${id} OR id:${id.slice(0, SHORT_LENGTH)}*`
  const found = context.config.url === undefined ? ask({ id }, 'token find') : ask({ query }, 'token search')
  return ((await found) as List<unknown>).data
}

async function askConfirmation(task: Task, tasks: readonly Task[], { confirm }: Hooks): Promise<void> {
  const { context, definition, args } = task
  const confirmation = definition.cli?.confirmation
  if (confirmation === undefined || context.config.yes) return
  if (confirm !== undefined) return confirm(task)
  // A missing token is reported before the question is asked. The token is looked up only in a local vault, because a
  // server would log this read.
  const isLookedUp = definition.name === 'token delete' && context.config.url === undefined
  for (const each of isLookedUp && context.terminal.mayPrompt ? tasks : []) {
    const found = await each.ask(each.input, 'token find').catch(() => undefined)
    if (isList(found) && found.data.length === 0)
      throw await explainMissing(each, new CofferError('not_found', NO_TOKEN))
  }
  const prompt = await import('./input/prompt.js')
  const message = `${[confirmation, ...args].join(' ')}${args.length === 0 ? '' : '.'} Continue?`
  await prompt.confirm(context.terminal, message)
}

async function askAndPrint(task: Task): Promise<void> {
  const { definition, format, input, notice, options } = task
  if (options.all === true) return printPages(task)
  const result = await task.ask()
  // An operation whose body may be any JSON may also answer with any JSON.
  const isOne = isObject(result) && !isList(result)
  const isToken = definition.plaintext === 'masked' && definition.http?.body?.whole === undefined && isOne
  const state =
    isToken && format === 'table' && 'data' in result ? await describeData(task, result) : undefined
  await task.print(result, format, state && { data: state.mark })
  if (format === 'json' || !isObject(result)) return
  if (format !== 'table') {
    if (!isList(result) || input.size !== undefined || input.page !== undefined) return
    // A table already says which part of the list it contains.
    const { total_pages: pages, total_items: total } = result.pagination
    if (pages > 1) await notice(`Showing ${result.data.length} of ${total}. Add --all to list all.`)
    return
  }
  if (definition.noun === 'app' && typeof result.key === 'string') await notice('The key is shown only once.')
  if (!isToken || (state === undefined && options.reveal === true)) return
  if (state?.isMasked === false) return notice('! in plaintext')
  const what = state === undefined ? 'The data has no mask, so it is not shown.' : '• masked.'
  const how =
    options.reveal === true
      ? 'This key may not see the data in plaintext.'
      : await findWayToReveal(task, result)
  await notice(`${what} ${how}`.trim())
}

/** Returns an empty text if the caller may not see the plaintext. */
async function findWayToReveal(task: Task, token: Readonly<Record<string, unknown>>): Promise<string> {
  const { context, definition, key, askAsOwner } = task
  if (context.config.noReveal) return ''
  const isRead = definition.log?.operation === 'read'
  const get = `coffer token get ${quoteWord(String(token.id))}`
  if (key !== undefined) {
    // With the key of an application, the rules of the application decide what a read shows. Answers to writes are
    // always masked.
    const isMasked = isRead ? undefined : await findMasked(task)
    return isMasked?.(token as unknown as TokenView) === false ? `Show it with: ${get}` : ''
  }
  const { value } = (await askAsOwner('config get', { name: 'no_reveal' })) as SettingView
  if (value === true) return ''
  return isRead ? 'Show it with --reveal.' : `Show it with: ${get} --reveal`
}

async function describeData(task: Task, token: object) {
  const isRead = task.definition.log?.operation === 'read'
  const isMasked = !isRead || (await findMasked(task))?.(token as TokenView) === true
  return { isMasked, mark: isMasked ? '•' : '!' }
}

interface Several {
  readonly names: readonly string[]
  readonly faults?: ReadonlyMap<number, CofferError> | undefined
}

/**
 * The first failure or an interrupt ends the command, and finished tasks are not undone. JSON and ids are printed after
 * each task, a table or CSV at the end.
 */
async function runEach(whole: Task, tasks: readonly Task[], { names, faults }: Several, hooks: Hooks) {
  const { definition, format, context, options } = whole
  for (const flag of SINGLE_INPUT_FLAGS)
    if (options[keyOf(flag)] !== undefined) throw usage(`--${flag} takes one id or body at a time.`)
  const isStreamed = format !== 'table' && format !== 'csv'
  const isLong = tasks.length > MAX_SILENT
  const { stderr, quiet } = context.terminal
  const isSilent = quiet || !isLong || definition.output !== undefined
  const shape = { label: definition.name, total: tasks.length }
  const progress = createProgress({ stderr, quiet: isSilent }, shape, context.clock)
  const results: unknown[] = []
  const print = async (result: unknown) => {
    if (result === undefined) return
    if (isStreamed) await whole.print(result, format === 'json' ? 'ndjson' : format)
    else results.push(result)
  }
  const place = { at: 0, done: 0, isBegun: false, isBetween: false }
  const perform = async (task: Task) => {
    const fault = faults?.get(place.at)
    if (fault !== undefined) throw fault
    const usual = async ({ ask }: Task) => {
      const result = await ask()
      place.done = place.at + 1
      await print(result)
    }
    await (hooks.run ?? usual)({ ...task, print }, usual)
    place.done = place.at + 1
  }
  const work = async () => {
    // After this call, the error of an interrupt says how many tasks are done.
    context.handlesSignals()
    place.isBegun = true
    for (const task of tasks) {
      place.isBetween = context.signal.aborted
      if (place.isBetween) throw interrupted()
      await perform(task)
      place.at++
      await progress.show(place.done)
    }
  }
  try {
    // The role of a server lets other commands use the vault during long work.
    await whole.withOpenVault(work, isLong ? 'server' : 'command')
  } catch (error) {
    throw error instanceof CofferError && place.isBegun ? explainPlace(error, names, place) : error
  } finally {
    await progress.finish()
    if (results.length > 0) await whole.print(results)
    else if (place.done > 0 && place.done === tasks.length && !isStreamed) await whole.print(undefined)
  }
}

/** `at`: the task in progress, or the next task if no task is in progress. */
interface Place {
  readonly at: number
  readonly done: number
  readonly isBetween: boolean
}

function explainPlace(error: CofferError, names: readonly string[], { at, done, isBetween }: Place) {
  const { code, message, errors, status, traceId } = error
  const name = names[at]!
  const after = names.length - at - 1
  const isUnknown = done === at && (status >= 500 || code === 'request_timeout')
  const current = done > at ? [] : [name]
  const rest = [...(isUnknown ? [] : current), ...(after === 0 ? [] : [`${after} more after it`])].join(
    ' and ',
  )
  const counts = [
    `done before: ${at}`,
    ...(isUnknown ? [`perhaps done: ${name}`] : []),
    ...(rest === '' ? [] : [`not done: ${rest}`]),
  ]
  const text = isBetween
    ? `Interrupted. Continue with ${name} (done before: ${done})`
    : `${name}: ${message} (${counts.join('; ')})`
  return new CofferError(code, text, { status, cause: error, ...omitUndefined({ errors, traceId }) })
}
