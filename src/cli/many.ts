/**
 * Runs an operation for several ids or bodies, in order. The first that fails ends the command, as an interrupt does. What
 * answers nothing, as a deletion, is done by many in one unit of work; of a server, several of these, or of what only
 * reads, are asked at the same time.
 */
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
  /** Of the request that failed, and of those that were sent with it. */
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
    const answers: Fate[] = await Promise.allSettled(found.map(askOne))
    for (const [at, each] of found.entries()) {
      if (found.length > 1 && isBusy(answers[at]!)) {
        // Too busy for several, so it is asked for one at a time from now on.
        atOnce = 1
        answers[at] = (await Promise.allSettled([askOne(each)]))[0]!
      }
      const answer = answers[at]!
      fates = isChange ? answers.slice(at) : []
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
        throw tell(error, { done, left: all.slice(done), fates })
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

type Fate = PromiseSettledResult<unknown>

/** Whether the server said that it was too busy. */
function isBusy(fate: Fate): boolean {
  if (fate.status === 'fulfilled' || !(fate.reason instanceof CofferError)) return false
  const { code, retryAfterSeconds } = fate.reason
  return code === 'rate_limited' || (code === 'unavailable' && retryAfterSeconds !== undefined)
}

/** Whether a request that got no answer may have been performed. */
function isInDoubt(fate: Fate): boolean {
  if (fate.status === 'fulfilled' || !(fate.reason instanceof CofferError) || isBusy(fate)) return false
  return ['interrupted', 'request_timeout', 'unavailable'].includes(fate.reason.code)
}

interface Progress {
  done: number
  /** The first is the one that failed. */
  left: readonly Each[]
  fates: readonly Fate[]
}

/** The error with what it is about; what came before stays done. */
function tell(error: CofferError, { done, left, fates }: Progress): CofferError {
  const { code, message, errors, status, traceId } = error
  const isInterrupted = code === 'interrupted'
  const [first] = left
  const isDone = (at: number) => fates[at]?.status === 'fulfilled'
  const isDoubtful = (at: number) => fates[at] !== undefined && isInDoubt(fates[at])
  // The message of the first tells about that one.
  const from = isInterrupted ? 0 : 1
  const list = (fits: (at: number) => boolean) => {
    const names = left.filter((_, at) => at >= from && fits(at)).map(({ name }) => name)
    const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : ''
    return names.slice(0, MOST_NAMED).join(', ') + more
  }
  const facts = Object.entries({
    'done before': done === 0 && !isInterrupted ? '' : String(done),
    'done as well': list(isDone),
    'perhaps done': list(isDoubtful),
    'not done': list((at) => !isDone(at) && !isDoubtful(at)),
  }).flatMap(([what, text]) => (text === '' ? [] : [`${what}: ${text}`]))
  const start = isInterrupted ? `Interrupted. Go on with ${first!.name}` : `${first!.name}: ${message}`
  const about = `${start}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`
  return new CofferError(code, about, {
    status,
    cause: error,
    ...(errors === undefined ? {} : { errors }),
    ...(traceId === undefined ? {} : { traceId }),
  })
}
