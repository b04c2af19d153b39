/** Invitation links. Only the hash of a link's secret is stored and compared. */
import type { RandomSource } from '../../crypto/ports.js'
import { LINK_SECRET_BYTES } from '../../domain/invitation.js'
import type { LinkRecord } from '../../domain/records.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'

export interface SecretHashing {
  hashSecret(text: string, reader: StoreReader): Promise<string>
  isEqualSecret(a: string, b: string): boolean
}

/** A new secret: 256 random bits, base64url (RFC 4648, 5). */
export function drawSecret(random: RandomSource): string {
  return Buffer.from(random.bytes(LINK_SECRET_BYTES)).toString('base64url')
}

/** The link with this secret, also if it has ended. */
export async function findLink(
  context: SecretHashing,
  reader: StoreReader,
  secret: string,
): Promise<LinkRecord | undefined> {
  const hash = await context.hashSecret(secret, reader)
  const link = await reader.get('link', 0, hash)
  return link !== undefined && context.isEqualSecret(link.id, hash) ? link : undefined
}

export async function endLink(
  store: StoreWriter,
  id: string,
  ended: NonNullable<LinkRecord['ended']>,
): Promise<void> {
  const link = await store.get('link', 0, id)
  if (link !== undefined) await store.replace('link', 0, { ...link, ended })
}
