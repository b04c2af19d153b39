/**
 * Runs an operation for several ids or bodies, in order. The first failure ends the command, and so does an interrupt; what
 * was done before stays done. Of operations without an answer, such as a deletion, up to 100 are one unit of work.
 */
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError, fromSent, interrupted, usage } from '../errors.js'
import type { OperationInput } from '../framework/operation.js'
import { keyOf } from './input/options.js'
import { createProgress } from './output/progress.js'
import type { Hooks, Task } from './task.js'

export interface Many {
  createTask(input: OperationInput): Task
  hooks: Hooks
  inputs: readonly OperationInput[]
  /** The ids, or `body 1` and so on. */
  names: readonly string[]
}

/** Flags that have no meaning for several. */
const OF_ONE = ['all', 'curl', 'explain', 'explain-as', 'follow', 'idempotency-key']
/** Inputs of one unit of work, for which other units wait. */
const AT_ONCE = 100
/** A longer command shows its progress. */
const MANY = 100
/** Names listed of what was not done. */
const MOST_NAMED = 5

/** Prints results as they come as JSON and ids, and at the end as a table or CSV. */
export async function runEach({ createTask, hooks, inputs, names }: Many): Promise<void> {
  const whole = createTask(inputs[0] ?? {})
  const { definition, format, context, options, ask, askEach, withOpenVault } = whole
  for (const flag of OF_ONE)
    if (options[keyOf(flag)] !== undefined) throw usage(`--${flag} takes one id or body at a time.`)
  const isStreamed = format !== 'table' && format !== 'csv'
  const isLong = inputs.length > MANY
  const progress =
    isLong && definition.output === undefined
      ? createProgress(context.terminal, { label: definition.name, total: inputs.length }, context.clock)
      : undefined
  const results: unknown[] = []
  const print = async (result: unknown) => {
    if (result === undefined) return
    if (isStreamed) await whole.print(result, format === 'json' ? 'ndjson' : format)
    else results.push(result)
  }
  const askOne = async (input: OperationInput): Promise<unknown> => {
    if (hooks.run === undefined) return ask(input)
    const { withOpenVault, askAsOwner } = whole
    const task = { ...createTask(input), print, withOpenVault, askAsOwner }
    return hooks.run({ ...task, ask: (asked = input, ...rest) => ask(asked, ...rest) })
  }
  let done = 0
  /** Whether the next input was sent, and its answer is missing. */
  let isUnderWay = false
  const takeNext = async () => {
    if (context.signal.aborted) throw interrupted()
    isUnderWay = true
    if (askEach !== undefined && hooks.run === undefined) {
      const { done: count, error } = await askEach(inputs.slice(done, done + AT_ONCE))
      done += count
      isUnderWay = false
      if (error !== undefined) throw fromSent(error)
    } else {
      const result = await askOne(inputs[done]!)
      isUnderWay = false
      await print(result)
      done++
    }
    await progress?.show(done)
  }
  const work = async () => {
    // From here on an interrupt tells how far the command came.
    context.handlesSignals()
    while (done < inputs.length) await takeNext()
  }
  try {
    // As a server, so that other commands need not wait for the last of many.
    await withOpenVault(work, isLong ? 'server' : 'command')
  } catch (error) {
    throw error instanceof CofferError ? describeFailure(error, done, names.slice(done), isUnderWay) : error
  } finally {
    await progress?.finish()
    if (results.length > 0) await whole.print(results)
    else if (done > 0 && done === inputs.length && !isStreamed) await whole.print(undefined)
  }
}

/** The error with what it is about, the first of `names`, with what was done before and with what was not. */
function describeFailure(error: CofferError, done: number, names: readonly string[], isUnderWay: boolean) {
  const { code, message, errors, status, traceId } = error
  const isInterrupted = code === 'interrupted'
  const isFirstOpen = isInterrupted && !isUnderWay
  const rest = isFirstOpen ? names : names.slice(1)
  const more = rest.length > MOST_NAMED ? ` and ${rest.length - MOST_NAMED} more` : ''
  const facts = [
    ...(done === 0 && !isInterrupted ? [] : [`done before: ${done}`]),
    ...(isInterrupted && isUnderWay ? [`perhaps done: ${names[0]}`] : []),
    ...(rest.length === 0 ? [] : [`not done: ${rest.slice(0, MOST_NAMED).join(', ')}${more}`]),
  ].join('; ')
  const start = isInterrupted ? `Interrupted. Go on with ${names[0]}` : `${names[0]}: ${message}`
  const details = { status, cause: error, ...omitUndefined({ errors, traceId }) }
  return new CofferError(code, facts === '' ? start : `${start} (${facts})`, details)
}
