/**
 * Logs as format 1 has them: a row for each record, in tables of their own and in the write-ahead log. Each row's chain
 * value is a digest of the one before and of the row. They are read, and brought to the present format; never written.
 */
import type { Mac } from '../../crypto/ports.js'
import { fromBase64, isEqual } from '../bytes.js'
import type { Key, OldLog, Row } from '../engine.js'
import type { OldLogEnds } from '../vault-file.js'
import type { Memtable } from './memtable.js'
import type { LiveSSTable } from './sstable/live-sstable.js'
import type { SSTable } from './sstable/reader.js'
import { CHAIN_BYTES } from './sstable/row-change.js'
import { search } from './sstable/search.js'

const LOG_KIND = 255

export interface OldLogs {
  /** The tables of logs, oldest first. */
  tables: readonly LiveSSTable[]
  memtable: Memtable
  ends: OldLogEnds
  mac: Mac
}

export function oldTenants({ tables, memtable }: OldLogs): number[] {
  const inTables = tables.flatMap(({ sstable }) => [...sstable.footer.tenants.keys()])
  return [...new Set([...inTables, ...memtable.oldLogs.map(({ tenant }) => tenant)])].sort((a, b) => a - b)
}

/** The ends without those of a tenant that was dropped. */
export function dropOldLog(ends: OldLogEnds, tenant: number): OldLogEnds {
  const { [tenant]: _, ...chains } = ends.chains
  return { ...ends, chains }
}

/** A row of these logs as its seal is for: the chain value lies before it. */
export function withoutChain(row: Row): Row {
  const { kind, tenant, id, seq, rev, created, modified, expires, keys, sealed } = row
  const own = sealed.subarray(CHAIN_BYTES)
  return { kind, tenant, id, seq, rev, created, modified, expires, keys, sealed: own }
}

/** A row of a table, which may be one of logs, as its seal is for. */
export function readSealed(sstable: SSTable, number: number): Row {
  const row = sstable.row(number)
  return sstable.meta.family === 'logs' ? withoutChain(row) : row
}

/** The log of a tenant; `all` is the key of all its rows. */
export function readOldLog({ tables, memtable, ends, mac }: OldLogs, tenant: number, all: Key): OldLog {
  const isDropped = memtable.dropped.has(tenant)
  const pieces: { from: number; count: number; row(index: number): Row }[] = []
  let count = 0
  const add = (more: number, row: (index: number) => Row) => {
    pieces.push({ from: count, count: more, row })
    count += more
  }
  for (const live of isDropped ? [] : tables) {
    const found = search(live, [], { kind: LOG_KIND, tenant, all }, 0)
    add(found.count, (index) => live.sstable.row(found.row(index)))
  }
  const stored = count
  const newest = memtable.oldLogs.filter((row) => row.tenant === tenant)
  add(newest.length, (index) => newest[index]!)
  const rowAt = (index: number): Row => {
    const piece = pieces.find(({ from, count }) => index < from + count)!
    return piece.row(index - piece.from)
  }
  const end = ends.chains[tenant] ?? { count: 0, value: Buffer.alloc(CHAIN_BYTES).toString('base64') }
  return {
    count,
    row: (index) => withoutChain(rowAt(index)),
    check(isAuthentic) {
      let previous = new Uint8Array(CHAIN_BYTES)
      let brokenAt: number | undefined
      for (let index = 0; index <= count; index++) {
        // What `state` says of the tables; the write-ahead log says by itself where it ends.
        const isOff = index === stored && (end.count !== index || !isEqual(fromBase64(end.value), previous))
        if (isOff) brokenAt ??= index + 1
        if (index === count) break
        const row = rowAt(index)
        const chain = Uint8Array.from(row.sealed.subarray(0, CHAIN_BYTES))
        const plain = withoutChain(row)
        const isNext = isEqual(chain, mac(Buffer.concat([previous, plain.sealed]), CHAIN_BYTES))
        if (!isNext || !isAuthentic(plain)) brokenAt ??= index + 1
        previous = chain
      }
      return brokenAt === undefined ? { count } : { count, brokenAt }
    },
  }
}
