/** Log entries that were committed and are in no chain yet, sealed together. */
import type { RecordKeys } from '../../crypto/ports.js'
import type { LogBlockRecord } from '../../domain/records/log-record.js'
import type { LogEntry } from '../engine.js'
import { linesOf, pack, type SealedEntry } from './log-block.js'

/** The entries of one tenant, bound to the `id` of their batch. */
export function sealEntries(keys: RecordKeys, id: Uint8Array, entries: readonly LogEntry[]): Uint8Array {
  const block = pack('', 0, entries as readonly SealedEntry[])
  return keys.data.seal(Buffer.from(JSON.stringify(block)), associate(keys, id))
}

/** Undefined if they do not open. */
export function openEntries(
  keys: RecordKeys,
  tenant: number,
  id: Uint8Array,
  sealed: Uint8Array,
): SealedEntry[] | undefined {
  const plain = keys.data.open(sealed, associate(keys, id))
  if (plain === undefined) return undefined
  const block = JSON.parse(Buffer.from(plain).toString('utf8')) as LogBlockRecord
  return linesOf(block).map((line) => ({ ...line, tenant }))
}

/** Of another length than what a record's seal names, so neither opens as the other. */
function associate(keys: RecordKeys, id: Uint8Array): Uint8Array {
  return keys.index.digest(`["waiting","${Buffer.from(id).toString('hex')}"]`)
}
