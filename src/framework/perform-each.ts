/** Performs one operation for several inputs in one unit of work: one commit, where each by itself would have its own. */
import { CofferError, type SentError, toSent } from '../errors.js'
import type { Caller } from './caller.js'
import type { Host } from './host.js'
import type { AnyOperation, OperationInput } from './operation.js'
import { authorize, checkInput, nowOf, runIn } from './perform.js'
import { LOCAL_RECIPIENT } from './recipient.js'
import { completeValue } from './schema.js'
import { runUnit } from './unit.js'

/** How many of the inputs are done, from the first; `error`: why the next one is refused. */
export interface EachOutcome {
  done: number
  error?: SentError
}

/** Of the input at this place. It ends the unit of work, so that nothing of that input is kept. */
class Refused extends Error {
  readonly at: number
  constructor(at: number, cause: CofferError) {
    super('refused', { cause })
    this.at = at
  }
}

/**
 * The same as performing `definition` for each input in turn up to the first that is refused, but that all are logged
 * under one trace id. Contract: `definition` has `run` and no output.
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
  const facts = { host, caller, definition, traceId, recipient: LOCAL_RECIPIENT }
  /** The inputs before the one that is refused. */
  let few = inputs
  let error: SentError | undefined
  const refuseAt = (at: number, cause: unknown) => {
    few = inputs.slice(0, at)
    error = toSent(cause)
  }
  const ready: { input: OperationInput; checked: unknown }[] = []
  try {
    for (const given of inputs) {
      const input = completeValue(definition.input, given) as OperationInput
      ready.push({ input, checked: await checkInput(host, nowOf(host), definition, input) })
    }
  } catch (cause) {
    if (!(cause instanceof CofferError)) throw cause
    refuseAt(ready.length, cause)
  }
  while (few.length > 0) {
    try {
      await runUnit(facts, async (context) => {
        for (const at of few.keys()) {
          const { input, checked } = ready[at]!
          try {
            await runIn(context, definition, input, checked)
          } catch (cause) {
            throw cause instanceof CofferError ? new Refused(at, cause) : cause
          }
        }
      })
      break
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused
      refuseAt(refused.at, refused.cause)
    }
  }
  return { done: few.length, ...(error === undefined ? {} : { error }) }
}
