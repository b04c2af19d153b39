/** `coffer log tail | verify`: follows the log, and reports the result of its verification. */
import { CofferError } from '../../errors.js'
import type { List } from '../../framework/page.js'
import type { ResultOf } from '../../operations/all.js'
import { countOf } from '../output/display.js'
import { cellOf } from '../output/layout.js'
import type { Hooks, Task } from '../task.js'
import { follow, type Wait, waitToPoll } from './follow.js'

/** Fixed widths, because the widths of later records are unknown; only a custom id may be longer. */
const WIDTHS: Record<string, number> = { actor_type: 11, operation: 6, entity_type: 15, entity_id: 36 }
const USUAL_PAGE = 20
const LARGEST_PAGE = 10_000

export const tail: Hooks = createTail(waitToPoll)

export function createTail(wait: Wait): Hooks {
  return {
    run: async (task) => {
      const first = await look(task, task.input)
      if (task.options.follow !== true) return task.print(first.data)
      let seen = first.pagination.total_items
      const fields = task.context.config.fields ?? task.definition.columns
      const draw = (record: LogList['data'][number]) => {
        const cells = fields.map((name) => (cellOf(name, record[name]) || '-').padEnd(WIDTHS[name] ?? 0))
        return `${cells.join('  ').trimEnd()}\n`
      }
      const readNew = async () => {
        const { records, total } = await readNewer(task, seen)
        const skipped = total - seen - records.length
        seen = total
        if (skipped > 0)
          await task.notice(`${countOf(skipped, 'record')} skipped: too many were written at once.`)
        return records
      }
      await follow(task, first.data, draw, readNew, wait)
    },
  }
}

type LogList = List<Record<string, unknown>>

async function look({ ask }: Task, input: object): Promise<LogList> {
  return (await ask({ ...input })) as LogList
}

/** The records after the first `seen`: records are never removed, so their number tells which are new. */
function readNewer(task: Task, seen: number): Promise<{ records: LogList['data']; total: number }> {
  return task.withOpenVault(async () => {
    const newest = await look(task, { number: USUAL_PAGE })
    const isAll = newest.pagination.total_items - seen <= newest.data.length
    const { data, pagination } = isAll ? newest : await look(task, { number: LARGEST_PAGE })
    const total = pagination.total_items
    return { records: total === seen ? [] : data.slice(seen - total), total }
  })
}

/** @throws CofferError `vault_damaged` naming the record at which the chain is broken */
export const verify: Hooks = {
  run: async ({ ask, print, notice }) => {
    const proof = (await ask()) as ResultOf<'log verify'>
    await print(proof)
    const { records, broken_at = 0 } = proof
    if (proof.is_whole) return notice('The chain of records is intact, and none is missing at the end.')
    const what =
      broken_at > records
        ? `ends after ${countOf(records, 'record')}, and more were written`
        : `is broken at record ${broken_at} of ${records}: it, or one before it, was changed, removed, inserted or moved`
    throw new CofferError('vault_damaged', `The log ${what}. Compare it with a backup.`)
  },
}
