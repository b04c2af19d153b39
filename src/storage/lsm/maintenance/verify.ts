/**
 * Verification: reads every byte that the vault relies on, and reports what is damaged and what is readable, also of a
 * vault that does not open any more. Changes nothing.
 */
import { formatDate } from '../../../domain/dates.js'
import { CofferError } from '../../../errors.js'
import { asBuffer, isEqual, toText } from '../../bytes.js'
import type { CheckRow, Verification } from '../../engine.js'
import { isAhead } from '../../time.js'
import type { Contents } from '../contents.js'
import { chainNext, EMPTY_CHAIN, type LogChain } from '../log-chain.js'
import { Memtable } from '../memtable.js'
import type { LsmOptions } from '../options.js'
import { ASIDE } from '../recovery.js'
import { blockOf, DICT, EXPIRY, type Family, IDS, offsetOf, POST, ROWS } from '../sstable/format.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import type { SSTable } from '../sstable/reader.js'
import type { StoredRow } from '../sstable/row-change.js'
import { readLiveRows } from '../sstable/scan.js'
import { addFinding, survey, WAL_PLACE } from './survey.js'

const STRIDE = 256

/**
 * Yields the number of rows read so far. Contract: the caller has the vault's lock, and everything written is synced.
 */
export async function* verifyVault(
  options: LsmOptions,
  check: CheckRow,
): AsyncGenerator<number, Verification> {
  const result: Verification = { findings: [], readable: { records: 0, logs: 0 }, segments: 0 }
  const { contents, changes, sstables } = await survey(options, result.findings)
  const surveyed = result.findings.length
  const memtable = new Memtable(changes)
  const now = options.clock()
  const checkDated: CheckRow = (row, family) => {
    noteDate(result, family, row.created, now)
    return check(row, family)
  }
  for (const live of sstables) yield* verifySSTable(live, memtable, checkDated, result)
  for (const family of ['records', 'logs'] as const) {
    for (const row of memtable.live(family)) note(result, WAL_PLACE, family, row, checkDated)
  }
  const areWhole = result.findings.length === surveyed
  if (contents !== undefined && areWhole) yield* verifyChains(options, contents, memtable, result)
  for (const { sstable } of sstables) sstable.close()
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
function* verifySSTable(live: LiveSSTable, memtable: Memtable, check: CheckRow, result: Verification) {
  const { sstable } = live
  const place = sstable.path.slice(sstable.path.lastIndexOf('segments/'))
  const { family } = sstable.meta
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
      if (live.isDead(number) || live.dropped.has(entry.tenant) || memtable.isShadowed(family, entry))
        continue
      note(result, place, family, sstable.row(number), check)
    } catch (error) {
      addFinding(result.findings, place, error)
    }
  }
}

function note(result: Verification, place: string, family: Family, row: StoredRow, check: CheckRow): void {
  const problem = check(row, family)
  if (problem === undefined) result.readable[family]++
  else result.findings.push({ place, problem: `Row ${row.seq}: ${problem}` })
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
  if (sstable.meta.family === 'records') verifyIds(sstable, fail)
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

/** Checks that each tenant's log rows, oldest first, lead from the start of their chain to the end that `state` holds. */
function* verifyChains(options: LsmOptions, contents: Contents, memtable: Memtable, result: Verification) {
  const chains = new Map<number, LogChain & { isBroken: boolean }>()
  const follow = ({ tenant, chain, sealed }: StoredRow) => {
    const last = chains.get(tenant) ?? { ...EMPTY_CHAIN, isBroken: false }
    const value = chainNext(options.keys.chain, last.value, sealed)
    const isBroken = last.isBroken || chain === undefined || !isEqual(value, chain)
    chains.set(tenant, { value: chain ?? value, count: last.count + 1, isBroken })
  }
  let seen = 0
  for (const row of readLiveRows(contents.sstables.filter(({ sstable }) => sstable.meta.family === 'logs'))) {
    follow(row)
    if (++seen % STRIDE === 0) yield count(result)
  }
  compareChains(chains, contents.counters.chains, result)
  for (const tenant of memtable.dropped) chains.delete(tenant)
  for (const row of memtable.live('logs')) follow(row)
  for (const [tenant, { isBroken }] of chains) {
    if (isBroken) result.findings.push({ place: `log of tenant ${tenant}`, problem: 'Its chain is broken.' })
  }
}

function compareChains(
  found: ReadonlyMap<number, LogChain>,
  expected: ReadonlyMap<number, LogChain>,
  { findings }: Verification,
): void {
  for (const tenant of new Set([...found.keys(), ...expected.keys()])) {
    const has = found.get(tenant)
    const should = expected.get(tenant)
    const isEnd = has !== undefined && should !== undefined && isEqual(has.value, should.value)
    if (isEnd && has.count === should.count) continue
    const problem = `It has ${has?.count ?? 0} records and should have ${should?.count ?? 0}, or another last one.`
    findings.push({ place: `log of tenant ${tenant}`, problem })
  }
}
