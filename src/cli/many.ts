/**
 * Runs an operation for several ids or bodies, in order. The first that fails ends the command. What answers nothing, as
 * a deletion, is done by many in one unit of work.
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
/** More show their progress. */
const MANY = 100
/** Of those that were not done after an error. */
const MOST_NAMED = 5

/** Results are printed as they come as JSON and ids, and at the end as a table or CSV. */
export async function runEach({ createTask, resolve, steps, inputs, ids }: Many): Promise<void> {
  const whole = createTask(inputs[0]!)
  const { format, context, options, ask, askEach, together, askAsOwner } = whole
  for (const flag of OF_ONE)
    if (options[keyOf(flag)] !== undefined) throw usage(`--${flag} takes one id or body at a time.`)
  const isStreamed = format !== 'table' && format !== 'csv'
  const results: unknown[] = []
  let count = 0
  const total = ids?.all.length ?? inputs.length
  const isLong = total > MANY
  const progress =
    isLong && whole.definition.output === undefined
      ? createProgress(context.terminal, { label: whole.definition.name, total }, context.clock)
      : undefined
  const print = async (result: unknown) => {
    count++
    await progress?.show(count)
    if (result === undefined) return
    if (isStreamed) await whole.print(result, format === 'json' ? 'ndjson' : format)
    else results.push(result)
  }
  const finish = async () => {
    if (results.length > 0) await whole.print(results)
    else if (count > 0 && !isStreamed) await whole.print(undefined)
  }
  const askOne = async ({ input }: Each) => {
    const task = { ...createTask(await resolve(input, whole)), print, together, askAsOwner }
    if (steps.run === undefined) await print(await ask(task.input))
    else await steps.run({ ...task, ask: (asked = task.input, ...rest) => ask(asked, ...rest) })
  }
  /** Up to a name that stands for nothing, which is then the first of the next ones. */
  const askSome = async (some: readonly Each[]) => {
    const found: OperationInput[] = []
    for (const { input } of some)
      try {
        found.push(await resolve(input, whole))
      } catch (error) {
        if (found.length === 0) throw error
        break
      }
    const { done, error } = await askEach!(found)
    tried += done
    count += done
    await progress?.show(count)
    if (error !== undefined) throw fromSent(error)
  }
  const all = [...eachInput(inputs, ids)]
  const isTogether = steps.run === undefined && askEach !== undefined
  let tried = 0
  const work = async () => {
    while (tried < all.length) {
      if (context.signal.aborted) throw interrupted()
      try {
        if (isTogether) await askSome(all.slice(tried, tried + AT_ONCE))
        else {
          await askOne(all[tried]!)
          tried++
        }
      } catch (error) {
        if (!(error instanceof CofferError)) throw error
        throw tell(error, all[tried]!.name, count, all.slice(tried + 1))
      }
    }
  }
  // As a server, so that other commands need not wait for the last of many.
  await together(work, isLong ? 'server' : 'command').finally(async () => {
    await progress?.finish()
    await finish()
  })
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

/** The error with what it is about; what came before stays done, and what would have come is not. */
function tell(
  error: CofferError,
  name: string,
  done: number,
  left: readonly { name: string }[],
): CofferError {
  const { code, message, errors, status, traceId } = error
  const names = left.slice(0, MOST_NAMED).map((each) => each.name)
  const more = left.length > MOST_NAMED ? ` and ${left.length - MOST_NAMED} more` : ''
  const facts = [
    ...(done === 0 ? [] : [`done before: ${done}`]),
    ...(left.length === 0 ? [] : [`not done: ${names.join(', ')}${more}`]),
  ]
  const about = `${name}: ${message}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`
  return new CofferError(code, about, {
    status,
    cause: error,
    ...(errors === undefined ? {} : { errors }),
    ...(traceId === undefined ? {} : { traceId }),
  })
}
