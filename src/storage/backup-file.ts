/**
 * Backups: all rows of a vault in one file. The header is not encrypted, because its key slots open the rest. Sealed
 * frames follow, each chained to the one before, so that no frame can be left out, swapped or cut off.
 */
import type { EngineKeys, RandomSource } from '../crypto/ports.js'
import { CofferError, conflict } from '../errors.js'
import { asBuffer, fromBase64, toBase64 } from './bytes.js'
import type { PendingEntries, Row, VaultRows } from './engine.js'
import { type Files, removeQuietly } from './files.js'
import { associateFrame, SEAL_BYTES, sealFrame, type WalPosition } from './lsm/frames.js'
import { decodeFrame, encodeFrame, INSERT } from './lsm/sstable/row-change.js'
import type { Times } from './time.js'
import { checkHeader, type Header, headerText } from './vault-file.js'
import { copyAndVerify, type Progress, plainRow } from './vault-rows.js'

/** "COFFERB1" 8 | format u16 | 0 u16 | header length u32 | header | backup id 16 | frames: n u32, ~n u32, sealed n */
const MAGIC = Buffer.from('COFFERB1')
const FORMAT = 1
const FIXED_BYTES = 16
const ID_BYTES = 16
const HEADER_LIMIT = 64 * 1024
const FRAME_LIMIT = 256 * 1024 * 1024
/** The first plain byte of a frame says whether it holds times and counts, rows, or the number of all rows. */
const ABOUT = 1
const ROWS = 2
const END = 3
const LENGTH_BYTES = 4
/** Encoded rows of one frame. */
const BATCH_BYTES = 64 * 1024

interface BackupContext {
  files: Files
  keys: EngineKeys
  random: RandomSource
}

interface About {
  times: Times
  count: number
  pending: Record<keyof PendingEntries, string | number>[]
}

/**
 * Writes a backup, reads it again, and returns its length in bytes.
 * @throws CofferError `conflict` when there is something at `path`, `storage_failed`; then it leaves no file.
 */
export async function writeBackup(
  context: BackupContext,
  path: string,
  { header, rows, progress }: { header: Header; rows: VaultRows; progress: Progress },
): Promise<number> {
  const { files, keys } = context
  if (files.stat(path) !== undefined) throw conflict(`There is a file ${path} already. Choose another name.`)
  const file = files.open(path, 'create')
  if (file === undefined)
    throw new CofferError(
      'storage_failed',
      `Cannot create ${path}: its directory is missing. Create it first.`,
    )
  try {
    const target = {
      put: (sent: AsyncIterable<Row>) => putFrames(context, file, { header, rows, sent }),
      read: () => readBackup(files, keys, path).rows(),
    }
    await copyAndVerify(rows, target, keys.chain, progress)
    const bytes = files.size(file)
    files.close(file)
    return bytes
  } catch (error) {
    files.close(file)
    removeQuietly(files, path)
    throw error
  }
}

async function putFrames(
  { files, keys, random }: BackupContext,
  file: number,
  { header, rows, sent }: { header: Header; rows: VaultRows; sent: AsyncIterable<Row> },
): Promise<void> {
  const id = random.bytes(ID_BYTES)
  const text = Buffer.from(headerText(header))
  const start = Buffer.alloc(FIXED_BYTES)
  start.set(MAGIC)
  start.writeUInt16LE(FORMAT, 8)
  start.writeUInt32LE(text.length, 12)
  const head = Buffer.concat([start, text, id])
  files.write(file, head, 0)
  let position: WalPosition = { frames: 0, end: head.length, tag: chainHeader(keys, text) }
  const append = async (kind: number, parts: readonly Uint8Array[]) => {
    const frame = sealFrame(keys.wal, Buffer.concat([Buffer.of(kind), ...parts]), id, position)
    files.write(file, frame.bytes, position.end)
    position = frame.position
    // Lets other work run.
    await new Promise(setImmediate)
  }
  const { times, count, pending } = rows
  await append(ABOUT, [Buffer.from(JSON.stringify({ times, count, pending: pending.map(encodePending) }))])
  let batch: Uint8Array[] = []
  let bytes = 0
  let total = 0
  for await (const row of sent) {
    const encoded = encodeFrame([{ kind: INSERT, row }], 0)
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32LE(encoded.length)
    batch.push(length, encoded)
    bytes += encoded.length
    total++
    if (bytes < BATCH_BYTES) continue
    await append(ROWS, batch)
    batch = []
    bytes = 0
  }
  if (batch.length > 0) await append(ROWS, batch)
  await append(END, [Buffer.from(JSON.stringify(total))])
  files.sync(file)
}

