import type { Signer } from '../crypto/ports.js'
import { readSettings } from '../operations/tenant/tenant-create.js'
import type { Store } from '../storage/store.js'

/** Signs with the key of the vault. The first use creates the key. */
export function createSigning(store: Store): () => Promise<Signer> {
  let signer: Promise<Signer> | undefined
  const open = async () => {
    const { createSigner, generateSigningKey } = await import('../crypto/signing.js')
    const { webhook_key } = await store.read(readSettings)
    if (webhook_key !== undefined) return createSigner(webhook_key)
    const made = await generateSigningKey()
    const kept = await store.write(async (writer) => {
      const settings = { webhook_key: made, ...(await readSettings(writer)) }
      await writer.replace('settings', 0, settings)
      return settings.webhook_key
    })
    return createSigner(kept)
  }
  const forget = (error: unknown) => {
    signer = undefined
    throw error
  }
  return () => (signer ??= open().catch(forget))
}
