/** Invitations to join the tenant. Each has one valid link. */

import { DEFAULT_ROLE, GIVEN_ROLES } from '../../domain/access/roles.js'
import { formatDate } from '../../domain/dates.js'
import { checkEmail } from '../../domain/invitation/email.js'
import { extendExpiry, firstExpiry, STATUSES, viewInvitation } from '../../domain/invitation/invitation.js'
import { about } from '../../domain/property-errors.js'
import type { InvitationRecord, TenantRecord } from '../../domain/records/records.js'
import { conflict } from '../../errors.js'
import { readList } from '../../framework/list.js'
import { type Context, operation } from '../../framework/operation.js'
import { component, date, enumOf, optionalAudit, text, uuid } from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import { type Infer, idOf, inputSchema } from '../../framework/schema.js'
import { created, manage, modified } from '../manage.js'
import { isMember } from '../member/user.js'
import { drawSecret, endLink } from './link.js'
import { dropSecrets, removeMail, writeMail } from './mail.js'

const invitationOutput = component(
  'Invitation',
  ['id', 'email', 'role', 'status', 'expires_at', 'created_at'],
  {
    id: uuid,
    tenant_id: uuid,
    email: text,
    role: enumOf(...GIVEN_ROLES),
    status: enumOf(...STATUSES),
    expires_at: date,
    ...optionalAudit,
  },
)

const id = idOf('invite', 'The id of the invitation, or its e-mail address.')
const invitations = manage({
  name: 'invite',
  called: 'an invitation',
  title: 'Invitation',
  kind: 'invitation',
  path: '/tenants/self/invitations',
  permission: 'tenant:invitation',
  id,
  output: invitationOutput,
  view: ({ now }, record) => viewInvitation(record, now),
})

const invitationInput = inputSchema(['email'], {
  email: { type: 'string', description: 'Their e-mail address.' },
  role: {
    type: 'string',
    enum: GIVEN_ROLES,
    default: DEFAULT_ROLE,
    description: `Their role as a member: one of ${GIVEN_ROLES.join(', ')}.`,
  },
})

export const createInvitation = operation({
  ...invitations.creating,
  summary: 'Invite a person to your tenant by e-mail.',
  details:
    'The mail contains a link that works once and expires after 72 hours. Without a mail server (coffer config set\nmail.url) the mail stays in the outbox: coffer invite outbox.',
  input: invitationInput,
  examples: ['coffer invite create --email alan@example.com --role READ_ONLY'],
  check: ({ email }) => {
    if (email !== undefined) about('email', () => checkEmail(email))
  },
  async runDetached(session, input) {
    const view = await session.conclude((context) => addInvitation(context, input))
    session.mail.enqueue(session.caller.tenant)
    return view
  },
})

/** Creates an invitation and its mail, which the caller enqueues when the unit is committed. */
export async function addInvitation(
  context: Context,
  { email, role = DEFAULT_ROLE }: Infer<typeof invitationInput>,
): Promise<Infer<typeof invitationOutput>> {
  await refuseMember(context, email)
  const tenant = await context.tenant()
  const record = await linkInvitation(context, tenant, {
    id: context.createUuid(),
    tenant_id: tenant.id,
    email,
    role,
    expires_at: formatDate(firstExpiry(context.now)),
    ...created(context),
  })
  return viewInvitation(await invitations.add(context, record), context.now)
}

export const listInvitations = operation({
  ...invitations.listing,
  summary: 'List invitations that were not accepted yet, newest first.',
  input: inputSchema([], {
    status: { type: 'string', enum: STATUSES, description: `Only those that are ${STATUSES.join(' or ')}.` },
    ...pageInput(100),
  }),
  examples: ['coffer invite list', 'coffer invite list --status PENDING'],
  async runDetached(session, { status, ...asked }) {
    // One time decides what is on the page and what it shows.
    const now = await session.inUnit(async (context) => context.now)
    const matches = (record: InvitationRecord) =>
      status === undefined || viewInvitation(record, now).status === status
    const show = (_: Context, record: InvitationRecord) => viewInvitation(record, now)
    return readList(session, { kind: 'invitation', matches, show }, asked)
  },
})

export const getInvitation = invitations.get('coffer invite get grace@example.com')

export const resendInvitation = operation({
  name: 'invite resend',
  summary: 'Send an invitation again with a new link; earlier links become invalid.',
  details:
    'Extends the expiry by 72 hours, counted from the previous expiry or from now, whichever is later.',
  permissions: ['tenant:invitation:create', 'tenant:invitation:update'],
  route: 'POST /tenants/self/invitations/{id}/resend',
  input: invitations.one,
  output: invitationOutput,
  examples: ['coffer invite resend grace@example.com'],
  log: { operation: 'update', message: 'Invitation resent' },
  async runDetached(session, input) {
    const view = await session.conclude(async (context) => {
      const before = await invitations.require(context, input.id)
      await refuseMember(context, before.email)
      await endLink(context.store, before.link, 'replaced')
      await dropSecrets(context.store, context.caller.tenant, before.id)
      const record = await linkInvitation(context, await context.tenant(), {
        ...before,
        expires_at: formatDate(extendExpiry(before, context.now)),
        ...modified(context),
      })
      return viewInvitation(await invitations.replace(context, record), context.now)
    })
    session.mail.enqueue(session.caller.tenant)
    return view
  },
})

export const deleteInvitation = invitations.delete({
  summary: 'Delete an invitation; its links become invalid.',
  examples: ['coffer invite delete grace@example.com --yes'],
  destroys: 'This withdraws the invitation',
  async before({ store, caller }, { id, link }) {
    await endLink(store, link, 'withdrawn')
    await removeMail(store, caller.tenant, id)
  },
})

/** @throws CofferError `conflict` */
async function refuseMember(context: Context, email: string): Promise<void> {
  if (await isMember(context.store, context.caller.tenant, email))
    throw conflict('A person with this e-mail address is already a member.')
}

/** Adds a new link to the invitation and writes its mail, the only copy of the link's secret. */
async function linkInvitation(
  context: Context,
  { name }: TenantRecord,
  draft: Omit<InvitationRecord, 'link'>,
): Promise<InvitationRecord> {
  const { store, caller, random } = context
  const secret = drawSecret(random)
  const link = await context.hashSecret(secret)
  const invitation = { ...draft, link }
  await store.insert('link', 0, { id: link, tenant: caller.tenant, invitation_id: draft.id }, { fresh: true })
  const mail = { id: context.createUuid(), tenant_name: name, secret }
  await writeMail(store, caller.tenant, invitation, mail)
  return invitation
}
