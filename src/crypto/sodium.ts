/** The door to libsodium: the primitives for whoever stays long enough for WebAssembly to warm up. */
import type { Primitives } from './primitives.js'

/** Resolves when the WASM module is ready to be called synchronously, 20 ms after a cold start. */
export async function loadSodium(): Promise<Primitives> {
  const { default: sodium } = await import('libsodium-wrappers')
  await sodium.ready
  return {
    seal: (plain, associated, nonce, key) =>
      sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, associated, null, nonce, key),
    open(body, associated, nonce, key) {
      try {
        return sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(null, body, associated, nonce, key)
      } catch {
        // The wrapper has one error for every way not to authenticate, and so have we.
        return undefined
      }
    },
    digest: (length, message, key) => sodium.crypto_generichash(length, message, key),
    isEqual: (a, b) => sodium.memcmp(a, b),
    wipe: (bytes) => sodium.memzero(bytes),
  }
}
