/** The door to libsodium: nothing outside `crypto/` imports it, and it is loaded only when a vault is opened. */
import type sodiumModule from 'libsodium-wrappers'

export type Sodium = typeof sodiumModule

/** Resolves when the WASM module is ready to be called synchronously. */
export async function loadSodium(): Promise<Sodium> {
  const { default: sodium } = await import('libsodium-wrappers')
  await sodium.ready
  return sodium
}
