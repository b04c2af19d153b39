/** Files that commands write for the user, outside a vault: each gets its name when it is whole, with mode 0600. */
import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import { makeDirectories } from '../storage/files.js'
import { nodeFiles } from '../storage/node-files.js'
import { refuseIfThere, WholeFile, writeNew, writeOver } from '../storage/whole-file.js'

const createNonce = () => randomBytes(10).toString('hex')

/** A new file that is filled in steps. @throws CofferError `conflict` if there is a file, `storage_failed` */
export function beginUserFile(path: string): WholeFile {
  const files = nodeFiles()
  refuseIfThere(files, path)
  return new WholeFile(files, path, createNonce())
}

/** Writes a new file, and makes missing directories. @throws CofferError `conflict` if there is a file, `storage_failed` */
export function writeUserFile(path: string, text: string): void {
  const files = nodeFiles()
  makeDirectories(files, dirname(path))
  writeNew(files, path, Buffer.from(text), createNonce())
}

/** Like {@link writeUserFile}, but in the place of a file. @throws CofferError `storage_failed` */
export function replaceUserFile(path: string, text: string): void {
  const files = nodeFiles()
  makeDirectories(files, dirname(path))
  writeOver(files, path, Buffer.from(text), createNonce())
}
