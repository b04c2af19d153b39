/** The mail of a tenant as the vault's owner may read it: what was written, to whom, and what became of it. */
import { formatLink } from '../../domain/invitation.js'
import type { MailRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import { operation } from '../../framework/operation.js'
import { anyJson } from '../../framework/output.js'
import { type List, listOf, pageInput } from '../../framework/page.js'
import { closedInput } from '../../framework/schema.js'
import type { StoreReader } from '../../storage/store.js'
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

const LARGEST_PAGE = 100

export const readOutbox = operation({
  name: 'invite outbox',
  audience: 'owner',
  summary: 'List the mail that was written, or read one.',
  details:
    'Without a mail server, mail stays here. Once a mail is sent, or its link ended, the link is kept nowhere.',
  input: closedInput([], {
    id: { type: 'string', description: 'The mail, or its invitation.' },
    wait: { type: 'boolean', description: 'Wait until mail that is under way was tried.' },
    ...pageInput(LARGEST_PAGE),
  }),
  positionals: ['id'],
  output: anyJson('A page of mails, or the one mail with its text.'),
  columns: ['id', 'to', 'state', 'link_expires_at', 'created_at'],
  examples: ['coffer invite outbox', 'coffer invite outbox 9a1f…'],
  runDetached: async ({ inUnit, post, caller }, { id, wait, page = 1, size = 20 }) => {
    if (wait === true) await post.settle()
    return inUnit(async ({ store }): Promise<OutboxLetter | List<OutboxMail>> => {
      if (id !== undefined) return findLetter(store, caller.tenant, id, post.publicUrl)
      const list = await listLetters(store, caller.tenant, { page, size }, post.publicUrl)
      return { ...list, data: list.data.map(summarizeLetter) }
    })
  },
})

/** Mail of the tenant, newest first. `listening`: where links lead while the settings do not say. */
export async function listLetters(
  reader: StoreReader,
  tenant: number,
  page: { page: number; size: number },
  listening?: string,
): Promise<List<OutboxLetter>> {
  const { publicUrl } = await readMailSettings(reader, listening)
  const { records, total } = await reader.find('mail', tenant, page)
  return listOf(
    records.map((mail) => viewLetter(mail, publicUrl)),
    total,
    page,
  )
}

/**
 * The mail with this id, or the newest one of the invitation with this id.
 * @throws CofferError `not_found`
 */
export async function findLetter(
  reader: StoreReader,
  tenant: number,
  id: string,
  listening?: string,
): Promise<OutboxLetter> {
  const { publicUrl } = await readMailSettings(reader, listening)
  const mail = (await reader.get('mail', tenant, id)) ?? (await findNewest(reader, tenant, id))
  if (mail !== undefined) return viewLetter(mail, publicUrl)
  throw new CofferError('not_found', 'There is no mail with this id, and none of an invitation with it.')
}

/** The mail without its words, for lists. */
function summarizeLetter({ text: _, html: __, ...mail }: OutboxLetter): OutboxMail {
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
