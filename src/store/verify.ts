/**
 * Looks at every byte that the vault relies on and tells what is damaged and what is still readable, also of a vault
 * that does not open any more. Changes nothing. What a record's seal must be is the caller's to know.
 */
import { CofferError } from '../errors.js'
import { asBuffer, decodeId, isEqual, toText } from './bytes.js'
import type { Change, StoredRow } from './change.js'
import { type Contents, decodeContents } from './contents.js'
import { openJournal, readHead } from './journal.js'
import type { LedgerOptions } from './ledger.js'
import { prepare } from './opening.js'
import { Overlay } from './overlay.js'
import { Segment, type SegmentPlace } from './segment.js'
import { walkRows } from './segment-cursor.js'
import { DICT, EXPIRY, type Family, IDS, POST, ROWS, TAIL_LENGTH } from './segment-layout.js'
import { LiveSegment } from './segment-search.js'
import { digestHeader } from './shelf.js'
import { chainNext, chainStart } from './stage.js'

/** One thing that is wrong. */
export interface Finding {
  /** The file, or the tenant's log. */
  place: string
  problem: string
}

export interface Verification {
  findings: Finding[]
  /** Rows that were found whole, by family. */
  readable: { records: number; logs: number }
  segments: number
}

/** Says what is wrong with a row's seal, if anything. */
export type CheckRow = (row: StoredRow, family: Family) => string | undefined

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
  const contents = await readContents(options, result)
  const changes = contents === undefined ? [] : readChanges(options, contents, result)
  const segments = contents?.segments ?? findSegments(options, result)
  const overlay = new Overlay()
  for (const change of changes) overlay.apply(change)
  const whole: LiveSegment[] = []
  for (const live of segments) {
    const before = result.findings.length
    yield* verifySegment(live, overlay, check, result)
    if (result.findings.length === before) whole.push(live)
  }
  for (const family of ['records', 'logs'] as const) {
    for (const row of overlay.live(family)) note(result, 'the journal', family, row, check)
  }
  const isComplete = contents !== undefined && whole.length === segments.length
  if (isComplete) yield* verifyChains(options, contents, changes, result)
  for (const { segment } of segments) segment.close()
  return result
}

function report(result: Verification, place: string, error: unknown): void {
  if (!(error instanceof CofferError)) throw error
  // The advice at the end of a message is what led here.
  result.findings.push({ place, problem: error.message.replace(/ Run `coffer vault verify`.*$/, '') })
}

const count = ({ readable }: Verification) => readable.records + readable.logs

async function readContents(options: LedgerOptions, result: Verification): Promise<Contents | undefined> {
  const { reader, state } = prepare(options)
  try {
    await state.read()
  } catch (error) {
    report(result, 'state', error)
    return undefined
  }
  const contents = decodeContents(state.data, reader)
  if (!contents.headers.includes(digestHeader(options.keys, options.header))) {
    result.findings.push({ place: 'vault.json', problem: 'It is not the one this vault had last.' })
  }
  return contents
}

function readChanges(options: LedgerOptions, contents: Contents, result: Verification): Change[] {
  const { journals } = prepare(options)
  const changes: Change[] = []
  let ends: Uint8Array | undefined
  for (const { id, previous } of contents.journals) {
    try {
      const head = readHead(journals)
      const covered = head !== undefined && isEqual(head.journal, id) ? head : undefined
      const { journal, frames, torn } = openJournal(journals, id, previous, covered)
      journal.close()
      if (ends !== undefined && !isEqual(ends, previous)) {
        result.findings.push({
          place: 'the journal',
          problem: 'An older one ends before the next one begins.',
        })
      }
      ends = journal.mark.tag
      if (torn > 0)
        result.findings.push({ place: 'the journal', problem: `It ends with ${torn} unconfirmed bytes.` })
      for (const frame of frames) changes.push(...frame.changes)
    } catch (error) {
      report(result, 'the journal', error)
    }
  }
  return changes
}

/** Without `state`: whatever lies in the directory and shows its own footer. */
function findSegments(options: LedgerOptions, result: Verification): LiveSegment[] {
  const { reader } = prepare(options)
  const found: LiveSegment[] = []
  for (const name of options.files.list(`${options.directory}/segments`)) {
    try {
      const segment = openUnnamed(reader, name)
      if (segment !== undefined)
        found.push(new LiveSegment(segment, new Uint32Array(0), new Uint32Array(0), new Set()))
    } catch (error) {
      report(result, `segments/${name}`, error)
    }
  }
  return found
}

/** A segment of which only the file is known: it is asked for its own tag. */
function openUnnamed(reader: SegmentPlace, name: string): Segment | undefined {
  const id = decodeId(name.slice(2))
  if (id === undefined || id.length !== 16 || !/^[rl]-/.test(name)) return undefined
  const family = name.startsWith('r') ? 'records' : 'logs'
  const path = `${reader.directory}/segments/${name}`
  const bytes = reader.files.facts(path)?.size ?? 0
  const file = reader.files.open(path, 'read')
  if (file === undefined || bytes < TAIL_LENGTH + 16) return undefined
  const tag = new Uint8Array(16)
  reader.files.read(file, tag, bytes - TAIL_LENGTH - 16)
  reader.files.close(file)
  const draft = { id, family, tag, bytes, rows: 0, from: 0, to: 0 } as const
  const probe = new Segment(reader, draft)
  const { rows, seq } = probe.footer
  probe.close()
  return new Segment(reader, { ...draft, rows, from: seq.low, to: seq.high })
}

/** Every block of every section, their agreement with one another, and every live record. */
function* verifySegment(live: LiveSegment, overlay: Overlay, check: CheckRow, result: Verification) {
  const { segment } = live
  const place = segment.path.slice(segment.path.lastIndexOf('segments/'))
  result.segments++
  yield count(result)
  try {
    verifyIndex(live)
  } catch (error) {
    report(result, place, error)
    return
  }
  const hidden = new Set(segment.name.family === 'records' ? live.hiddenBy(overlay) : [])
  for (let number = 0; number < segment.footer.rows; number++) {
    if (number % STRIDE === 0) yield count(result)
    const { tenant } = segment.entry(number)
    if (live.isDead(number) || live.dropped.has(tenant) || hidden.has(number) || overlay.dropped.has(tenant))
      continue
    try {
      note(result, place, segment.name.family, segment.row(number), check)
    } catch (error) {
      report(result, place, error)
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
