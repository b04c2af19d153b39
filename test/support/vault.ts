/** Vaults for tests: where they are, and keys that open them. */
import type { Clock } from '../../src/crypto/ports.js'

export const locate = (directory: string, clock: Clock = Date.now) => ({
  directory,
  pid: process.pid,
  notice: () => {},
  clock,
})

/** A key file, which opens a vault faster than a passphrase does. */
export function createKey() {
  let text = ''
  const save = async (_: string, key: string) => {
    text = key
  }
  const choose = async () => ({ kind: 'key-file', text }) as const
  return { create: { kind: 'key-file', save } as const, choose }
}
