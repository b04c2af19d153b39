/** The contents of the manifest, in memory and encoded as the `state` document. Reads and writes no file. */
import { decodeId, encodeId, fromBase64, packRows, toBase64, unpackRows } from '../bytes.js'
import type { State, StateSSTable } from '../vault-file.js'
import type { Counters } from './counters.js'
import { LiveSSTable } from './sstable/live-sstable.js'
import { SSTable, type SSTableContext } from './sstable/reader.js'
import type { WalRef } from './wal.js'

export interface Contents {
  /** Digests of the valid `vault.json`; two while it is replaced. */
  headers: readonly string[]
  counters: Counters
  /** Oldest first. */
  wals: readonly WalRef[]
  /** Ascending by lowest `seq`. */
  sstables: readonly LiveSSTable[]
}

export function encodeContents(contents: Contents): State {
  const { headers, counters, wals, sstables } = contents
  return {
    headers: [...headers],
    counters,
    journals: wals.map(({ id, previous }) => ({ id: encodeId(id), previous: toBase64(previous) })),
    segments: sstables.map(encodeSSTable),
  }
}

function encodeSSTable({ sstable, dead, due, dropped }: LiveSSTable): StateSSTable {
  const { id, tag, bytes, rows, from, to } = sstable.meta
  return {
    id: encodeId(id),
    tag: toBase64(tag),
    bytes,
    rows,
    from,
    to,
    dead: packRows(dead),
    due: packRows(due),
    dropped: [...dropped],
  }
}

/** Contract: the state is authentic, so that its shape needs no check. */
export function decodeContents(state: State, context: SSTableContext): Contents {
  const { headers, journals: wals, segments: sstables } = state
  return {
    headers,
    counters: state.counters,
    wals: wals.map(({ id, previous }) => ({ id: decodeId(id)!, previous: fromBase64(previous) })),
    sstables: sstables.map((entry) => decodeSSTable(entry, context)),
  }
}

function decodeSSTable(entry: StateSSTable, context: SSTableContext): LiveSSTable {
  const { bytes, rows, from, to } = entry
  const name = { id: decodeId(entry.id)!, tag: fromBase64(entry.tag), bytes, rows, from, to }
  return new LiveSSTable(
    new SSTable(context, name),
    unpackRows(entry.dead),
    unpackRows(entry.due),
    new Set(entry.dropped),
  )
}

export function sortSSTables(sstables: readonly LiveSSTable[]): LiveSSTable[] {
  return [...sstables].sort((left, right) => left.sstable.meta.from - right.sstable.meta.from)
}
