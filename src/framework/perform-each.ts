/** Performs one operation for several inputs in one unit of work: one commit, where each by itself would have its own. */
import { CofferError, type SentError, toSent } from '../errors.js'
import type { Caller } from './caller/caller.js'
import type { Host } from './host.js'
import { type AnyOperation, type Context, mayShareUnit, type OperationInput } from './operation.js'
import { authorize, createSession } from './perform.js'
import { LOCAL_RECIPIENT } from './recipient.js'

/** How many of the inputs are done, from the first; `error`: why the next one is refused. */
export interface EachOutcome {
  done: number
  error?: SentError
}

/**
 * The same as performing `definition` for each input in turn up to the first that is refused, but that all are logged
 * under one trace id. Contract: {@link mayShareUnit}.
 * @throws CofferError `forbidden`; that of the commit, after which nothing is done
 */
export async function performEach(
  host: Host,
  caller: Caller,
  definition: AnyOperation,
  inputs: readonly OperationInput[],
  traceId: string,
): Promise<EachOutcome> {
  authorize(caller, definition)
  if (!mayShareUnit(definition)) throw new CofferError('internal', `${definition.name} takes one input.`)
  const { generation } = host
  const facts = { host, caller, definition, traceId, generation, recipient: LOCAL_RECIPIENT }
  const session = createSession(facts)
  const ready: Awaited<ReturnType<typeof session.prepare>>[] = []
  let error: unknown
  try {
    for (const input of inputs) ready.push(await session.prepare(caller, definition, input))
  } catch (refusal) {
    error = refusal
  }
  /** Of the input that is refused, and so ends the unit of work: it is run again without that one. */
  let at = 0
  const runAll = async (context: Context) => {
    for (at = 0; at < ready.length; at++) await ready[at]!(context)
  }
  while (ready.length > 0) {
    try {
      await session.inUnit(runAll)
      break
    } catch (refusal) {
      if (at === ready.length || !(refusal instanceof CofferError)) throw refusal
      error = refusal
      ready.length = at
    }
  }
  if (error === undefined) return { done: ready.length }
  if (error instanceof CofferError) return { done: ready.length, error: toSent(error) }
  throw error
}
