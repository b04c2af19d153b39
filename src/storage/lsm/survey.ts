/**
 * Finds all that a vault consists of, also one that does not open any more, and says what is wrong with it. Looks at
 * `state`, journals and the ends of segments, not at their rows. Changes nothing.
 */
import { AFTER_DAMAGE, CofferError } from '../../errors.js'
import { decodeId, isEqual } from '../bytes.js'
import type { Finding } from '../engine.js'
import { type Contents, decodeContents, type JournalName } from './contents.js'
import { digestHeader } from './manifest.js'
import { NO_TAG, prepare } from './recovery.js'
import type { Change, Frame } from './row-change.js'
import { TAIL_LENGTH } from './sstable/format.js'
import { Segment, type SegmentPlace } from './sstable/reader.js'
import { LiveSegment } from './sstable/search.js'
import type { LedgerOptions } from './tree.js'
import { type JournalPlace, openJournal, readDamagedJournal, readHead } from './wal.js'

/** What a vault is found to consist of. */
export interface Survey {
  /** Undefined when `state` does not open; then it is not known what of all this was replaced or removed. */
  contents: Contents | undefined
  changes: Change[]
  segments: readonly LiveSegment[]
}

/** Finds all there is, damaged or not, and notes in `findings` what is wrong with it. The caller closes the segments. */
export async function survey(options: LedgerOptions, findings: Finding[]): Promise<Survey> {
  const contents = await readContents(options, findings)
  const changes = readChanges(options, contents, findings)
  return { contents, changes, segments: contents?.segments ?? findSegments(options, findings) }
}

/** Notes what is wrong at `place`. @throws what is no CofferError */
export function report(findings: Finding[], place: string, error: unknown): void {
  if (!(error instanceof CofferError)) throw error
  // The advice at the end of a message is what led here.
  const problem = error.message.replace(AFTER_DAMAGE, '').trim()
  const last = findings.at(-1)
  if (last?.place !== place || last.problem !== problem) findings.push({ place, problem })
}

async function readContents(options: LedgerOptions, findings: Finding[]): Promise<Contents | undefined> {
  const { reader, state } = prepare(options)
  try {
    await state.read()
  } catch (error) {
    report(findings, 'state', error)
    return undefined
  }
  const contents = decodeContents(state.data, reader)
  if (!contents.headers.includes(digestHeader(options.keys, options.header))) {
    findings.push({ place: 'vault.json', problem: 'It is not the one this vault had last.' })
  }
  return contents
}

function readChanges(options: LedgerOptions, contents: Contents | undefined, findings: Finding[]): Change[] {
  const { journals } = prepare(options)
  const changes: Change[] = []
  let ends: Uint8Array | undefined
  for (const { id, previous } of contents?.journals ?? findJournals(options)) {
    try {
      const head = readHead(journals)
      const covered = head !== undefined && isEqual(head.journal, id) ? head : undefined
      const { journal, frames, torn } = openJournal(journals, id, previous, covered)
      journal.close()
      if (ends !== undefined && !isEqual(ends, previous)) {
        findings.push({
          place: 'the journal',
          problem: 'An older one ends before the next one begins.',
        })
      }
      ends = journal.mark.tag
      if (torn > 0)
        findings.push({ place: 'the journal', problem: `It ends with ${torn} unconfirmed bytes.` })
      for (const frame of frames) changes.push(...frame.changes)
    } catch (error) {
      report(findings, 'the journal', error)
      for (const frame of readDamaged(journals, { id, previous }, findings)) changes.push(...frame.changes)
    }
  }
  return changes
}

function readDamaged(place: JournalPlace, { id, previous }: JournalName, findings: Finding[]): Frame[] {
  try {
    const { frames, gaps } = readDamagedJournal(place, id, previous)
    for (const { at, bytes, before } of gaps) {
      const problem = `${bytes} bytes from byte ${at} on do not open; ${before} frames before them and ${frames.length - before} after them do.`
      findings.push({ place: 'the journal', problem })
    }
    return frames
  } catch (error) {
    report(findings, 'the journal', error)
    return []
  }
}

/** Without `state`: every journal there is. What its first frame is chained to is known only of a vault's first one. */
function findJournals({ files, directory }: LedgerOptions): JournalName[] {
  const ids = files
    .list(directory)
    .map((name) => (name.startsWith('journal-') ? decodeId(name.slice(8)) : undefined))
  return ids.filter((id) => id?.length === 16).map((id) => ({ id: id!, previous: NO_TAG }))
}

/** Without `state`: whatever lies in the directory and shows its own footer. */
function findSegments(options: LedgerOptions, findings: Finding[]): LiveSegment[] {
  const { reader } = prepare(options)
  const found: LiveSegment[] = []
  for (const name of options.files.list(`${options.directory}/segments`)) {
    try {
      const segment = openUnnamed(reader, name)
      if (segment !== undefined)
        found.push(new LiveSegment(segment, new Uint32Array(0), new Uint32Array(0), new Set()))
    } catch (error) {
      report(findings, `segments/${name}`, error)
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
