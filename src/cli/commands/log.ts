/** `coffer log tail | verify`: the log as it grows, and the verdict on its chain. */
import { setTimeout } from 'node:timers/promises'
import { CofferError } from '../../errors.js'
import type { List } from '../../framework/page.js'
import type { Steps, Task } from '../context/task.js'
import { cellOf } from '../output/layout.js'
import { printNotice } from '../output/output.js'
import { write } from '../output/terminal.js'

/** Columns stand below one another though nobody knows what is still to come; an id of one's own may be longer. */
const WIDTHS: Record<string, number> = { actor_type: 11, operation: 6, entity_type: 15, entity_id: 36 }
const LOOK = 20
const LARGEST_PAGE = 10_000
const POLL_MS = 1000

/**
 * With `--follow` also every record that comes, until interrupted. The vault is opened anew for every look, so that
 * others can work meanwhile.
 */
export const tail: Steps = createTail(waitForNext)

export function createTail(wait: (signal: AbortSignal) => Promise<unknown>): Steps {
  return {
    run: async (task) => {
      const { signal, terminal } = task.context
      const first = await look(task, task.input)
      if (task.options.follow !== true) return task.print(first.data)
      let seen = first.pagination.total_items
      await printLines(task, first.data)
      while (!signal.aborted) {
        await wait(signal)
        if (signal.aborted) return
        const { records, total } = await readNewer(task, seen)
        const skipped = total - seen - records.length
        seen = total
        if (skipped > 0) await printNotice(terminal, `${skipped} records came too fast to be shown.`)
        if (!(await printLines(task, records))) return
      }
    },
  }
}

type LogList = List<Record<string, unknown>>

async function look({ ask }: Task, input: object): Promise<LogList> {
  return (await ask({ ...input })) as LogList
}

/** Records are never taken away, so their number says which are new. */
function readNewer(task: Task, seen: number): Promise<{ records: LogList['data']; total: number }> {
  return task.together(async () => {
    const newest = await look(task, { number: LOOK })
    const isAll = newest.pagination.total_items - seen <= newest.data.length
    const { data, pagination } = isAll ? newest : await look(task, { number: LARGEST_PAGE })
    const total = pagination.total_items
    return { records: total === seen ? [] : data.slice(seen - total), total }
  })
}

/** One line a record, for there is no end to wait for. Resolves to whether anybody still reads. */
async function printLines(task: Task, records: Record<string, unknown>[]): Promise<boolean> {
  const { context, definition, format } = task
  const { terminal, config } = context
  if (format !== 'table') {
    if (records.length > 0) await task.print(records, format === 'json' ? 'ndjson' : format)
    return true
  }
  await terminal.letGo?.()
  for (const record of records) {
    const fields = config.fields ?? definition.columns
    const text = fields
      .map((name) => (cellOf(name, record[name]) || '-').padEnd(WIDTHS[name] ?? 0))
      .join('  ')
    if (!(await write(terminal.stdout, `${text.trimEnd()}\n`))) return false
  }
  return true
}

function waitForNext(signal: AbortSignal): Promise<unknown> {
  return setTimeout(POLL_MS, undefined, { signal }).catch(() => undefined)
}

interface Proof {
  is_whole: boolean
  records: number
  broken_at?: number
}

/** Ends with `vault_damaged` saying at which record the chain breaks. */
export const verify: Steps = {
  run: async ({ context, ask, print }) => {
    const proof = (await ask()) as Proof
    await print(proof)
    const { records, broken_at = 0 } = proof
    if (proof.is_whole)
      return printNotice(
        context.terminal,
        'Every record follows from the one before it, and none is missing at the end.',
      )
    const what =
      broken_at > records
        ? `ends after ${records} records, and more were written`
        : `is broken at record ${broken_at} of ${records}: it, or one before it, was changed, taken out, put in or moved`
    throw new CofferError('vault_damaged', `The log ${what}. Compare it with a backup.`)
  },
}
