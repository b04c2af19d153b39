/** `--follow`: prints rows as they come, until Ctrl-C or until the reader closes the stream. */
import { pause } from '../../client/pause.js'
import { write } from '../output/terminal.js'
import type { Task } from '../task.js'

const POLL_MS = 1000

export type Wait = (signal: AbortSignal) => Promise<unknown>

export const waitToPoll: Wait = (signal) => pause(POLL_MS, signal)

/** `readNew` opens the vault for each poll, so that other commands can run in between. */
export async function follow<R extends object>(
  task: Task,
  first: readonly R[],
  draw: (row: R) => string,
  readNew: () => Promise<readonly R[]>,
  wait = waitToPoll,
): Promise<void> {
  const { signal } = task.context
  for (let rows = first; await printRows(task, rows, draw); rows = await readNew()) {
    await wait(signal)
    if (signal.aborted) return
  }
}

/** Resolves to false if the reader closed the stream. */
export async function printRows<R extends object>(
  { context, format, print }: Task,
  rows: readonly R[],
  draw: (row: R) => string,
): Promise<boolean> {
  const { terminal } = context
  if (format !== 'table') {
    if (rows.length > 0) await print(rows, format === 'json' ? 'ndjson' : format)
    return true
  }
  await terminal.releaseSignals?.()
  for (const row of rows) if (!(await write(terminal.stdout, draw(row)))) return false
  return true
}
