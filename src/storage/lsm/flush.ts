/** Flush: writes a memtable as sorted tables, and marks the rows in older tables that it makes dead. */
import type { Counters } from './counters.js'
import type { Memtable } from './memtable.js'
import { LiveSSTable } from './sstable/live-sstable.js'
import type { SSTableContext } from './sstable/reader.js'
import { writeSSTables } from './sstable/row-writer.js'

/** A memtable that does not change while it is flushed in steps, beside other work. */
export class FrozenMemtable {
  readonly memtable: Memtable
  /** As of its last change. */
  readonly counters: Counters
  /** The new tables, once all steps are done. */
  written: LiveSSTable[] | undefined
  readonly #context: SSTableContext
  #steps: Generator<undefined, LiveSSTable[]> | undefined

  constructor(context: SSTableContext, memtable: Memtable, counters: Counters) {
    this.#context = context
    this.memtable = memtable
    this.counters = counters
  }

  /** Does one step; after a failed step the next call begins anew. @throws CofferError `storage_failed`. */
  advance(): void {
    if (this.written !== undefined) return
    this.#steps ??= writeSSTables(this.#context, this.memtable.live())
    try {
      const step = this.#steps.next()
      if (step.done) this.written = step.value
    } catch (error) {
      this.#steps = undefined
      throw error
    }
  }

  close(): void {
    this.#steps?.return([])
  }
}

/** Marks rows that the memtable replaced, removed or dropped as dead and due to be erased. */
export function markShadowed(live: LiveSSTable, memtable: Memtable): LiveSSTable {
  const { sstable, dead, due, dropped } = live
  const tenants = [...memtable.dropped].filter((tenant) => sstable.footer.tenants.has(tenant))
  const rows = live.hiddenBy(memtable)
  if (rows.length === 0 && tenants.length === 0) return live
  return new LiveSSTable(sstable, addRows(dead, rows), addRows(due, rows), new Set([...dropped, ...tenants]))
}

/** The union, ascending. */
function addRows(rows: Uint32Array, more: readonly number[]): Uint32Array {
  return Uint32Array.from(new Set([...rows, ...more])).sort()
}

export function hasNoLiveRows({ sstable, dead, dropped }: LiveSSTable): boolean {
  const { rows, tenants } = sstable.footer
  return dead.length === rows || [...tenants.keys()].every((tenant) => dropped.has(tenant))
}