function encodePending({ id, tenant, owner, written, sealed }: PendingEntries): About['pending'][number] {
  return { id: toBase64(id), tenant, owner: toBase64(owner), written, sealed: toBase64(sealed) }
}

function decodePending({ id, tenant, owner, written, sealed }: About['pending'][number]): PendingEntries {
  const bytes = (text: string | number) => fromBase64(String(text))
  return {
    id: bytes(id),
    tenant: Number(tenant),
    owner: bytes(owner),
    written: Number(written),
    sealed: bytes(sealed),
  }
}

/** @throws CofferError `not_found`, `vault_damaged`, `vault_unsupported` */
export function readBackupHeader(files: Files, path: string): Header {
  const file = openBackup(files, path)
  try {
    return checkHeader(parseHeader(readText(files, file, path), path), path)
  } finally {
    files.close(file)
  }
}

/**
 * Contract: `keys` were opened by the header of the backup.
 * @throws CofferError `vault_damaged` if a frame does not open, is missing or is out of place
 */
export function readBackup(files: Files, keys: EngineKeys, path: string): VaultRows {
  const first = readFrames(files, keys, path).next()
  const about = JSON.parse(asBuffer((first.value as Buffer).subarray(1)).toString()) as About
  const { times, count, pending } = about
  async function* rows(): AsyncGenerator<Row> {
    for (const plain of readFrames(files, keys, path)) {
      await new Promise(setImmediate)
      for (let at = 1; plain[0] === ROWS && at < plain.length; ) {
        const end = at + LENGTH_BYTES + plain.readUInt32LE(at)
        const { changes, rev } = decodeFrame(plain.subarray(at + LENGTH_BYTES, end))
        yield { ...plainRow(changes[0]!.row), rev }
        at = end
      }
    }
  }
  return { times, count, pending: pending.map(decodePending), rows }
}

/** The plain bytes of all frames, in order. */
function* readFrames(files: Files, keys: EngineKeys, path: string): Generator<Buffer, void> {
  const file = openBackup(files, path)
  try {
    const text = readText(files, file, path)
    const id = Buffer.alloc(ID_BYTES)
    files.read(file, id, FIXED_BYTES + text.length)
    let position = FIXED_BYTES + text.length + ID_BYTES
    let previous = chainHeader(keys, text)
    for (let number = 0; ; number++) {
      const words = Buffer.alloc(8)
      if (files.read(file, words, position) < 8) throw broken(path)
      const length = words.readUInt32LE(0)
      const isWhole = ~length >>> 0 === words.readUInt32LE(4) && length <= FRAME_LIMIT && length > SEAL_BYTES
      if (!isWhole || position + 8 + length > files.size(file)) throw broken(path)
      const sealed = Buffer.allocUnsafe(length)
      files.read(file, sealed, position + 8)
      const plain = keys.wal.open(sealed, associateFrame(id, number, previous))
      if (plain === undefined) throw broken(path)
      position += 8 + length
      previous = sealed.subarray(length - 16)
      yield asBuffer(plain)
      if (plain[0] !== END) continue
      if (files.size(file) !== position) throw broken(path)
      return
    }
  } finally {
    files.close(file)
  }
}

/** The first frame is chained to this, so that no other header fits. */
function chainHeader(keys: EngineKeys, text: Uint8Array): Uint8Array {
  return keys.chain(text, 16)
}

function openBackup(files: Files, path: string): number {
  const file = files.open(path, 'read')
  if (file === undefined) throw new CofferError('not_found', `There is no file ${path}.`)
  return file
}

function readText(files: Files, file: number, path: string): Buffer {
  const start = Buffer.alloc(FIXED_BYTES)
  if (files.read(file, start, 0) < FIXED_BYTES || !start.subarray(0, 8).equals(MAGIC))
    throw new CofferError('vault_damaged', `${path} is not a backup of a vault.`)
  const format = start.readUInt16LE(8)
  if (format !== FORMAT) {
    const known = `and this program knows up to ${FORMAT}. Use a newer coffer.`
    throw new CofferError('vault_unsupported', `${path} is a backup of format ${format}, ${known}`)
  }
  const length = start.readUInt32LE(12)
  if (length > HEADER_LIMIT || start.readUInt16LE(10) !== 0) throw broken(path)
  const text = Buffer.alloc(length)
  if (files.read(file, text, FIXED_BYTES) < length) throw broken(path)
  return text
}

function parseHeader(text: Buffer, path: string): unknown {
  try {
    return JSON.parse(text.toString())
  } catch (cause) {
    throw new CofferError('vault_damaged', `${path} begins with no readable header. Use another backup.`, {
      cause,
    })
  }
}

function broken(path: string): CofferError {
  return new CofferError('vault_damaged', `${path} is damaged or was cut off. Use another backup.`)
}
