import * as fs from 'node:fs'
import { userInfo } from 'node:os'
import { CofferError, codeOf } from '../errors.js'
import { type FileStat, type Files, type Opening, storageError } from './files.js'

function attempt<T>(action: string, path: string, work: () => T): T {
  return attemptUnless('', undefined as never, action, path, work)
}

function attemptUnless<T, U>(code: string, otherwise: U, action: string, path: string, work: () => T): T | U {
  try {
    return work()
  } catch (error) {
    if (code !== '' && codeOf(error) === code) return otherwise
    throw storageError(action, path, error)
  }
}

function isDoneUnless(code: string, action: string, path: string, work: () => unknown): boolean {
  return attemptUnless(code, false, action, path, () => {
    work()
    return true
  })
}

const FLAGS: Record<Opening, number> = { read: fs.constants.O_RDONLY, write: fs.constants.O_RDWR }
/** O_NONBLOCK: if the path names a pipe, opening the pipe does not wait for a writer. */
const PLAIN = fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK
const NEW = fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL

export function nodeFiles(): Files {
  const user = userInfo().uid
  const paths = new Map<number, string>()
  const pathOf = (file: number) => paths.get(file) ?? `descriptor ${file}`

  return {
    user: user < 0 ? undefined : user,
    open: (path, opening) => {
      const file = attemptUnless('ENOENT', undefined, 'open', path, () =>
        fs.openSync(path, FLAGS[opening] | PLAIN),
      )
      if (file === undefined) return undefined
      if (!fs.fstatSync(file).isFile()) {
        fs.closeSync(file)
        const problem = 'it is not a file, but a pipe, a device or a directory. Choose another path.'
        throw new CofferError('storage_failed', `Cannot open ${path}: ${problem}`)
      }
      paths.set(file, path)
      return file
    },
    create: (path) => {
      const file = attempt('create', path, () => fs.openSync(path, NEW | PLAIN, 0o600))
      try {
        // The mode is set explicitly, because the umask of the process may have removed bits of 0600.
        attempt('set the mode of', path, () => fs.fchmodSync(file, 0o600))
      } catch (error) {
        // A file system without modes rejects the change of the mode. Then the new, empty file is removed.
        fs.closeSync(file)
        fs.rmSync(path, { force: true })
        throw error
      }
      paths.set(file, path)
      return file
    },
    close: (file) => {
      const path = pathOf(file)
      paths.delete(file)
      attempt('close', path, () => fs.closeSync(file))
    },
    read: (file, target, position) =>
      attempt('read', pathOf(file), () => {
        let done = 0
        while (done < target.length) {
          const count = fs.readSync(file, target, done, target.length - done, position + done)
          if (count === 0) break
          done += count
        }
        return done
      }),
    write: (file, bytes, position) =>
      attempt('write', pathOf(file), () => {
        for (let done = 0; done < bytes.length; )
          done += fs.writeSync(file, bytes, done, bytes.length - done, position + done)
      }),
    size: (file) => attempt('examine', pathOf(file), () => fs.fstatSync(file).size),
    truncate: (file, length) => attempt('cut', pathOf(file), () => fs.ftruncateSync(file, length)),
    syncData: (file) => attempt('sync', pathOf(file), () => fs.fdatasyncSync(file)),
    syncDataBeside,
    sync: (file) => attempt('sync', pathOf(file), () => fs.fsyncSync(file)),
    syncDirectory: (path) =>
      attempt('sync', path, () => {
        const file = fs.openSync(path, fs.constants.O_RDONLY)
        try {
          fs.fsyncSync(file)
        } finally {
          fs.closeSync(file)
        }
      }),
    rename: (from, to) => attempt('replace', to, () => fs.renameSync(from, to)),
    link: (from, to) => isDoneUnless('EEXIST', 'create', to, () => fs.linkSync(from, to)),
    remove: (path) => isDoneUnless('ENOENT', 'remove', path, () => fs.unlinkSync(path)),
    stat: (path) => {
      const stats = attemptUnless('ENOENT', undefined, 'examine', path, () => fs.lstatSync(path))
      if (stats === undefined) return undefined
      return { kind: kindOf(stats), mode: stats.mode & 0o7777, owner: stats.uid, size: stats.size }
    },
    list: (path) => attempt('list', path, () => fs.readdirSync(path)),
    makeDirectory: (path) =>
      isDoneUnless('EEXIST', 'create', path, () => fs.mkdirSync(path, { mode: 0o700 })),
  }
}

function kindOf(stats: fs.Stats): FileStat['kind'] {
  if (stats.isFile()) return 'file'
  if (stats.isSymbolicLink()) return 'link'
  return stats.isDirectory() ? 'directory' : 'other'
}

async function syncDataBeside(path: string): Promise<void> {
  // The module is loaded only when it is needed, because loading takes more than 1 ms.
  const { open } = await import('node:fs/promises')
  try {
    // The file is opened a second time. The system reports a write error to each descriptor, so after a failed sync
    // here, a later `syncData` on the first descriptor fails too.
    const file = await open(path, FLAGS.write | PLAIN)
    await file.datasync().finally(() => file.close())
  } catch (error) {
    throw storageError('sync', path, error)
  }
}
