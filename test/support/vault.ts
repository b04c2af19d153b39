/** Vaults for tests, with their locations and keys. */
import type { Clock } from '../../src/crypto/ports.js'
import { resultOf } from '../../src/framework/outcome.js'
import type { App } from '../../src/vault/app.js'

export const locate = (directory: string, clock: Clock = Date.now) => ({
  directory,
  pid: process.pid,
  notice: () => {},
  clock,
})

/** Creates a key file, which is text in memory. A key file opens a vault faster than a passphrase does. */
export function createKey() {
  let text = ''
  const save = async (_: string, key: string) => {
    text = key
  }
  const choose = async () => ({ kind: 'key-file', text }) as const
  return { create: { kind: 'key-file', save } as const, choose }
}

/** Performs an operation as the owner, or as the application of `key`. Returns the result of the operation. */
export async function ask(app: App, operation: string, input: Record<string, unknown> = {}, key?: string) {
  const as = key === undefined ? { reveal: true } : { key }
  // biome-ignore lint/suspicious/noExplicitAny: any result of an operation.
  return resultOf(await app.ask({ operation, input, as })) as any
}
