import { CofferError } from '../../errors.js'
import type { List } from '../../framework/page.js'
import type { ResultOf } from '../../operations/all.js'
import { identify } from '../input/names.js'
import { countOf } from '../output/display.js'
import { FOLLOW, follow } from '../output/follow.js'
import { printWarning } from '../output/output.js'
import { cellOf } from '../output/table.js'
import type { Hooks, Presentations, Task } from '../task.js'

const USUAL_PAGE = 20
const LARGEST_PAGE = 10_000

const MAX_NAMED = 50
/** The widths are fixed, because later records are not known yet. Only a custom id can be wider than its column. */
const WIDTHS: Record<string, number> = { actor_type: 11, operation: 6, entity_type: 15, entity_id: 36 }

/**
 * Each entry: the type of actor, the label before a name, the operation that lists these actors, and the filter for
 * their ids.
 */
const ACTORS = [
  ['application', 'app', 'app list', 'id'],
  ['user', 'user', 'member list', 'user_id'],
] as const

const ACTOR_LISTS = ['data', 'seen_by', 'used_by'] as const

type Actor = { actor_type?: string; actor_id?: string }
type Records = List<Record<string, unknown>>

const tail: Hooks = {
  run: async (task) => {
    const { ask, withOpenVault, context, definition } = task
    const first = (await ask({ ...task.input })) as Records
    if (task.options.follow !== true) return task.print(first.data)
    const fields = context.config.fields ?? definition.columns
    const format = (record: Records['data'][number]) => {
      const cells = fields.map((name) => (cellOf(name, record[name]) || '-').padEnd(WIDTHS[name] ?? 0))
      return `${cells.join('  ').trimEnd()}\n`
    }
    let seen = first.pagination.total_items
    const readNew = async () => {
      // If no record was removed, the increase of `total_items` is the number of new records.
      const { data, pagination } = await withOpenVault(async () => {
        const newest = (await ask({ number: USUAL_PAGE })) as Records
        const isAll = newest.pagination.total_items - seen <= newest.data.length
        return isAll ? newest : ((await ask({ number: LARGEST_PAGE })) as Records)
      })
      const count = pagination.total_items - seen
      seen = pagination.total_items
      const skipped = count - data.length
      if (skipped > 0)
        await printWarning(
          context.terminal,
          `${countOf(skipped, 'record')} skipped: too many were written at once.`,
        )
      return data.slice(Math.max(0, -skipped))
    }
    await follow(task, first.data, format, readNew)
  },
}

const named: Hooks = {
  view: (answer, task) =>
    task.format === 'table' && task.context.config.fields === undefined ? nameActors(task, answer) : answer,
}

/** Requests only the actors of this page. If the caller may not read the names of actors, the ids are shown. */
async function nameActors({ ask }: Task, result: unknown): Promise<unknown> {
  const given = result as Partial<Record<(typeof ACTOR_LISTS)[number], Actor[]>>
  const lists = ACTOR_LISTS.flatMap((name) =>
    given[name] === undefined ? [] : { name, actors: given[name] },
  )
  const all = lists.flatMap(({ actors }) => actors)
  const names = new Map<string | undefined, string>()
  for (const [type, label, operation, filter] of ACTORS) {
    const ofType = all.filter(({ actor_type, actor_id }) => actor_type === type && actor_id)
    const ids = [...new Set(ofType.map(({ actor_id }) => actor_id))].slice(0, MAX_NAMED)
    if (ids.length === 0) continue
    const found = await ask({ [filter]: ids, size: MAX_NAMED }, operation).catch(() => ({ data: [] }))
    for (const thing of (found as List<{ id: string; user?: { id: string } }>).data) {
      const [name] = identify(thing).names
      // An application, a user and the system can have the same name. The label distinguishes them.
      if (name !== undefined) names.set(thing.user?.id ?? thing.id, `${label} ${name}`)
    }
  }
  const rename = (actor: Actor) => {
    const name = names.get(actor.actor_id)
    return name === undefined ? actor : { ...actor, actor_type: name }
  }
  const renamed = Object.fromEntries(lists.map(({ name, actors }) => [name, actors.map(rename)]))
  return { ...(result as object), ...renamed }
}

/** @throws CofferError `vault_damaged`, with the record at which the chain is broken */
export const verify: Hooks = {
  run: async ({ ask, print, notice }) => {
    const proof = (await ask()) as ResultOf<'log verify'>
    await print(proof)
    const { records, broken_at = 0 } = proof
    if (proof.is_whole) return notice('The chain of records is intact, and none is missing at the end.')
    const what =
      broken_at > records
        ? `ends after ${countOf(records, 'record')}, and more were written`
        : `is broken at record ${broken_at} of ${records}: this record or an earlier one was changed, removed, inserted or moved`
    throw new CofferError('vault_damaged', `The log ${what}. Compare it with a backup.`)
  },
}

export const presentations: Presentations = {
  // The message of a record already contains the operation.
  'log list': { layout: { optional: ['operation'] }, hooks: named },
  'log reveals': { hooks: named },
  'log tail': {
    layout: { optional: ['operation'] },
    options: [FOLLOW],
    empty: 'The log is empty.',
    hooks: tail,
  },
  'log verify': { hooks: verify },
}
