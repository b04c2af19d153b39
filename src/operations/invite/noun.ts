/** Invitations to join the tenant, and the outbox of their mail. Each invitation has one valid link. */
import { DEFAULT_ROLE, GIVEN_ROLES } from '../../domain/access/permissions.js'
import { formatDate } from '../../domain/dates.js'
import {
  extendExpiry,
  formatLink,
  type InvitationView,
  STATUSES,
  viewInvitation,
} from '../../domain/invitation/invitation.js'
import { checkEmail } from '../../domain/invitation/mail-server.js'
import { about } from '../../domain/property-errors.js'
import type { MailRecord } from '../../domain/records/records.js'
import { CofferError, conflict } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { owner, requires } from '../../framework/declaration.js'
import { change, detached, list } from '../../framework/operation.js'
import { anyJson, component, date, enumOf, optionalAudit, text, uuid } from '../../framework/output.js'
import { type List, listOf, pageInput } from '../../framework/page.js'
import { closedInput, type Infer, idOf, inputSchema } from '../../framework/schema.js'
import { manage } from '../manage.js'
import { givenRole, isMember } from '../member/noun.js'
import { acceptInvitationLink } from './accept-invitation.js'
import { endLink, letterOf, mailLink, readMailSettings, readMails } from './mail.js'

const columns = ['id', 'email', 'role', 'status', 'expires_at', 'created_at']
const invitationOutput = component('Invitation', columns, {
  id: uuid,
  tenant_id: uuid,
  email: text,
  role: enumOf(...GIVEN_ROLES),
  status: enumOf(...STATUSES),
  expires_at: date,
  ...optionalAudit,
})
const invitations = manage({
  name: 'invite',
  kind: 'invitation',
  path: '/tenants/self/invitations',
  permission: 'tenant:invitation',
  id: idOf('invite', 'The id of the invitation, or its e-mail address.'),
  output: invitationOutput,
  view: ({ now }, record) => viewInvitation(record, now),
})

const invitationInput = inputSchema(['email'], {
  email: { type: 'string', description: 'The e-mail address of the person.' },
  role: { ...givenRole, default: DEFAULT_ROLE, cli: { isAsked: true } },
})

export const createInvitation = change({
  ...invitations.createDeclaration,
  summary: 'Invite a person to your tenant by e-mail.',
  details:
    'The mail contains a link that works once and expires after 72 hours. If no mail server is set, the mail stays in the\noutbox. Set one: coffer config set mail.url. Read the outbox: coffer invite outbox.\n' +
    'An address may have several invitations. To send one again, use coffer invite resend.',
  input: invitationInput,
  cli: { positionals: ['email'] },
  examples: ['coffer invite create alan@example.com --role READ_ONLY'],
  check: ({ email }) => {
    if (email !== undefined) about('email', () => checkEmail(email))
  },
  run: addInvitation,
})

export async function addInvitation(
  context: Context,
  { email, role = DEFAULT_ROLE }: Infer<typeof invitationInput>,
): Promise<InvitationView> {
  await refuseMember(context, email)
  const expires_at = formatDate(extendExpiry(context.now))
  const id = context.createUuid()
  const link = await mailLink(context, { id, email, expires_at })
  return viewInvitation(
    await invitations.add(context, { email, role, expires_at, link }, { id }),
    context.now,
  )
}

const listInvitations = list({
  ...invitations.listDeclaration,
  summary: 'List invitations that were not accepted yet, newest first.',
  input: inputSchema([], {
    status: {
      type: 'string',
      enum: STATUSES,
      description: `Only invitations with this status: ${STATUSES.join(' or ')}.`,
    },
    ...pageInput(100),
  }),
  examples: ['coffer invite list', 'coffer invite list --status PENDING'],
  run: (session, { status, ...asked }) =>
    invitations.list(session, {
      ...asked,
      matches: status && ((record, { now }) => viewInvitation(record, now).status === status),
    }),
})

