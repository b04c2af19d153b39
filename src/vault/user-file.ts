/**
 * Files that commands write for the user, outside a vault. Each user file has mode 0600, and gets its name when it is
 * complete.
 */
import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import { makeDirectories } from '../storage/files.js'
import { nodeFiles } from '../storage/node-files.js'
import { refuseIfThere, WholeFile, writeNew, writeOver } from '../storage/whole-file.js'

const createNonce = () => randomBytes(10).toString('hex')

/** Begins a file that is filled in steps. @throws CofferError `conflict` if the file exists, `storage_failed` */
export function beginUserFile(path: string): WholeFile {
  const files = nodeFiles()
  refuseIfThere(files, path)
  return new WholeFile(files, path, createNonce())
}

/** Also creates missing directories. @throws CofferError `conflict` if the file exists, `storage_failed` */
export function writeUserFile(path: string, text: string): void {
  const files = nodeFiles()
  makeDirectories(files, dirname(path))
  writeNew(files, path, Buffer.from(text), createNonce())
}

/** Like {@link writeUserFile}, but replaces an existing file. @throws CofferError `storage_failed` */
export function replaceUserFile(path: string, text: string): void {
  const files = nodeFiles()
  makeDirectories(files, dirname(path))
  writeOver(files, path, Buffer.from(text), createNonce())
}
