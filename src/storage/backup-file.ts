/**
 * A backup is one file with all rows of a vault: magic (8 bytes) | header length u32 | header | frames. The header is
 * not encrypted, because the key slots in the header are needed to decrypt the frames. The frames have the format of a
 * write-ahead log. Each frame is chained to the previous frame, and the first frame to the header. The first frame
 * contains an `About`. A frame without rows ends the file.
 */
import type { EngineKeys, RandomSource } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import { asBuffer, fromBase64, toBase64, toHex } from './bytes.js'
import type { PendingEntries, Row, VaultRows } from './engine.js'
import type { Files } from './files.js'
import { LENGTH_WORDS, openFrame, SEAL_BYTES, sealFrame, type WalPosition } from './lsm/wal.js'
import { decodeFrame, encodeFrame, FRAME_HEAD, INSERT } from './rows/frame.js'
import type { Times } from './time.js'
import { checkHeader, type Header, headerText } from './vault-file.js'
import { copyAndVerify, inBatches, type Progress, plainRow } from './vault-rows.js'
import { refuseIfThere, WholeFile } from './whole-file.js'

const MAGIC = Buffer.from('COFFERB1')
const FIXED_BYTES = 12
const HEADER_LIMIT = 64 * 1024
const FRAME_LIMIT = 256 * 1024 * 1024
const BATCH = { rows: 1000, bytes: 64 * 1024 }

/** The content of the first frame. Byte strings of `pending` are base64. */
interface About {
  times: Times
  count: number
  pending: (Omit<PendingEntries, 'id' | 'sealed'> & { id: string; sealed: string })[]
}

interface BackupContent {
  header: Header
  rows: VaultRows
  progress: Progress
  /** Called repeatedly during the backup. If this function throws, the backup ends and leaves no file. */
  check(): void
}

/**
 * Returns the length of the backup in bytes. Reads the file again and compares its rows with the given rows, before the
 * file gets its final name. After a failure, no file remains.
 * @throws CofferError `conflict`, `storage_failed`
 */
export async function writeBackup(
  { files, keys, random }: { files: Files; keys: EngineKeys; random: RandomSource },
  path: string,
  { header, rows, progress, check }: BackupContent,
): Promise<number> {
  refuseIfThere(files, path)
  const file = new WholeFile(files, path, toHex(random.bytes(10)))
  const target = {
    put: async (sent: AsyncIterable<Row>) => {
      const text = Buffer.from(headerText(header))
      const start = Buffer.concat([MAGIC, Buffer.alloc(4), text])
      start.writeUInt32LE(text.length, MAGIC.length)
      file.append(start)
      const first = beginFrames(keys, text)
      let position = first
      for await (const content of framesOf(rows, sent)) {
        const next = sealFrame(keys.wal, content, first.tag, position)
        file.append(next.bytes)
        position = next.position
        await new Promise(setImmediate)
        check()
      }
      file.sync()
    },
    read: async function* () {
      for await (const row of readBackup(files, keys, file.path).rows()) {
        check()
        yield row
      }
    },
  }
  try {
    await copyAndVerify(rows, target, keys.chain, progress)
  } catch (error) {
    file.discard()
    throw error
  }
  file.publish()
  return file.size
}

async function* framesOf({ times, count, pending }: VaultRows, rows: AsyncIterable<Row>) {
  const encoded = pending.map(({ id, sealed, ...rest }) => {
    return { ...rest, id: toBase64(id), sealed: toBase64(sealed) }
  })
  yield Buffer.from(JSON.stringify({ times, count, pending: encoded } satisfies About))
  for await (const batch of inBatches(rows, BATCH))
    yield encodeFrame(
      batch.map((row) => ({ kind: INSERT, row })),
      0,
    )
  yield encodeFrame([], 0)
}

export function readBackupHeader(files: Files, path: string): Header {
  const file = openBackup(files, path)
  try {
    return checkHeader(JSON.parse(readText(files, file, path).toString()), path)
  } catch (cause) {
    if (cause instanceof CofferError) throw cause
    const message = `${path} does not begin with a readable header. Use another backup.`
    throw new CofferError('vault_damaged', message, { cause })
  } finally {
    files.close(file)
  }
}

/** Requires: `keys` were opened with the header of the backup. @throws CofferError `vault_damaged` */
export function readBackup(files: Files, keys: EngineKeys, path: string): VaultRows {
  const first = readFrames(files, keys, path).next().value!
  const about = JSON.parse(asBuffer(first).toString()) as About
  const pending = about.pending.map(({ id, sealed, ...rest }) => {
    return { ...rest, id: fromBase64(id), sealed: fromBase64(sealed) }
  })
  async function* rows(): AsyncGenerator<Row> {
    const frames = readFrames(files, keys, path)
    frames.next()
    for (const plain of frames) {
      await new Promise(setImmediate)
      for (const { row } of decodeFrame(plain).changes) yield plainRow(row)
    }
  }
  return { ...about, pending, rows }
}

function* readFrames(files: Files, keys: EngineKeys, path: string): Generator<Uint8Array, undefined> {
  const file = openBackup(files, path)
  try {
    const text = readText(files, file, path)
    const size = files.size(file)
    const first = beginFrames(keys, text)
    for (let position = first, isEnd = false; !isEnd; ) {
      const words = Buffer.alloc(LENGTH_WORDS)
      files.read(file, words, position.end)
      const length = words.readUInt32LE(0)
      const isBounded = length > SEAL_BYTES && length <= FRAME_LIMIT
      if (!isBounded || position.end + LENGTH_WORDS + length > size) throw broken(path)
      const bytes = Buffer.allocUnsafe(LENGTH_WORDS + length)
      files.read(file, bytes, position.end)
      const opened = openFrame(keys.wal, bytes, first.tag, { ...position, end: 0 })
      if (opened === undefined) throw broken(path)
      position = { ...opened.position, end: position.end + bytes.length }
      isEnd = opened.plain.length === FRAME_HEAD
      if (isEnd && size !== position.end) throw broken(path)
      yield opened.plain
    }
  } finally {
    files.close(file)
  }
}

/** Binds every frame to a digest of the header, so that no frame can be decrypted with another header. */
function beginFrames(keys: EngineKeys, text: Uint8Array): WalPosition {
  return { frames: 0, end: FIXED_BYTES + text.length, tag: keys.chain(text, 16) }
}

function openBackup(files: Files, path: string): number {
  const file = files.open(path, 'read')
  if (file === undefined) throw new CofferError('not_found', `There is no file ${path}.`)
  return file
}

function readText(files: Files, file: number, path: string): Buffer {
  const start = Buffer.alloc(FIXED_BYTES)
  if (files.read(file, start, 0) < FIXED_BYTES || !start.subarray(0, MAGIC.length).equals(MAGIC))
    throw new CofferError('vault_damaged', `${path} is not a backup of a vault.`)
  const length = start.readUInt32LE(MAGIC.length)
  if (length > HEADER_LIMIT) throw broken(path)
  const text = Buffer.alloc(length)
  if (files.read(file, text, FIXED_BYTES) < length) throw broken(path)
  return text
}

function broken(path: string): CofferError {
  return new CofferError('vault_damaged', `${path} is damaged or was cut off. Use another backup.`)
}
