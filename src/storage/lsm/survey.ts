/**
 * Finds all that a vault consists of, also one that does not open any more, and says what is wrong with it. Looks at
 * `state`, journals and the ends of segments, not at their rows. Changes nothing.
 */
import { AFTER_DAMAGE, CofferError } from '../../errors.js'
import { decodeId, isEqual } from '../bytes.js'
import { type Contents, decodeContents, type WalRef } from './contents.js'
import { digestHeader } from './manifest.js'
import { NO_TAG, prepare } from './recovery.js'
import type { Change, Frame } from './row-change.js'
import { TAIL_LENGTH } from './sstable/format.js'
import { SSTable, type SSTableContext } from './sstable/reader.js'
import { LiveSSTable } from './sstable/search.js'
import type { LsmOptions } from './tree.js'
import { openWal, readDamagedWal, readHead, type WalContext } from './wal.js'

/** One thing that is wrong. */
export interface Finding {
  /** The file, or the tenant's log. */
  place: string
  problem: string
}

/** What a vault is found to consist of. */
export interface Survey {
  /** Undefined when `state` does not open; then it is not known what of all this was replaced or removed. */
  contents: Contents | undefined
  changes: Change[]
  sstables: readonly LiveSSTable[]
}

/** Finds all there is, damaged or not, and notes in `findings` what is wrong with it. The caller closes the segments. */
export async function survey(options: LsmOptions, findings: Finding[]): Promise<Survey> {
  const contents = await readContents(options, findings)
  const changes = readChanges(options, contents, findings)
  return { contents, changes, sstables: contents?.sstables ?? findSSTables(options, findings) }
}

/** Notes what is wrong at `place`. @throws what is no CofferError */
export function addFinding(findings: Finding[], place: string, error: unknown): void {
  if (!(error instanceof CofferError)) throw error
  // The advice at the end of a message is what led here.
  const problem = error.message.replace(AFTER_DAMAGE, '').trim()
  const last = findings.at(-1)
  if (last?.place !== place || last.problem !== problem) findings.push({ place, problem })
}

async function readContents(options: LsmOptions, findings: Finding[]): Promise<Contents | undefined> {
  const { reader, state } = prepare(options)
  try {
    await state.read()
  } catch (error) {
    addFinding(findings, 'state', error)
    return undefined
  }
  const contents = decodeContents(state.data, reader)
  if (!contents.headers.includes(digestHeader(options.keys, options.header))) {
    findings.push({ place: 'vault.json', problem: 'It is not the one this vault had last.' })
  }
  return contents
}

function readChanges(options: LsmOptions, contents: Contents | undefined, findings: Finding[]): Change[] {
  const { wals } = prepare(options)
  const changes: Change[] = []
  let ends: Uint8Array | undefined
  for (const { id, previous } of contents?.wals ?? findWals(options)) {
    try {
      const head = readHead(wals)
      const acknowledged = head !== undefined && isEqual(head.wal, id) ? head : undefined
      const { wal, frames, torn } = openWal(wals, id, previous, acknowledged)
      wal.close()
      if (ends !== undefined && !isEqual(ends, previous)) {
        findings.push({
          place: 'the journal',
          problem: 'An older one ends before the next one begins.',
        })
      }
      ends = wal.position.tag
      if (torn > 0)
        findings.push({ place: 'the journal', problem: `It ends with ${torn} unconfirmed bytes.` })
      for (const frame of frames) changes.push(...frame.changes)
    } catch (error) {
      addFinding(findings, 'the journal', error)
      for (const frame of readDamaged(wals, { id, previous }, findings)) changes.push(...frame.changes)
    }
  }
  return changes
}

function readDamaged(context: WalContext, { id, previous }: WalRef, findings: Finding[]): Frame[] {
  try {
    const { frames, gaps } = readDamagedWal(context, id, previous)
    for (const { at, bytes, before } of gaps) {
      const problem = `${bytes} bytes from byte ${at} on do not open; ${before} frames before them and ${frames.length - before} after them do.`
      findings.push({ place: 'the journal', problem })
    }
    return frames
  } catch (error) {
    addFinding(findings, 'the journal', error)
    return []
  }
}

/** Without `state`: every journal there is. What its first frame is chained to is known only of a vault's first one. */
function findWals({ files, directory }: LsmOptions): WalRef[] {
  const ids = files
    .list(directory)
    .map((name) => (name.startsWith('journal-') ? decodeId(name.slice(8)) : undefined))
  return ids.filter((id) => id?.length === 16).map((id) => ({ id: id!, previous: NO_TAG }))
}

/** Without `state`: whatever lies in the directory and shows its own footer. */
function findSSTables(options: LsmOptions, findings: Finding[]): LiveSSTable[] {
  const { reader } = prepare(options)
  const found: LiveSSTable[] = []
  for (const name of options.files.list(`${options.directory}/segments`)) {
    try {
      const sstable = openUnnamed(reader, name)
      if (sstable !== undefined)
        found.push(new LiveSSTable(sstable, new Uint32Array(0), new Uint32Array(0), new Set()))
    } catch (error) {
      addFinding(findings, `segments/${name}`, error)
    }
  }
  return found
}

/** A segment of which only the file is known: it is asked for its own tag. */
function openUnnamed(reader: SSTableContext, name: string): SSTable | undefined {
  const id = decodeId(name.slice(2))
  if (id === undefined || id.length !== 16 || !/^[rl]-/.test(name)) return undefined
  const family = name.startsWith('r') ? 'records' : 'logs'
  const path = `${reader.directory}/segments/${name}`
  const bytes = reader.files.stat(path)?.size ?? 0
  const file = reader.files.open(path, 'read')
  if (file === undefined || bytes < TAIL_LENGTH + 16) return undefined
  const tag = new Uint8Array(16)
  reader.files.read(file, tag, bytes - TAIL_LENGTH - 16)
  reader.files.close(file)
  const draft = { id, family, tag, bytes, rows: 0, from: 0, to: 0 } as const
  const probe = new SSTable(reader, draft)
  const { rows, seq } = probe.footer
  probe.close()
  return new SSTable(reader, { ...draft, rows, from: seq.low, to: seq.high })
}
