import { pause } from '../../client/pause.js'
import type { Task } from '../task.js'
import { write } from './terminal.js'

const POLL_MS = 1000

export const FOLLOW = ['-f, --follow', 'also print new entries, until Ctrl-C'] as const

/** `readNew` opens the vault for each poll and closes it again, so that other commands can run in between. */
export async function follow<R extends object>(
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

export async function printRows<R extends object>(
  { context, format, print }: Task,
  rows: readonly R[],
  formatRow: (row: R) => string,
): Promise<boolean> {
  if (format === 'table') return write(context.terminal.stdout, rows.map(formatRow).join(''))
  if (rows.length > 0) await print(rows, format === 'json' ? 'ndjson' : format)
  return true
}
