/** Writes the key file of a new vault or key slot. */
import { dirname } from 'node:path'
import { CofferError, codeOf } from '../../errors.js'

/** Does not overwrite a file, which may be the only key of another vault. */
export async function saveKeyFile(path: string, text: string): Promise<void> {
  const { mkdir, writeFile } = await import('node:fs/promises')
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  try {
    await writeFile(path, text, { mode: 0o600, flag: 'wx', flush: true })
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new CofferError(
        'conflict',
        `${path} exists already; it may be the key of another vault. Choose another file.`,
      )
    throw new CofferError(
      'storage_failed',
      `The key file could not be written to ${path}. Check its directory, or choose another file.`,
      { cause: error },
    )
  }
}