const resendInvitation = change({
  name: 'invite resend',
  summary: 'Send an invitation again with a new link; earlier links become invalid.',
  details:
    'Extends the expiry by 72 hours, counted from the previous expiry or from now, whichever is later.',
  access: requires('tenant:invitation:create', 'tenant:invitation:update'),
  route: 'POST /tenants/self/invitations/{id}/resend',
  input: invitations.byId,
  output: invitationOutput,
  examples: ['coffer invite resend grace@example.com'],
  log: { operation: 'update', message: 'Invitation resent' },
  async run(context, { id }) {
    const before = await invitations.require(context, id)
    await refuseMember(context, before.email)
    await endLink(context.store, context.caller.tenant, before, 'replaced')
    const expires_at = formatDate(extendExpiry(context.now, before.expires_at))
    const link = await mailLink(context, { ...before, expires_at })
    const changed = await invitations.change(context, before, { expires_at, link })
    context.audit.emit({ type: 'tenant.invitation.resent', about: changed })
    return viewInvitation(changed, context.now)
  },
})

const deleteInvitation = invitations.delete({
  summary: 'Delete an invitation; its links become invalid.',
  examples: ['coffer invite delete grace@example.com --yes'],
  confirmation: 'This withdraws the invitation',
  log: { operation: 'delete', message: 'Invitation deleted', derivesNoEvent: true },
  async before({ store, caller: { tenant }, audit }, invitation) {
    audit.emit({ type: 'tenant.invitation.deleted', about: invitation })
    await endLink(store, tenant, invitation, 'withdrawn')
    for (const { id } of await readMails(store, tenant, invitation.id)) await store.remove('mail', tenant, id)
  },
})

async function refuseMember(context: Context, email: string): Promise<void> {
  if (await isMember(context.store, context.caller.tenant, email))
    throw conflict('A person with this e-mail address is already a member.')
}

/** `link`: present until the mail is sent or the link ends. */
export type OutboxMail = Omit<MailRecord, 'secret' | 'tenant_name'> & { subject: string; link?: string }

export type OutboxLetter = OutboxMail & { text: string; html: string }

export const readOutbox = detached({
  name: 'invite outbox',
  access: owner,
  summary: 'List mail with its delivery state, or print one mail.',
  details:
    'Without a mail server, mail stays in the outbox. The link is removed from a mail when the mail is sent, or when the link\n' +
    'is used, replaced or withdrawn.',
  input: closedInput([], {
    id: { type: 'string', refersTo: 'invite', description: 'The id of the mail, or of its invitation.' },
    wait: { type: 'boolean', description: 'Wait until the delivery of waiting mail was attempted.' },
    ...pageInput(100),
  }),
  output: anyJson('A page of mails, or one mail with its text.'),
  cli: { positionals: ['id'], columns: ['id', 'to', 'state', 'link_expires_at', 'created_at'] },
  examples: ['coffer invite outbox', 'coffer invite outbox grace@example.com'],
  run: async ({ inUnit, deliveries: queue, caller }, { id, wait, page = 1, size = 20 }) => {
    if (wait === true) await queue.settle()
    return inUnit(async ({ store }): Promise<OutboxLetter | List<OutboxMail>> => {
      const { publicUrl } = await readMailSettings(store, queue.publicUrl)
      const { tenant } = caller
      if (id !== undefined) {
        const mail = (await store.get('mail', tenant, id)) ?? (await readMails(store, tenant, id))[0]
        if (mail !== undefined) return viewLetter(mail, publicUrl)
        const message = 'There is no mail with this id, and no mail for an invitation with this id.'
        throw new CofferError('not_found', message)
      }
      const { records, total } = await store.find('mail', tenant, { page, size })
      const data = records.map((mail) => {
        const { text: _, html: __, ...summary } = viewLetter(mail, publicUrl)
        return summary
      })
      return listOf(data, total, { page, size })
    })
  },
})

function viewLetter(mail: MailRecord, publicUrl: string): OutboxLetter {
  const { secret, tenant_name: _, id, to, state, ...rest } = mail
  const { subject, text, html } = letterOf(mail, publicUrl)
  const link = secret === undefined ? {} : { link: formatLink(publicUrl, secret) }
  return { id, to, subject, state, ...rest, ...link, text, html }
}

export const noun = {
  name: 'invite',
  summary: 'Invite people to your tenant',
  operations: [
    createInvitation,
    listInvitations,
    invitations.get('coffer invite get grace@example.com'),
    resendInvitation,
    deleteInvitation,
    readOutbox,
    acceptInvitationLink,
  ],
}
