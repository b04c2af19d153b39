/** Lowers the cost of passphrases in this process. Tests that are about something else import this file first. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { scrypt } = crypto
crypto.scrypt = ((passphrase, salt, length, _cost, done) =>
  scrypt(passphrase, salt, length, done as () => void)) as typeof scrypt
syncBuiltinESMExports()
