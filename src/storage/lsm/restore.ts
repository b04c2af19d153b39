/** Restores a vault from a backup: every frame must open and be chained, and the header is written last. */

import type { EngineKeys } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { asBuffer } from '../bytes.js'
import { type Files, removeQuietly } from '../files.js'
import { beginVault, checkHeader, type Header, hasHeader, writeHeader } from '../vault-file.js'
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
import { associateFrame } from './frames.js'

const HEADER_LIMIT = 64 * 1024
const FRAME_LIMIT = PIECE + 4096

const NAMES = /^(state|journal-[a-z2-7]{26}|segments\/[rl]-[a-z2-7]{26})$/

/**
 * The header of the vault that a backup holds, by which its keys are opened.
 * @throws CofferError `not_found` when there is no such file, `vault_damaged`, `vault_unsupported`.
 */
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
  if (files.read(file, start, 0) < FIXED || !start.subarray(0, 8).equals(MAGIC)) {
    throw new CofferError('vault_damaged', `${path} is not a backup of a vault.`)
  }
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
  const target = new Target(files, directory)
  try {
    for (const plain of readFrames(files, file, path, keys)) {
      if (plain[0] === FILE) target.begin(plain.subarray(1).toString(), path)
      else if (plain[0] === DATA) target.add(plain.subarray(1))
      else target.finish(plain.readUInt32LE(1), path)
    }
    await writeHeader(files, directory, random, header)
  } catch (error) {
    // The header first, because a header without the other files must never remain.
    removeQuietly(files, `${directory}/vault.json`)
    if (!hasHeader(files, directory)) target.abandon()
    throw error
  } finally {
    files.close(file)
  }
}

/** The directory that is restored into. */
class Target {
  readonly #files: Files
  readonly #directory: string
  readonly #paths: string[] = []
  #file: number | undefined
  #position = 0

  constructor(files: Files, directory: string) {
    this.#files = files
    this.#directory = directory
  }

  begin(name: string, source: string): void {
    this.#end()
    if (!NAMES.test(name)) throw broken(source)
    const path = `${this.#directory}/${name}`
    // An earlier attempt that was killed may have left it.
    this.#files.remove(path)
    this.#file = this.#files.open(path, 'create')
    this.#paths.push(path)
    this.#position = 0
  }

  add(bytes: Uint8Array): void {
    if (this.#file === undefined)
      throw new CofferError('vault_damaged', 'The backup has data that belongs to no file.')
    this.#files.write(this.#file, bytes, this.#position)
    this.#position += bytes.length
  }

  finish(count: number, source: string): void {
    this.#end()
    if (count !== this.#paths.length) throw broken(source)
    this.#files.syncDirectory(`${this.#directory}/segments`)
    this.#files.syncDirectory(this.#directory)
  }

  abandon(): void {
    if (this.#file !== undefined) this.#files.close(this.#file)
    this.#file = undefined
    for (const path of this.#paths) removeQuietly(this.#files, path)
  }

  #end(): void {
    if (this.#file === undefined) return
    this.#files.sync(this.#file)
    this.#files.close(this.#file)
    this.#file = undefined
  }
}

function broken(path: string): CofferError {
  return new CofferError('vault_damaged', `${path} is damaged or was cut off. Use another backup.`)
}
