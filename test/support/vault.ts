/** Vaults for tests: where they are, and keys that open them. */
import type { Clock } from '../../src/crypto/ports.js'
import { resultOf } from '../../src/framework/outcome.js'
import type { App } from '../../src/vault/app.js'

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

/** The result that the owner, or the application of `key`, is answered. */
export async function ask(app: App, operation: string, input: Record<string, unknown> = {}, key?: string) {
  const as = key === undefined ? { reveal: true } : { key }
  // biome-ignore lint/suspicious/noExplicitAny: whatever the operation answers.
  return resultOf(await app.ask({ operation, input, as })) as any
}
