/**
 * Looks at every byte that the vault relies on and tells what is damaged and what is still readable, also of a vault
 * that does not open any more. Changes nothing. What a record's seal must be is the caller's to know.
 */
import { formatDate } from '../../domain/dates.js'
import { CofferError } from '../../errors.js'
import { asBuffer, isEqual, toText } from '../bytes.js'
import type { CheckRow, Verification } from '../engine.js'
import type { Contents } from './contents.js'
import { Overlay } from './memtable.js'
import { ASIDE } from './recovery.js'
import type { Change, StoredRow } from './row-change.js'
import { DICT, EXPIRY, type Family, IDS, POST, ROWS } from './sstable/format.js'
import type { Segment } from './sstable/reader.js'
import { walkRows } from './sstable/scan.js'
import type { LiveSegment } from './sstable/search.js'
import { report, survey } from './survey.js'
import { isAhead } from './time.js'
import { chainNext, chainStart } from './transaction.js'
import type { LedgerOptions } from './tree.js'

const STRIDE = 256

/**
 * Verifies the whole vault in steps; `yield` gives the number of rows looked at so far. Contract: the caller owns the
 * vault and nothing is waiting to be synced.
 */
export async function* verifyVault(
  options: LedgerOptions,
  check: CheckRow,
): AsyncGenerator<number, Verification> {
  const result: Verification = { findings: [], readable: { records: 0, logs: 0 }, segments: 0 }
  const { contents, changes, segments } = await survey(options, result.findings)
  const surveyed = result.findings.length
  const overlay = new Overlay()
  for (const change of changes) overlay.apply(change)
  const now = options.clock()
  const checkDated: CheckRow = (row, family) => {
    noteDate(result, family, row.created, now)
    return check(row, family)
  }
  for (const live of segments) yield* verifySegment(live, overlay, checkDated, result)
  for (const family of ['records', 'logs'] as const) {
    for (const row of overlay.live(family)) note(result, 'the journal', family, row, checkDated)
  }
  const areWhole = result.findings.length === surveyed
  if (contents !== undefined && areWhole) yield* verifyChains(options, contents, changes, result)
  for (const { segment } of segments) segment.close()
  const aside = options.files.list(options.directory).filter((name) => name.startsWith(ASIDE))
  return aside.length === 0 ? result : { ...result, set_aside: aside }
}

function noteDate(result: Verification, family: Family, created: number, now: number): void {
  if (!isAhead(created, now)) return
  result.dated_ahead ??= { records: 0, logs: 0, newest: '' }
  const ahead = result.dated_ahead
  const date = formatDate(created)
  ahead[family]++
  if (date > ahead.newest) ahead.newest = date
}

const count = ({ readable }: Verification) => readable.records + readable.logs

/** Every block of every section, their agreement with one another, and every live record. */
function* verifySegment(live: LiveSegment, overlay: Overlay, check: CheckRow, result: Verification) {
  const { segment } = live
  const place = segment.path.slice(segment.path.lastIndexOf('segments/'))
  result.segments++
  yield count(result)
  try {
    verifyIndex(live)
  } catch (error) {
    report(result.findings, place, error)
  }
  for (let number = 0; number < segment.name.rows; number++) {
    if (number % STRIDE === 0) yield count(result)
    try {
      const { tenant, id } = segment.entry(number)
      if (live.isDead(number) || live.dropped.has(tenant) || overlay.dropped.has(tenant)) continue
      if (segment.name.family === 'records' && overlay.entry(toText(id)) !== undefined) continue
      note(result, place, segment.name.family, segment.row(number), check)
    } catch (error) {
      report(result.findings, place, error)
    }
  }
}

function note(result: Verification, place: string, family: Family, row: StoredRow, check: CheckRow): void {
  const problem = check(row, family)
  if (problem === undefined) result.readable[family]++
  else result.findings.push({ place, problem: `Row ${row.seq}: ${problem}` })
}

