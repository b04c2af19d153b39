/**
 * Brings a vault of format 1 to format 2: makes a backup, writes the logs anew as blocks into tables that nothing names
 * yet, puts the new header in place, so that no older program opens the vault any more, and then the `state` that names
 * the new tables. Killed before the header, it leaves format 1; killed after it, the next write goes on.
 */
import { CofferError } from '../../../errors.js'
import { toText } from '../../bytes.js'
import type { EngineWriter, LogSealer, Row } from '../../engine.js'
import { removeQuietly } from '../../files.js'
import { type Header, writeHeader } from '../../vault-file.js'
import { type Counters, copyCounters } from '../counters.js'
import { oldTenants } from '../format-1.js'
import { getRow, type View } from '../query.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import { finish, writeSSTables } from '../sstable/row-writer.js'
import { createReader } from '../transaction.js'
import type { LsmTree } from '../tree.js'
import { createBackupWriter } from './backup.js'

/** Sealed bytes of rows that are held before they are written. */
const HELD_BYTES = 16 * 1024 * 1024
/** Rows that may be replaced again: a log's head, its open block and the last record of headers. */
const UNSETTLED = 8
/** On a slow machine; it is said to be about so long. */
const BYTES_PER_SECOND = 4 * 1024 * 1024
const MEBIBYTE = 1024 * 1024

/** `header`: that of the present format. @throws CofferError `storage_failed`; then the vault is as it was. */
export async function upgradeVault(tree: LsmTree, sealer: LogSealer, header: Header, now: number) {
  const { files, directory, random } = tree.options
  const isBegun = tree.options.header.format === header.format
  if (!isBegun) makeBackup(tree)
  const written: LiveSSTable[] = []
  try {
    const counters = await convert(tree, sealer, now, written)
    if (!isBegun) await tree.replaceHeader(header, () => writeHeader(files, directory, random, header))
    // A change of keys that was under way made tables and a header of format 1: it begins anew.
    removeQuietly(files, `${directory}/rekey`)
    await tree.addTables(written, counters)
  } catch (error) {
    const named = new Set(tree.manifest.contents.sstables)
    for (const live of written) {
      if (named.has(live)) continue
      live.sstable.close()
      // What the `state` on disk may name stays.
      if (tree.isSound) removeQuietly(files, live.sstable.path)
    }
    throw error
  }
}

/** Beside the vault, because what is in its directory is the vault's. */
function makeBackup(tree: LsmTree): void {
  const { files, directory, header, notice } = tree.options
  const names = Object.values(tree.fileNames()).flat()
  const sizes = names.map((name) => files.stat(`${directory}/${name}`)?.size ?? 0)
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  const logs = sizes.reduce((sum, size, index) => sum + (/\/l-|journal/.test(names[index]!) ? size : 0), 0)
  const needed = bytes + logs + MEBIBYTE
  const free = files.free(directory)
  const size = (count: number) => `${(count / MEBIBYTE).toFixed(1)} MiB`
  if (free < needed)
    throw new CofferError(
      'storage_failed',
      `This vault has format 1, and bringing it to format ${header.format + 1} needs ${size(needed)} of room for a backup and its log; ` +
        `there are ${size(free)}. Nothing was changed. Make room, then run: coffer vault upgrade`,
    )
  const path = freeName(tree)
  const seconds = Math.max(1, Math.ceil(bytes / BYTES_PER_SECOND))
  notice(
    `This vault has format 1 and is brought to format 2 now (${size(bytes)}, about ${seconds} s). ` +
      `A backup of it as it was is in ${path}; remove that once all is well.`,
  )
  const writer = createBackupWriter(tree.options, `${path}.unfinished`, header)
  try {
    for (const name of names) for (const _ of writer.copy(directory, name));
    writer.finish()
  } catch (error) {
    writer.abandon()
    throw error
  }
  files.rename(`${path}.unfinished`, path)
  files.syncDirectory(`${directory}/..`)
}

function freeName({ options: { files, directory } }: LsmTree): string {
  const base = `${directory}-format-1`
  for (let number = 1; ; number++) {
    const path = number === 1 ? `${base}.backup` : `${base}-${number}.backup`
    if (files.stat(path) !== undefined) continue
    // What a killed attempt left.
    removeQuietly(files, `${path}.unfinished`)
    return path
  }
}

/** Writes the logs of all tenants into new tables, which it adds to `written`; gives the counters after them. */
async function convert(tree: LsmTree, sealer: LogSealer, now: number, written: LiveSSTable[]) {
  const rows = createRowSink(() => tree.view(), copyCounters(tree.counters), now)
  const reader = createReader(() => tree.view(), tree.counters, now)
  const write = (keep: number) => {
    written.push(...finish(writeSSTables(tree.manifest.context, rows.take(keep))))
  }
  for (const tenant of oldTenants(tree.oldLogs!)) {
    for await (const entries of sealer.adopt(reader, tenant)) {
      await sealer.seal(rows.writer, entries)
      if (rows.bytes() > HELD_BYTES) write(UNSETTLED)
    }
    if (rows.bytes() > HELD_BYTES) write(0)
  }
  write(0)
  const { old: _, ...counters } = rows.counters
  return counters
}

/** Takes new rows of logs; all else is the vault's as it is. */
function createRowSink(view: () => View, counters: Counters, now: number) {
  /** The last put is the last. */
  const rows = new Map<string, Row>()
  let bytes = 0
  const writer: EngineWriter = {
    now,
    clock: { isJump: false, purgeUntil: 0 },
    get: (kind, tenant, id) =>
      rows.get(toText(id)) ?? getRow(view(), { kind, tenant, id, expired: false }, now),
    put: ({ seq = counters.seq++, created = now, seal, ...draft }) => {
      const rev = counters.rev++
      const sealed = seal(rev)
      const text = toText(draft.id)
      bytes += sealed.length - (rows.get(text)?.sealed.length ?? 0)
      rows.delete(text)
      rows.set(text, { ...draft, seq, rev, created, sealed })
    },
    find: () => ({ rows: [], total: 0 }),
    seek: () => [],
    findExpired: () => [],
    remove: refuse,
    append: refuse,
    dropTenant: refuse,
    noteTime: refuse,
  }
  return {
    writer,
    counters,
    bytes: () => bytes,
    /** All rows but the `keep` that were put last, by `seq`. */
    take(keep: number): Row[] {
      const taken = [...rows].slice(0, Math.max(0, rows.size - keep))
      for (const [text, { sealed }] of taken) {
        rows.delete(text)
        bytes -= sealed.length
      }
      return taken.map(([, row]) => row).sort((left, right) => left.seq - right.seq)
    },
  }
}

function refuse(): never {
  throw new CofferError('internal', 'An upgrade writes logs only.')
}
