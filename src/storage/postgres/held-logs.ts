/** Log entries of committed units that are in no row yet: those of this process, and those in the table that they wait in. */
import { toText } from '../bytes.js'
import type { EngineReader, LogEntry, LogSealer } from '../engine.js'
import type { Waiting, WhichWaiting } from './log-sql.js'
import type { Batch } from './shared.js'

/** Batches that are read at most, and their bytes. */
const MOST_WAITING = [10_000, 2 ** 30] as const

interface WaitingReader extends EngineReader {
  readWaiting(which: WhichWaiting, limit: number, bytes: number): Promise<Waiting[]>
}

/** Of one tenant, oldest first. `gathered`: by this process, before the unit of `reader` read anything. */
export async function findHeld(
  reader: WaitingReader,
  sealer: LogSealer,
  gathered: readonly Batch[],
  tenant: number,
): Promise<readonly (LogEntry | undefined)[]> {
  const found: (Pick<Batch, 'id' | 'written'> & { entries: readonly (LogEntry | undefined)[] })[] = []
  // It may have been sent, and put into the log, before the unit read anything.
  for (const batch of gathered)
    if (batch.tenant === tenant && !(await sealer.hasSealed(reader, tenant, batch.id))) found.push(batch)
  const unsent = new Set(found.map(({ id }) => toText(id)))
  for (const { id, written, sealed } of await reader.readWaiting({ tenant }, ...MOST_WAITING)) {
    const entries = unsent.has(toText(id)) ? [] : await sealer.recall(reader, tenant, id, sealed)
    found.push({ id, written, entries: entries ?? [undefined] })
  }
  return found.toSorted((one, other) => one.written - other.written).flatMap(({ entries }) => entries)
}
