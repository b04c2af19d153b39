/**
 * Makes scrypt cheap in this process, so that passphrases cost little time. Tests that do not test scrypt import this
 * file first.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { scrypt } = crypto
crypto.scrypt = ((passphrase, salt, length, _cost, done) =>
  scrypt(passphrase, salt, length, done as () => void)) as typeof scrypt
syncBuiltinESMExports()
