/** Restores a vault from a backup: every frame must open and be chained, and the header is written last. */
import type { EngineKeys } from '../../../crypto/ports.js'
import { CofferError } from '../../../errors.js'
import { asBuffer } from '../../bytes.js'
import { type Files, removeQuietly } from '../../files.js'
import { beginVault, checkHeader, type Header, hasHeader, writeHeader } from '../../vault-file.js'
import { associateFrame } from '../frames.js'
import {
  type BackupContext,
  chainHeader,
  DATA,
  END,
  FILE,
  FIXED,
  FORMAT,
  ID,
  MAGIC,
  PIECE,
} from './backup.js'

const HEADER_LIMIT = 64 * 1024
const FRAME_LIMIT = PIECE + 4096

const NAMES = /^(state|(journal|head)-[a-z2-7]{26}|segments\/[a-z2-7]{26})$/

/** The header in a backup, for its keys. @throws CofferError `not_found`, `vault_damaged`, `vault_unsupported` */
export function readBackupHeader(files: Files, path: string): Header {
  const file = openBackup(files, path)
  try {
    return checkHeader(parseHeader(readText(files, file, path), path), path)
  } finally {
    files.close(file)
  }
}

function openBackup(files: Files, path: string): number {
  const file = files.open(path, 'read')
  if (file === undefined) throw new CofferError('not_found', `There is no file ${path}.`)
  return file
}

function readText(files: Files, file: number, path: string): Buffer {
  const start = Buffer.alloc(FIXED)
  if (files.read(file, start, 0) < FIXED || !start.subarray(0, 8).equals(MAGIC))
    throw new CofferError('vault_damaged', `${path} is not a backup of a vault.`)
  const format = start.readUInt16LE(8)
  if (format !== FORMAT) {
    const known = `and this program knows up to ${FORMAT}. Use a newer coffer.`
    throw new CofferError('vault_unsupported', `${path} is a backup of format ${format}, ${known}`)
  }
  const length = start.readUInt32LE(12)
  if (length > HEADER_LIMIT || start.readUInt16LE(10) !== 0) throw broken(path)
  const text = Buffer.alloc(length)
  if (files.read(file, text, FIXED) < length) throw broken(path)
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

/** The plain frames of a backup, in order, the END frame last. */
function* readFrames(files: Files, file: number, path: string, keys: EngineKeys): Generator<Buffer, void> {
  const text = readText(files, file, path)
  const id = Buffer.alloc(ID)
  files.read(file, id, FIXED + text.length)
  let position = FIXED + text.length + ID
  let previous = chainHeader(keys, text)
  for (let number = 0; ; number++) {
    const words = Buffer.alloc(8)
    if (files.read(file, words, position) < 8) throw broken(path)
    const length = words.readUInt32LE(0)
    if (~length >>> 0 !== words.readUInt32LE(4) || length > FRAME_LIMIT || length <= 40) throw broken(path)
    const sealed = Buffer.allocUnsafe(length)
    if (files.read(file, sealed, position + 8) < length) throw broken(path)
    const plain = keys.wal.open(sealed, associateFrame(id, number, previous))
    if (plain === undefined) throw broken(path)
    yield asBuffer(plain)
    position += 8 + length
    previous = sealed.subarray(length - 16)
    if (plain[0] !== END) continue
    if (files.size(file) !== position) throw broken(path)
    return
  }
}

/**
 * Puts the vault of a backup into a directory without one. On failure what was written is removed again; the header is
 * written last, and until then there is no vault. Contract: `keys` were opened by the backup's header.
 * @throws CofferError `conflict`, `vault_damaged`, `vault_exposed`, `storage_failed`.
 */
export async function restoreBackup(context: BackupContext, path: string, directory: string): Promise<void> {
  const { files, keys, random } = context
  const header = readBackupHeader(files, path)
  beginVault(files, directory)
  const file = openBackup(files, path)
  const paths: string[] = []
  try {
    writeFiles(files, readFrames(files, file, path, keys), directory, path, paths)
    await writeHeader(files, directory, random, header)
  } catch (error) {
    // The header first, because a header without the other files must never remain.
    removeQuietly(files, `${directory}/vault.json`)
    if (!hasHeader(files, directory)) for (const written of paths) removeQuietly(files, written)
    throw error
  } finally {
    files.close(file)
  }
}

/** Writes the files that the frames hold, durably, and adds their paths to `paths`. */
function writeFiles(
  files: Files,
  frames: Iterable<Buffer>,
  directory: string,
  source: string,
  paths: string[],
): void {
  let file: number | undefined
  let position = 0
  try {
    for (const plain of frames) {
      const body = plain.subarray(1)
      if (plain[0] === DATA) {
        if (file === undefined)
          throw new CofferError('vault_damaged', 'The backup has data that belongs to no file.')
        files.write(file, body, position)
        position += body.length
        continue
      }
      if (file !== undefined) {
        files.sync(file)
        files.close(file)
        file = undefined
      }
      if (plain[0] !== FILE) {
        if (body.readUInt32LE(0) !== paths.length) throw broken(source)
        continue
      }
      if (!NAMES.test(body.toString())) throw broken(source)
      const path = `${directory}/${body}`
      // An earlier attempt that was killed may have left it.
      files.remove(path)
      file = files.open(path, 'create')
      paths.push(path)
      position = 0
    }
  } finally {
    if (file !== undefined) files.close(file)
  }
  files.syncDirectory(`${directory}/segments`)
  files.syncDirectory(directory)
}

function broken(path: string): CofferError {
  return new CofferError('vault_damaged', `${path} is damaged or was cut off. Use another backup.`)
}
