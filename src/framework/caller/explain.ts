/** Performs an operation on tokens as another caller, records every decision, and rolls back the unit of work. */
import type { Permission } from '../../domain/access/permissions.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { CofferError, type PropertyErrors, usage } from '../../errors.js'
import type { Store } from '../../storage/store.js'
import type { Host } from '../host.js'
import type { AnyOperation } from '../operation.js'
import { perform } from '../perform.js'
import { authenticate, readApplicationCaller } from './authenticate.js'
import { type Caller, maskingCaller, noRevealCaller } from './caller.js'
import { type ExplainedDecision, recordDecisions } from './decisions.js'

export type Explained = { key: string } | { application: string; tenant: number } | { owner: Caller }

export interface Explanation {
  operation: string
  caller: { type: string; id?: string }
  permissions: { permission: Permission; is_held: boolean }[]
  decisions: ExplainedDecision[]
  outcome: { status: number; detail?: string; errors?: PropertyErrors }
  /** The answer. Data is masked here even if a rule reveals the data, because an explanation leaves no log record. */
  sees?: unknown
}

/** @throws CofferError `usage` if the operation is not about tokens, or `not_found` if the application is unknown */
export async function explain(
  host: Host,
  whose: Explained,
  definition: AnyOperation,
  input: Record<string, unknown>,
  isNoReveal = false,
): Promise<Explanation> {
  if (definition.isExplainable !== true) throw usage('Only operations on tokens can be explained.')
  const notes = new Map<string, ExplainedDecision>()
  const about = { operation: definition.name, decisions: [], permissions: [] }
  let caller: Caller
  try {
    const found = await findCaller(host, whose)
    caller = isNoReveal ? noRevealCaller(found) : found
  } catch (error) {
    if (!(error instanceof CofferError) || error.code !== 'unauthenticated') throw error
    return { ...about, caller: { type: 'application' }, outcome: describeRefusal(error) }
  }
  const permissions = definition.access.permissions.map((permission) => ({
    permission,
    is_held: caller.holds(permission),
  }))
  const noting = recordDecisions(maskingCaller(caller), notes)
  const answer = await performAndUndo(host, noting, notes, definition, input)
  return { ...about, caller: { ...caller.actor }, permissions, decisions: [...notes.values()], ...answer }
}

async function findCaller(host: Host, whose: Explained): Promise<Caller> {
  if ('owner' in whose) return whose.owner
  if ('key' in whose) return authenticate(host, whose.key)
  return host.store.read((reader) => readApplicationCaller(reader, whose.tenant, whose.application))
}

async function performAndUndo(
  host: Host,
  caller: Caller,
  notes: Map<string, ExplainedDecision>,
  definition: AnyOperation,
  input: Record<string, unknown>,
): Promise<Pick<Explanation, 'outcome' | 'sees'>> {
  const store = createUndoingStore(host.store, notes)
  try {
    const done = await perform({ ...host, store }, caller, definition, input, host.createUuid())
    return { outcome: { status: done.status }, ...omitUndefined({ sees: done.result }) }
  } catch (error) {
    if (error instanceof CofferError && error.status < 500) return { outcome: describeRefusal(error) }
    throw error
  }
}

function describeRefusal({ status, message, errors }: CofferError): Explanation['outcome'] {
  return { status, detail: message, ...omitUndefined({ errors }) }
}

/**
 * Rolls back every unit of work. An engine may run a unit again, so `notes` keeps only the decisions of the last run.
 */
export function createUndoingStore(store: Store, notes = new Map<string, ExplainedDecision>()): Store {
  return {
    ...store,
    write: async (work) => {
      const undo = new CofferError('internal', 'An explanation is always rolled back.')
      const before = [...notes]
      let result: { value: Awaited<ReturnType<typeof work>> } | undefined
      try {
        await store.write(async (writer) => {
          notes.clear()
          for (const [name, note] of before) notes.set(name, note)
          result = { value: (await work(writer)) as Awaited<ReturnType<typeof work>> }
          throw undo
        })
      } catch (error) {
        if (error !== undo || result === undefined) throw error
      }
      return result!.value
    },
  }
}
