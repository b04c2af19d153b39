import { pause } from '../../client/pause.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { CofferError } from '../../errors.js'
import type { List } from '../../framework/page.js'
import type { ResultOf } from '../../operations/all.js'
import { identify } from '../input/names.js'
import { countOf, displayLines } from '../output/display.js'
import { cellOf } from '../output/table.js'
import { write } from '../output/terminal.js'
import type { Hooks, Task } from '../task.js'

const POLL_MS = 1000
const USUAL_PAGE = 20
const LARGEST_PAGE = 10_000
const STORED_RUNS = 100
/** Actors of one table: a page of members. */
const MAX_NAMED = 50
/** Fixed widths, because the widths of later records are unknown; only a custom id may be longer. */
const WIDTHS: Record<string, number> = { actor_type: 11, operation: 6, entity_type: 15, entity_id: 36 }

/** By type: what its names begin with, the list that has them, and its filter by ids. */
const ACTORS = [
  ['application', 'app', 'app list', 'id'],
  ['user', 'user', 'member list', 'user_id'],
] as const

/** The properties of results that list records by actors. */
const ACTOR_LISTS = ['data', 'seen_by', 'used_by'] as const

type Actor = { actor_type?: string; actor_id?: string }
type Records = List<Record<string, unknown>>
type Run = ResultOf<'reactor logs'>[number]
/** `readNew` opens the vault for each poll, so that other commands can run in between. */
async function follow<R extends object>(
  task: Task,
  first: readonly R[],
  format: (row: R) => string,
  readNew: () => Promise<readonly R[]>,
): Promise<void> {
  const { signal } = task.context
  for (let rows = first; await printRows(task, rows, format); rows = await readNew()) {
    await pause(POLL_MS, signal)
    if (signal.aborted) return
  }
}

/** Resolves to false if the reader closed the stream. */
async function printRows<R extends object>(
  { context, format, print }: Task,
  rows: readonly R[],
  formatRow: (row: R) => string,
): Promise<boolean> {
  if (format === 'table') return write(context.terminal.stdout, rows.map(formatRow).join(''))
  if (rows.length > 0) await print(rows, format === 'json' ? 'ndjson' : format)
  return true
}

export const tail: Hooks = {
  run: async (task) => {
    const { ask, withOpenVault, context, definition, notice } = task
    const first = (await ask({ ...task.input })) as Records
    if (task.options.follow !== true) return task.print(first.data)
    const fields = context.config.fields ?? definition.columns
    const format = (record: Records['data'][number]) => {
      const cells = fields.map((name) => (cellOf(name, record[name]) || '-').padEnd(WIDTHS[name] ?? 0))
      return `${cells.join('  ').trimEnd()}\n`
    }
    let seen = first.pagination.total_items
    const readNew = async () => {
      // Records are never removed, so their number tells which are new.
      const { data, pagination } = await withOpenVault(async () => {
        const newest = (await ask({ number: USUAL_PAGE })) as Records
        const isAll = newest.pagination.total_items - seen <= newest.data.length
        return isAll ? newest : ((await ask({ number: LARGEST_PAGE })) as Records)
      })
      const count = pagination.total_items - seen
      seen = pagination.total_items
      const skipped = count - data.length
      if (skipped > 0) await notice(`${countOf(skipped, 'record')} skipped: too many were written at once.`)
      return data.slice(Math.max(0, -skipped))
    }
    await follow(task, first.data, format, readNew)
  },
}

/** In a table, actors have the names of their applications and the addresses of their users. */
export const named: Hooks = {
  run: async (task, usual) => {
    if (task.format !== 'table' || task.context.config.fields !== undefined) return usual!(task)
    const print: Task['print'] = async (result, ...more) =>
      task.print(await nameActors(task, result), ...more)
    await task.withOpenVault(() => usual!({ ...task, print }))
  },
}

/** Asks for the actors of this page only, and leaves them as they are if the caller may not read them. */
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
      // With the label, an application that is called like a user, or `system`, is not taken for one.
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

export const runs: Hooks = {
  run: async (task) => {
    const { ask, input, options, format, print } = task
    const read = async (number?: number) => (await ask({ ...input, ...omitUndefined({ number }) })) as Run[]
    const isFollowing = options.follow === true
    const first = await read(isFollowing ? STORED_RUNS : undefined)
    if (!isFollowing) {
      if (format !== 'table' || first.length === 0) return print(first)
      return void (await printRows(task, first, formatRun))
    }
    let seen = new Set(first.map(({ id }) => id))
    const readNew = async () => {
      const stored = await read(STORED_RUNS)
      const added = stored.filter(({ id }) => !seen.has(id))
      seen = new Set(stored.map(({ id }) => id))
      return added
    }
    const shown = first.length - Number(input.number ?? USUAL_PAGE)
    await follow(task, first.slice(Math.max(0, shown)), formatRun, readNew)
  },
}

function formatRun({ console, detail, errors = {}, stack, ...run }: Run): string {
  const head = `${run.created_at}  ${run.outcome} ${run.status}  ${run.duration_ms} ms  ${run.memory_mib} MiB`
  const lines = [
    ...console.map(({ level, text }) => `${level}: ${text}`),
    detail,
    ...Object.entries(errors).flatMap(([path, texts]) => texts.map((text) => `${path}: ${text}`)),
    stack,
  ].filter((line) => line !== undefined)
  return [head, ...lines.map((line) => displayLines(line).replaceAll(/^/gm, '    ')), ''].join('\n')
}
