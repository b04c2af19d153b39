/** Import this file first to lower the cost of passphrases in this process, in tests of other things. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { scrypt } = crypto
crypto.scrypt = ((passphrase, salt, length, _cost, done) =>
  scrypt(passphrase, salt, length, done as () => void)) as typeof scrypt
syncBuiltinESMExports()
