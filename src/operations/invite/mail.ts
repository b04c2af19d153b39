/** The mail of invitations: written with the invitation, sent by `src/mail` after the commit, then updated. */
import { formatDate } from '../../domain/dates.js'
import { formatLink } from '../../domain/invitation/invitation.js'
import { composeLetter, type Letter } from '../../domain/invitation/letter.js'
import { defaultSender, readSender } from '../../domain/invitation/mail-server.js'
import type { InvitationRecord, MailRecord } from '../../domain/records/records.js'
import { DEFAULT_PUBLIC_URL, settingOf } from '../../domain/settings.js'
import { readAll } from '../../storage/pages.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'
import { readSettings } from '../config/settings-record.js'

export type MailSettings = Awaited<ReturnType<typeof readMailSettings>>

/** Without `url` mail stays in the outbox. `listening`: the default of `publicUrl`. @throws CofferError `vault_damaged` */
export async function readMailSettings(reader: StoreReader, listening: string = DEFAULT_PUBLIC_URL) {
  const { values } = await readSettings(reader)
  const publicUrl = settingOf(values, 'public_url') ?? listening
  const from = settingOf(values, 'mail.from')
  return {
    url: settingOf(values, 'mail.url'),
    ca: settingOf(values, 'mail.ca'),
    from: from === undefined ? defaultSender(publicUrl) : readSender(from),
    publicUrl,
  }
}

/** Writes the mail of `invitation`, to be sent after the commit; without a mail server, to the outbox. */
export async function writeMail(
  store: StoreWriter,
  tenant: number,
  invitation: InvitationRecord,
  mail: Pick<MailRecord, 'id' | 'tenant_name' | 'secret'>,
): Promise<void> {
  const { url } = await readMailSettings(store)
  const record: MailRecord = {
    ...mail,
    invitation_id: invitation.id,
    to: invitation.email,
    link_expires_at: invitation.expires_at,
    attempts: 0,
    created_at: formatDate(store.now),
    ...(url === undefined ? { state: 'outbox' } : { state: 'waiting', due_at: formatDate(store.now) }),
  }
  await store.insert('mail', tenant, record, { fresh: true })
}

/** Removes the secret of an ended link from the mail of the invitation; waiting mail is not sent. */
export async function dropSecrets(store: StoreWriter, tenant: number, invitationId: string): Promise<void> {
  for (const mail of await readAll(store, 'mail', tenant, { field: 'invitation', value: invitationId }))
    if (mail.secret !== undefined) await store.replace('mail', tenant, withoutSecret(mail))
}

export async function removeMail(store: StoreWriter, tenant: number, invitationId: string): Promise<void> {
  for (const { id } of await readAll(store, 'mail', tenant, { field: 'invitation', value: invitationId }))
    await store.remove('mail', tenant, id)
}

/** A waiting mail is not sent without its link. */
export function withoutSecret({ secret: _, due_at: __, ...mail }: MailRecord): MailRecord {
  return { ...mail, state: mail.state === 'waiting' ? 'dropped' : mail.state }
}

export function letterOf(mail: MailRecord, publicUrl: string): Letter {
  const { tenant_name: tenantName, to: email, link_expires_at: linkExpiresAt, secret } = mail
  const link = secret === undefined ? {} : { link: formatLink(publicUrl, secret) }
  return composeLetter({ tenantName, email, linkExpiresAt, ...link })
}
