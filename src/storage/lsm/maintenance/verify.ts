/** Reads every byte that a vault relies on, and reports what is damaged and what is readable. Changes nothing. */
import { formatDate } from '../../../domain/dates.js'
import { CofferError } from '../../../errors.js'
import { asBuffer, toText } from '../../bytes.js'
import type { CheckRow, Row, Verification } from '../../engine.js'
import { isAhead } from '../../time.js'
import { Memtable } from '../memtable.js'
import type { LsmOptions } from '../options.js'
import { ASIDE } from '../recovery.js'
import { blockOf, DICT, EXPIRY, IDS, offsetOf, POST, ROWS } from '../sstable/format.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import type { SSTable } from '../sstable/reader.js'
import { addFinding, openDamaged, WAL_PLACE } from './damaged.js'

const STRIDE = 256

/** Yields how many rows were read. Contract: the caller has the vault's lock, and all that was written is synced. */
export async function* verifyVault(
  options: LsmOptions,
  check: CheckRow,
): AsyncGenerator<number, Verification> {
  const result: Verification = { findings: [], readable: { records: 0, logs: 0 }, segments: 0 }
  const { changes, sstables } = await openDamaged(options, result.findings)
  const memtable = new Memtable(changes)
  const now = options.clock()
  const noteIn = (place: string, row: Row) => noteRow(result, check, place, row, now)
  for (const live of sstables) yield* verifySSTable(live, memtable, noteIn, result)
  for (const row of memtable.live()) noteIn(WAL_PLACE, row)
  for (const { sstable } of sstables) sstable.close()
  const aside = options.files.list(options.directory).filter((name) => name.startsWith(ASIDE))
  return aside.length === 0 ? result : { ...result, set_aside: aside }
}

export function noteRow(result: Verification, check: CheckRow, place: string, row: Row, now: number): void {
  const { problem, logs } = check(row)
  if (problem !== undefined) result.findings.push({ place, problem: `Row ${row.seq}: ${problem}` })
  else if (logs === undefined) result.readable.records++
  else result.readable.logs += logs.length
  if (logs === undefined) noteDate(result, 'records', row.created, now)
  for (const time of logs ?? []) noteDate(result, 'logs', time, now)
}

function noteDate(result: Verification, family: 'records' | 'logs', created: number, now: number): void {
  if (!isAhead(created, now)) return
  result.dated_ahead ??= { records: 0, logs: 0, newest: '' }
  const ahead = result.dated_ahead
  const date = formatDate(created)
  ahead[family]++
  if (date > ahead.newest) ahead.newest = date
}

const count = ({ readable }: Verification) => readable.records + readable.logs

/** Checks every block of every section, their agreement with one another, and every live record. */
function* verifySSTable(
  live: LiveSSTable,
  memtable: Memtable,
  note: (place: string, row: Row) => void,
  result: Verification,
) {
  const { sstable } = live
  const place = sstable.path.slice(sstable.path.lastIndexOf('segments/'))
  result.segments++
  yield count(result)
  try {
    verifyIndex(live)
  } catch (error) {
    addFinding(result.findings, place, error)
  }
  for (let number = 0; number < sstable.meta.rows; number++) {
    if (number % STRIDE === 0) yield count(result)
    try {
      const entry = sstable.entry(number)
      const isGone = live.isDead(number) || live.dropped.has(entry.tenant)
      if (!isGone && !memtable.hides(entry.tenant, toText(entry.id))) note(place, sstable.row(number))
    } catch (error) {
      addFinding(result.findings, place, error)
    }
  }
}

function verifyIndex(live: LiveSSTable): void {
  const { sstable } = live
  const { rows } = sstable.footer
  const fail = (what: string) => {
    throw new CofferError('vault_damaged', `Its ${what} does not agree with its rows.`)
  }
  if (sstable.count(ROWS) !== rows || sstable.meta.rows !== rows) fail('count')
  let last = -1
  for (let row = 0; row < rows; row++) {
    const seq = sstable.seqOf(row)
    if (seq <= last) fail('order')
    last = seq
  }
  verifyIds(sstable, fail)
  verifyPostings(sstable, fail)
  for (let index = 0; index < sstable.count(EXPIRY); index++) {
    const { expires, row } = sstable.expiring(index)
    if (row >= rows || sstable.entry(row).expires !== expires) fail('expiry')
  }
}

function verifyIds(sstable: SSTable, fail: (what: string) => void): void {
  if (sstable.count(IDS) !== sstable.footer.rows) fail('list of ids')
  for (let index = 0; index < sstable.count(IDS); index++) {
    const block = sstable.block(IDS, blockOf(IDS, index))
    const at = offsetOf(IDS, index)
    const row = block.readUInt32LE(at + 8)
    if (
      row >= sstable.footer.rows ||
      asBuffer(sstable.entry(row).id).compare(block, at, at + 8, 0, 8) !== 0
    ) {
      fail('list of ids')
    }
  }
}

function verifyPostings(sstable: SSTable, fail: (what: string) => void): void {
  let posted = 0
  let before = ''
  for (let index = 0; index < sstable.count(DICT); index++) {
    const block = sstable.block(DICT, blockOf(DICT, index))
    const at = offsetOf(DICT, index)
    const key = toText(block, at, at + 8)
    const posting = { start: block.readUInt32LE(at + 8), count: block.readUInt32LE(at + 12) }
    if (key <= before && index > 0) fail('dictionary')
    before = key
    if (posting.count > 1) posted += posting.count
    for (let nth = 0, last = -1; nth < posting.count; nth++) {
      const row = sstable.postedRow(posting, nth)
      if (row <= last || row >= sstable.footer.rows) fail('postings')
      last = row
    }
  }
  if (posted !== sstable.count(POST)) fail('postings')
}
