/** Imported before all else, lowers the cost of passphrases in this process: for tests that are not about it. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { scrypt } = crypto
crypto.scrypt = ((passphrase, salt, length, _cost, done) =>
  scrypt(passphrase, salt, length, done as () => void)) as typeof scrypt
syncBuiltinESMExports()
