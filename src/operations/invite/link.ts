/** Invitation links. Only the hash of a link's secret is stored and compared. */
import type { RandomSource } from '../../crypto/ports.js'
import { LINK_SECRET_BYTES } from '../../domain/invitation/invitation.js'
import type { LinkRecord } from '../../domain/records/records.js'
import { readAll } from '../../storage/pages.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'

export interface SecretHashing {
  hashSecret(text: string, reader: StoreReader): Promise<string>
  isEqualSecret(a: string, b: string): boolean
}

/** 256 random bits in base64url (RFC 4648, 5), without a leading hyphen, which a command would read as an option. */
export function drawSecret(random: RandomSource): string {
  const secret = Buffer.from(random.bytes(LINK_SECRET_BYTES)).toString('base64url')
  return secret.startsWith('-') ? drawSecret(random) : secret
}

/** The link with this secret, even if it has ended. */
export async function findLink(context: SecretHashing, reader: StoreReader, secret: string) {
  const hash = await context.hashSecret(secret, reader)
  const link = await reader.get('link', 0, hash)
  return link !== undefined && context.isEqualSecret(link.id, hash) ? link : undefined
}

export async function endLink(store: StoreWriter, id: string, ended: NonNullable<LinkRecord['ended']>) {
  const link = await store.get('link', 0, id)
  if (link !== undefined) await store.replace('link', 0, { ...link, ended })
}

/** Gives the links in a copied tenant's mail new secrets, so that they lead to the copy and not to the original. */
export async function renewLinks(
  context: Pick<SecretHashing, 'hashSecret'> & { random: RandomSource },
  store: StoreWriter,
  tenant: number,
): Promise<void> {
  for (const mail of await readAll(store, 'mail', tenant)) {
    if (mail.secret === undefined) continue
    const invitation = await store.get('invitation', tenant, mail.invitation_id)
    const link = await store.get('link', 0, await context.hashSecret(mail.secret, store))
    if (invitation === undefined || link === undefined) continue
    const secret = drawSecret(context.random)
    const id = await context.hashSecret(secret, store)
    await store.remove('link', 0, link.id)
    await store.insert('link', 0, { ...link, id }, { fresh: true })
    await store.replace('invitation', tenant, { ...invitation, link: id })
    await store.replace('mail', tenant, { ...mail, secret })
  }
}
