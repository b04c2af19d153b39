/** The `state` document names the files of the vault, each of which must exist; opening removes others. */
import { LowSync } from 'lowdb'
import { CofferError, damaged } from '../../errors.js'
import { packRows, toBase64, toHex, unpackRows } from '../bytes.js'
import { readWhole, replaceWhole } from '../files.js'
import type { Counters } from '../time.js'
import { headerText, parseDocument, STATE_FILE } from '../vault-file.js'
import type { LsmContext, LsmOptions } from './context.js'
import { LiveSSTable } from './sstable/live-sstable.js'
import { SSTable, type SSTableMeta } from './sstable/reader.js'
import type { WalRef } from './wal.js'

/** The next state, while a rekey replaces the present one. */
export const NEXT_STATE_FILE = 'state.next'
const STATE_LIMIT = 16 * 1024 * 1024

export interface Contents {
  /** Digests of the valid `vault.json`; two while it is replaced. */
  headers: readonly string[]
  counters: Counters
  /** Oldest first. */
  wals: readonly WalRef[]
  /** Ascending by lowest `seq`. */
  sstables: readonly LiveSSTable[]
}

/** As stored: `dead` and `due` are encoded by `packRows`. */
interface State extends Pick<Contents, 'headers' | 'counters'> {
  journals: readonly WalRef[]
  segments: readonly (SSTableMeta & { dead: string; due: string; dropped: number[] })[]
}

const vaultOf = ({ header }: LsmOptions) => Buffer.from(header.vault, 'hex')

function openDocument(context: LsmOptions, name: string, state: State | null): LowSync<State | null> {
  const { files, directory, keys, random } = context
  const path = `${directory}/${name}`
  const adapter = {
    read() {
      const sealed = readWhole(files, path, STATE_LIMIT)
      if (sealed === undefined) throw damaged(`${path} is missing`)
      const plain = keys.state.open(sealed, vaultOf(context))
      if (plain === undefined) throw damaged(`${path} does not open`)
      return parseDocument(plain, path) as State
    },
    write(next: State | null) {
      const sealed = keys.state.seal(Buffer.from(JSON.stringify(next)), vaultOf(context))
      if (sealed.length > STATE_LIMIT)
        throw new CofferError(
          'storage_failed',
          `${path} would outgrow its limit. Run \`coffer vault compact\`.`,
        )
      replaceWhole(files, directory, name, sealed, toHex(random.bytes(10)))
    },
  }
  return new LowSync<State | null>(adapter, state)
}

/** Writes `state`, or the next one. @throws CofferError `storage_failed` */
export function writeContents(context: LsmOptions, contents: Contents, name = STATE_FILE): void {
  const { headers, counters, wals, sstables } = contents
  const journals = wals.map(({ id, previous }) => ({ id, previous }))
  const segments = sstables.map(({ sstable: { meta }, dead, due, dropped }) => {
    return { ...meta, dead: packRows(dead), due: packRows(due), dropped: [...dropped] }
  })
  openDocument(context, name, { headers, counters, journals, segments }).write()
}

/** @throws CofferError `vault_damaged` if the state is missing, too large or does not open */
export function readContents(context: LsmContext): Contents {
  const document = openDocument(context, STATE_FILE, null)
  document.read()
  const { headers, counters, journals, segments } = document.data!
  const sstables = segments.map(({ dead, due, dropped, ...meta }) => {
    return new LiveSSTable(new SSTable(context, meta), unpackRows(dead), unpackRows(due), new Set(dropped))
  })
  return { headers, counters, wals: journals, sstables }
}

/** A crash may have ended a rekey after its new header was in place. False if no next state opens. */
export function adoptNextState(context: LsmOptions): boolean {
  const { files, directory, keys } = context
  const sealed = readWhole(files, `${directory}/${NEXT_STATE_FILE}`, STATE_LIMIT)
  if (sealed === undefined || keys.state.open(sealed, vaultOf(context)) === undefined) return false
  files.rename(`${directory}/${NEXT_STATE_FILE}`, `${directory}/${STATE_FILE}`)
  files.syncDirectory(directory)
  return true
}

export function sortSSTables(sstables: readonly LiveSSTable[]): LiveSSTable[] {
  return [...sstables].sort((left, right) => left.sstable.meta.from - right.sstable.meta.from)
}

/** Keyed digest of the header, 32 bytes as base64. */
export function digestHeader({ keys, header }: Pick<LsmOptions, 'keys' | 'header'>): string {
  return toBase64(keys.chain(Buffer.from(headerText(header)), 32))
}
