/**
 * Runs an operation for several ids or bodies, in order. The first that fails ends the command, as an interrupt does. What
 * answers nothing, as a deletion, is done by many in one unit of work; of a server, several of these, or of what only
 * reads, are asked at the same time.
 */
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError, fromSent, interrupted, usage } from '../errors.js'
import type { OperationInput } from '../framework/operation.js'
import type { Steps, Task } from './context/task.js'
import type { Ids } from './input/ids.js'
import { keyOf } from './input/options.js'
import { createProgress } from './output/progress.js'

export interface Many {
  createTask(input: OperationInput): Task
  /** Finds the ids that names stand for, by what `task` may list. */
  resolve(input: OperationInput, task: Task): Promise<OperationInput>
  steps: Steps
  /** More than one, or one for all ids. */
  inputs: readonly OperationInput[]
  ids: Ids | undefined
}

/** Flags that have no meaning for several. */
const OF_ONE = ['all', 'curl', 'explain', 'explain-as', 'follow', 'idempotency-key']

/** Inputs of one unit of work, for which other units wait. */
const AT_ONCE = 100
/** Requests that are under way to a server. */
const AT_ONCE_BY_URL = 8
/** More show their progress. */
const MANY = 100
/** Of those that were not done after an error. */
const MOST_NAMED = 5

/** Results are printed as they come as JSON and ids, and at the end as a table or CSV. */
export async function runEach({ createTask, resolve, steps, inputs, ids }: Many): Promise<void> {
  const whole = createTask(inputs[0]!)
  const { definition, format, context, options, ask, askEach, together, askAsOwner } = whole
  for (const flag of OF_ONE)
    if (options[keyOf(flag)] !== undefined) throw usage(`--${flag} takes one id or body at a time.`)
  const isStreamed = format !== 'table' && format !== 'csv'
  const results: unknown[] = []
  const all = [...eachInput(inputs, ids)]
  const isLong = all.length > MANY
  const progress =
    isLong && definition.output === undefined
      ? createProgress(context.terminal, { label: definition.name, total: all.length }, context.clock)
      : undefined
  /** How many are done, from the first. */
  let done = 0
  /** Of what failed, and of what was asked with it. */
  let fates: readonly Fate[] = []
  const take = async (count: number) => {
    done += count
    await progress?.show(done)
  }
  const print = async (result: unknown) => {
    if (result === undefined) return
    if (isStreamed) await whole.print(result, format === 'json' ? 'ndjson' : format)
    else results.push(result)
  }
  const finish = async () => {
    await progress?.finish()
    if (results.length > 0) await whole.print(results)
    else if (done > 0 && done === all.length && !isStreamed) await whole.print(undefined)
  }
  /** Up to a name that stands for nothing, which is then the first of the next ones. */
  const resolveSome = async (some: readonly Each[]) => {
    const found: OperationInput[] = []
    for (const { input } of some)
      try {
        found.push(await resolve(input, whole))
      } catch (error) {
        if (found.length === 0) throw error
        break
      }
    // A list in which a name is looked up ends early then.
    if (context.signal.aborted) throw interrupted()
    return found
  }
  const askOne = async (input: OperationInput): Promise<unknown> => {
    if (steps.run === undefined) return ask(input)
    const task = { ...createTask(input), print, together, askAsOwner }
    return steps.run({ ...task, ask: (asked = input, ...rest) => ask(asked, ...rest) })
  }
  const askInOneUnit = async (found: readonly OperationInput[]) => {
    const { done: count, error } = await askEach!(found)
    await take(count)
    if (error !== undefined) throw fromSent(error)
  }
  const askBeside = async (found: readonly OperationInput[]) => {
    const answers = await Promise.allSettled(found.map(askOne))
    for (const [at, each] of found.entries()) {
      if (found.length > 1 && isBusy(answers[at]!)) {
        // Too busy for several, so it is asked for one at a time from now on.
        atOnce = 1
        answers[at] = (await Promise.allSettled([askOne(each)]))[0]!
      }
      const answer = answers[at]!
      fates = isChange ? answers.slice(at).map(fateOf) : []
      if (answer.status === 'rejected') throw answer.reason
      await print(answer.value)
      await take(1)
    }
  }
  const isChange = definition.log?.operation !== 'read'
  const isInOneUnit = steps.run === undefined && askEach !== undefined
  const mayBeBeside = context.config.url !== undefined && (definition.output === undefined || !isChange)
  let atOnce = isInOneUnit ? AT_ONCE : mayBeBeside && steps.run === undefined ? AT_ONCE_BY_URL : 1
  const work = async () => {
    // From here on an interrupt tells how far the command came.
    context.stopsItself()
    while (done < all.length) {
      fates = []
      try {
        const found = await resolveSome(all.slice(done, done + atOnce))
        await (isInOneUnit ? askInOneUnit : askBeside)(found)
      } catch (error) {
        if (!(error instanceof CofferError)) throw error
        const names = all.slice(done).map(({ name }) => name)
        throw tell(error, done, names, fates)
      }
    }
  }
  // As a server, so that other commands need not wait for the last of many.
  await together(work, isLong ? 'server' : 'command').finally(finish)
}

interface Each {
  input: OperationInput
  /** In messages. */
  name: string
}

function* eachInput(inputs: readonly OperationInput[], ids: Ids | undefined): Generator<Each> {
  if (ids === undefined) for (const [at, input] of inputs.entries()) yield { input, name: `body ${at + 1}` }
  else for (const id of ids.all) yield { input: { ...inputs[0], [ids.property]: id }, name: id }
}

type Answer = PromiseSettledResult<unknown>

function isBusy(answer: Answer): boolean {
  if (answer.status === 'fulfilled' || !(answer.reason instanceof CofferError)) return false
  const { code, retryAfterSeconds } = answer.reason
  return code === 'rate_limited' || (code === 'unavailable' && retryAfterSeconds !== undefined)
}

type Fate = 'done as well' | 'perhaps done' | 'not done'
const UNANSWERED: readonly unknown[] = ['interrupted', 'request_timeout', 'unavailable']

function fateOf(answer: Answer): Fate {
  if (answer.status === 'fulfilled') return 'done as well'
  return UNANSWERED.includes(answer.reason.code) && !isBusy(answer) ? 'perhaps done' : 'not done'
}

/** The error with what it is about, the first of `names`; what came before stays done, and what would have come is not. */
function tell(error: CofferError, done: number, names: string[], fates: readonly Fate[]): CofferError {
  const { code, message, errors, status, traceId } = error
  const isInterrupted = code === 'interrupted'
  const list = (fate: Fate) => {
    // The message tells about the first, unless it is that of an interrupt.
    const fits = (at: number) => (at > 0 || isInterrupted) && (fates[at] ?? 'not done') === fate
    const all = names.filter((_, at) => fits(at))
    const more = all.length > MOST_NAMED ? ` and ${all.length - MOST_NAMED} more` : ''
    return all.length === 0 ? [] : [`${fate}: ${all.slice(0, MOST_NAMED).join(', ')}${more}`]
  }
  const before = done === 0 && !isInterrupted ? [] : [`done before: ${done}`]
  const facts = [...before, ...list('done as well'), ...list('perhaps done'), ...list('not done')].join('; ')
  const start = isInterrupted ? `Interrupted. Go on with ${names[0]}` : `${names[0]}: ${message}`
  const details = { status, cause: error, ...omitUndefined({ errors, traceId }) }
  return new CofferError(code, facts === '' ? start : `${start} (${facts})`, details)
}
