import { decideContainer, dependsOnId, type PassedOver } from '../../domain/access/access.js'
import type { Permission, Transform } from '../../domain/access/permissions.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { type Caller, type DecidingGrants, deriveCaller } from './caller.js'

/** If access rules depend on token ids, a list makes one decision for each token. */
const MAX_DECISIONS = 1000

export interface ExplainedDecision {
  of?: DecidingGrants['of']
  permission: Permission
  container: string
  token?: string
  decided_by?: 'owner' | 'permissions' | { priority: number; description?: string }
  transform?: Transform
  passed_over: (PassedOver & { description?: string })[]
}

/** Returns a copy of the caller. Decisions about the copy are added to `notes` until `notes` has `most` decisions. */
export function recordDecisions(
  caller: Caller,
  notes: Map<string, ExplainedDecision>,
  most = MAX_DECISIONS,
): Caller {
  return deriveCaller(caller, ({ grants, transform }) => ({
    recordsDecisions: true,
    transform: (permission, target, orBy) => {
      for (const container of notes.size < most ? target.containers : []) {
        const explain = (of?: DecidingGrants) => explainGrants(of, permission, container, target.id)
        for (const note of grants?.map(explain) ?? [explain()])
          notes.set(JSON.stringify([note.of, permission, container, note.token]), note)
      }
      return transform(permission, target, orBy)
    },
  }))
}

function explainGrants(
  grants: DecidingGrants | undefined,
  permission: Permission,
  container: string,
  id: string | undefined,
): ExplainedDecision {
  if (grants === undefined)
    return { permission, container, decided_by: 'owner', transform: 'reveal', passed_over: [] }
  const { decidedBy, transform, passedOver } = decideContainer(grants, permission, container, id)
  const describe = (priority: number) => {
    const rule = grants.rules.find((each) => each.priority === priority)
    return { priority, ...omitUndefined({ description: rule?.description }) }
  }
  return {
    ...omitUndefined({ of: grants.of }),
    permission,
    container,
    ...omitUndefined({
      token: dependsOnId(grants) ? id : undefined,
      decided_by: typeof decidedBy === 'number' ? describe(decidedBy) : decidedBy,
      transform,
    }),
    passed_over: passedOver.map(({ priority, ...why }) => ({ ...describe(priority), ...why })),
  }
}
