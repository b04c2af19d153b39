/** The outbox: the mail of a tenant and its delivery state, for the vault's owner. */
import { formatLink } from '../../domain/invitation/invitation.js'
import type { MailRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import { operation } from '../../framework/operation.js'
import { anyJson } from '../../framework/output.js'
import { type List, listOf, pageInput } from '../../framework/page.js'
import { closedInput } from '../../framework/schema.js'
import { findNewest } from '../../storage/pages.js'
import { letterOf, readMailSettings } from './mail.js'

/** `link` is present until the mail is sent or the link ends. */
export type OutboxMail = Omit<MailRecord, 'secret' | 'tenant_name'> & { subject: string; link?: string }

export type OutboxLetter = OutboxMail & { text: string; html: string }

const LARGEST_PAGE = 100

export const readOutbox = operation({
  name: 'invite outbox',
  audience: 'owner',
  summary: 'List mail with its delivery state, or print one.',
  details:
    'Without a mail server, mail stays here. When a mail is sent or its link ends, the link is removed from the vault.',
  input: closedInput([], {
    id: { type: 'string', refersTo: 'invite', description: 'The id of the mail, or of its invitation.' },
    wait: { type: 'boolean', description: 'Wait until pending mail was attempted.' },
    ...pageInput(LARGEST_PAGE),
  }),
  positionals: ['id'],
  output: anyJson('A page of mails, or one mail with its text.'),
  columns: ['id', 'to', 'state', 'link_expires_at', 'created_at'],
  examples: ['coffer invite outbox', 'coffer invite outbox grace@example.com'],
  runDetached: async ({ inUnit, mail: queue, caller }, { id, wait, page = 1, size = 20 }) => {
    if (wait === true) await queue.settle()
    return inUnit(async ({ store }): Promise<OutboxLetter | List<OutboxMail>> => {
      const { publicUrl } = await readMailSettings(store, queue.publicUrl)
      const { tenant } = caller
      if (id === undefined) {
        const { records, total } = await store.find('mail', tenant, { page, size })
        const data = records.map((mail) => {
          const { text: _, html: __, ...summary } = viewLetter(mail, publicUrl)
          return summary
        })
        return listOf(data, total, { page, size })
      }
      const ofInvitation = { field: 'invitation', value: id }
      const mail =
        (await store.get('mail', tenant, id)) ?? (await findNewest(store, 'mail', tenant, ofInvitation))
      if (mail !== undefined) return viewLetter(mail, publicUrl)
      throw new CofferError('not_found', 'There is no mail with this id, and none of an invitation with it.')
    })
  },
})

function viewLetter(mail: MailRecord, publicUrl: string): OutboxLetter {
  const { secret, tenant_name: _, id, invitation_id, to, state, ...rest } = mail
  const { subject, text, html } = letterOf(mail, publicUrl)
  const link = secret === undefined ? {} : { link: formatLink(publicUrl, secret) }
  return { id, invitation_id, to, subject, state, ...rest, ...link, text, html }
}
