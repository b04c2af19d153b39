/** The text of a key file: one line that names its vault and holds 32 random bytes. */
import { CofferError } from '../errors.js'
import { KEY_BYTES } from './seal.js'

const MARK = 'coffer-key-1'

/** `vault` is the id of the vault that the key was made for. */
export interface FileKey {
  vault: string
  key: Uint8Array
}

export function formatKeyFile({ vault, key }: FileKey): string {
  return `${MARK} ${vault} ${Buffer.from(key).toString('base64')}\n`
}

/** @throws CofferError `vault_locked` when the text is not that of a key file. */
export function parseKeyFile(text: string): FileKey {
  const [mark, vault, encoded, ...rest] = text.trim().split(' ')
  const key = Buffer.from(encoded ?? '', 'base64')
  const isWhole = mark === MARK && vault !== undefined && rest.length === 0 && key.length === KEY_BYTES
  if (!isWhole || key.toString('base64') !== encoded)
    throw new CofferError(
      'vault_locked',
      `This is not a key file: it should be one line that starts with ${MARK}.`,
    )
  return { vault, key: new Uint8Array(key) }
}