function verifyIndex(live: LiveSegment): void {
  const { segment } = live
  const { rows } = segment.footer
  const fail = (what: string) => {
    throw new CofferError('vault_damaged', `Its ${what} does not agree with its rows.`)
  }
  if (segment.count(ROWS) !== rows || segment.name.rows !== rows) fail('count')
  let last = -1
  for (let row = 0; row < rows; row++) {
    const seq = segment.seqOf(row)
    if (seq <= last) fail('order')
    last = seq
  }
  if (segment.name.family === 'records') verifyIds(segment, fail)
  verifyPostings(segment, fail)
  for (let index = 0; index < segment.count(EXPIRY); index++) {
    const { expires, row } = segment.expiring(index)
    if (row >= rows || segment.entry(row).expires !== expires) fail('expiry')
  }
}

function verifyIds(segment: Segment, fail: (what: string) => void): void {
  if (segment.count(IDS) !== segment.footer.rows) fail('list of ids')
  for (let index = 0; index < segment.count(IDS); index++) {
    const block = segment.block(IDS, Math.floor(index / 682))
    const at = (index % 682) * 12
    const row = block.readUInt32LE(at + 8)
    if (
      row >= segment.footer.rows ||
      asBuffer(segment.entry(row).id).compare(block, at, at + 8, 0, 8) !== 0
    ) {
      fail('list of ids')
    }
  }
}

function verifyPostings(segment: Segment, fail: (what: string) => void): void {
  let posted = 0
  let before = ''
  for (let index = 0; index < segment.count(DICT); index++) {
    const block = segment.block(DICT, Math.floor(index / 512))
    const at = (index % 512) * 16
    const key = toText(block, at, at + 8)
    const posting = { start: block.readUInt32LE(at + 8), count: block.readUInt32LE(at + 12) }
    if (key <= before && index > 0) fail('dictionary')
    before = key
    if (posting.count > 1) posted += posting.count
    for (let place = 0, last = -1; place < posting.count; place++) {
      const row = segment.postedRow(posting, place)
      if (row <= last || row >= segment.footer.rows) fail('postings')
      last = row
    }
  }
  if (posted !== segment.count(POST)) fail('postings')
}

/** Each tenant's log rows, oldest first, lead from the start of their chain to the value that `state` holds. */
function* verifyChains(
  options: LedgerOptions,
  contents: Contents,
  changes: readonly Change[],
  result: Verification,
) {
  const chains = new Map<number, { value: Uint8Array; count: number; isBroken: boolean }>()
  const follow = ({ tenant, chain, sealed }: StoredRow) => {
    const last = chains.get(tenant) ?? { value: chainStart(), count: 0, isBroken: false }
    const value = chainNext(options.keys.chain, last.value, sealed)
    const isBroken = last.isBroken || chain === undefined || !isEqual(value, chain)
    chains.set(tenant, { value: chain ?? value, count: last.count + 1, isBroken })
  }
  const logs = contents.segments.filter(({ segment }) => segment.name.family === 'logs')
  const maps = logs.map(({ segment }) => new Uint32Array(segment.name.rows))
  let seen = 0
  for (const cursor of walkRows(logs, maps)) {
    follow(cursor.segment.row(cursor.index))
    if (++seen % STRIDE === 0) yield count(result)
  }
  compareChains(chains, contents, result)
  const overlay = new Overlay()
  for (const change of changes) overlay.apply(change)
  for (const tenant of overlay.dropped) chains.delete(tenant)
  for (const row of overlay.live('logs')) follow(row)
  for (const [tenant, { isBroken }] of chains) {
    if (isBroken) result.findings.push({ place: `log of tenant ${tenant}`, problem: 'Its chain is broken.' })
  }
}

function compareChains(
  chains: ReadonlyMap<number, { value: Uint8Array; count: number }>,
  contents: Contents,
  result: Verification,
): void {
  const tenants = new Set([...chains.keys(), ...contents.counters.chains.keys()])
  for (const tenant of tenants) {
    const found = chains.get(tenant)
    const known = contents.counters.chains.get(tenant)
    if (
      found !== undefined &&
      known !== undefined &&
      found.count === known.count &&
      isEqual(found.value, known.value)
    )
      continue
    const problem = `It has ${found?.count ?? 0} records and should have ${known?.count ?? 0}, or another last one.`
    result.findings.push({ place: `log of tenant ${tenant}`, problem })
  }
}
