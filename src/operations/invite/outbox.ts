/** The mail of a tenant as the vault's owner may read it: what was written, to whom, and what became of it. */
import { formatLink } from '../../domain/invitation.js'
import type { MailRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import { type List, listOf } from '../../framework/page.js'
import type { Store, StoreReader } from '../../storage/store.js'
import { letterOf, readMailSettings } from './mail.js'

/** `link` is there while the vault knows it: until the mail is sent, or the link ends. */
export interface OutboxMail {
  id: string
  invitation_id: string
  to: string
  subject: string
  state: MailRecord['state']
  attempts: number
  server?: string
  failure?: string
  due_at?: string
  sent_at?: string
  link?: string
  link_expires_at: string
  created_at: string
}

/** A mail with its words. */
export type OutboxLetter = OutboxMail & { text: string; html: string }

/** Mail of the tenant, newest first. `listening`: where links lead while the settings do not say. */
export async function listOutbox(
  store: Store,
  tenant: number,
  page: { page: number; size: number },
  listening?: string,
): Promise<List<OutboxLetter>> {
  return store.read(async (reader) => {
    const { publicUrl } = await readMailSettings(reader, listening)
    const { records, total } = await reader.find('mail', tenant, page)
    return listOf(
      records.map((mail) => viewLetter(mail, publicUrl)),
      total,
      page,
    )
  })
}

/**
 * The mail with this id, or the newest one of the invitation with this id.
 * @throws CofferError `not_found`
 */
export async function readOutbox(
  store: Store,
  tenant: number,
  id: string,
  listening?: string,
): Promise<OutboxLetter> {
  return store.read(async (reader) => {
    const { publicUrl } = await readMailSettings(reader, listening)
    const mail = (await reader.get('mail', tenant, id)) ?? (await findNewest(reader, tenant, id))
    if (mail !== undefined) return viewLetter(mail, publicUrl)
    throw new CofferError('not_found', 'There is no mail with this id, and none of an invitation with it.')
  })
}

/** The mail without its words, for lists. */
export function summarizeLetter({ text: _, html: __, ...mail }: OutboxLetter): OutboxMail {
  return mail
}

async function findNewest(reader: StoreReader, tenant: number, invitationId: string) {
  const where = { field: 'invitation', value: invitationId }
  const { records } = await reader.find('mail', tenant, { where, page: 1, size: 1 })
  return records[0]
}

function viewLetter(mail: MailRecord, publicUrl: string): OutboxLetter {
  const { secret, tenant_name: _, id, invitation_id, to, state, ...rest } = mail
  const { subject, text, html } = letterOf(mail, publicUrl)
  const link = secret === undefined ? {} : { link: formatLink(publicUrl, secret) }
  return { id, invitation_id, to, subject, state, ...rest, ...link, text, html }
}
