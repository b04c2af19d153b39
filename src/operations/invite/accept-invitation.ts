/** Accepting an invitation. The secret in the link authenticates the invited person, so no API key is needed. */
import { formatDate } from '../../domain/dates.js'
import {
  isExpired,
  isLinkSecret,
  type PersonNames,
  readLink,
  readNames,
} from '../../domain/invitation/invitation.js'
import { refuseErrors } from '../../domain/property-errors.js'
import type {
  InvitationRecord,
  LinkRecord,
  MemberRecord,
  TenantRecord,
} from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import { onVault, operation } from '../../framework/operation.js'
import { closedInput } from '../../framework/schema.js'
import type { Store, StoreReader, StoreWriter } from '../../storage/store.js'
import { type MemberView, memberOutput, viewMember } from '../member/member.js'
import { addMember, isMember } from '../member/user.js'
import { endLink, findLink, type SecretHashing } from './link.js'
import { dropSecrets } from './mail.js'

/** Why a link does not work. `member`: the person is already a member of the tenant. */
type DeadLink = 'unknown' | 'used' | 'replaced' | 'withdrawn' | 'expired' | 'member'

export interface Refused {
  reason: DeadLink
}

export type Invited = Record<'tenantName' | 'email' | 'expiresAt', string>

export interface AcceptContext extends SecretHashing {
  readonly store: Store
  createUuid(): string
}

export async function inspectLink(context: AcceptContext, secret: string): Promise<Invited | Refused> {
  return context.store.read(async (reader) => {
    const found = await openLink(context, reader, secret)
    return 'reason' in found ? found : found.invited
  })
}

export type Acceptance = { member: MemberView; invited: Invited } | Refused

/** Makes the person a member, and ends the invitation and its link. One of two concurrent calls succeeds. */
export async function acceptInvitation(
  { store: vault, ...context }: AcceptContext,
  { secret, names, traceId }: { secret: string; names: PersonNames; traceId: string },
): Promise<Acceptance> {
  const valid = checkNames(names)
  return vault.write((store) => acceptLink({ ...context, store }, { secret, names: valid, traceId }))
}

/** Accepts an invitation without a browser. The actor of its log records is the invited person. */
export const acceptInvitationLink = operation({
  ...onVault,
  name: 'invite accept',
  summary: 'Accept an invitation on behalf of the invited person.',
  input: closedInput(['link'], {
    link: { type: 'string', description: 'The link in the mail, or its token; - reads standard input.' },
    first_name: { type: 'string', description: 'Their first name.' },
    last_name: { type: 'string', description: 'Their last name.' },
  }),
  positionals: ['link'],
  output: memberOutput,
  examples: [
    'coffer invite outbox grace@example.com --fields link -o value | coffer invite accept - --first-name Grace',
  ],
  check: ({ first_name = '', last_name = '' }) => checkNames({ first_name, last_name }),
  runDetached: async ({ inUnit, traceId }, { link }, names) => {
    const secret = readLink(link)
    const outcome = await inUnit((context) => acceptLink(context, { secret, names, traceId }))
    if ('member' in outcome) return outcome.member
    const { title, advice, status } = DEAD_LINKS[outcome.reason]
    throw new CofferError(status === 409 ? 'conflict' : 'not_found', `${title}. ${advice}`, { status })
  },
})

/** @throws CofferError `validation` */
function checkNames(given: PersonNames): PersonNames {
  const { names, errors } = readNames(given)
  refuseErrors(errors)
  return names
}

async function acceptLink(
  context: SecretHashing & { store: StoreWriter; createUuid(): string },
  { secret, names, traceId }: { secret: string; names: PersonNames; traceId: string },
): Promise<Acceptance> {
  const { store, createUuid } = context
  const found = await openLink(context, store, secret)
  if ('reason' in found) return found
  const { link, tenant, invitation, invited } = found
  const person = { email: invitation.email, ...names, role: invitation.role }
  const record = await addMember(store, tenant, person, createUuid)
  await store.remove('invitation', link.tenant, invitation.id)
  await endLink(store, link.id, 'used')
  await dropSecrets(store, link.tenant, invitation.id)
  await logAcceptance(store, found, record, traceId)
  return { member: await viewMember(store, record), invited }
}

export const DEAD_LINKS: Readonly<
  Record<DeadLink, { title: string; advice: string; status: 404 | 409 | 410 }>
> = {
  unknown: {
    status: 404,
    title: 'This link is unknown',
    advice: 'Open the complete link from the mail, or ask the person who invited you to send it again.',
  },
  used: {
    status: 410,
    title: 'This link has been used',
    advice:
      'The invitation was accepted with it. If it was not you who accepted, tell the person who invited you.',
  },
  replaced: {
    status: 410,
    title: 'There is a newer link',
    advice: 'The invitation was sent again. Open the link in the latest mail.',
  },
  withdrawn: {
    status: 410,
    title: 'This invitation was withdrawn',
    advice: 'Ask the person who invited you for a new one.',
  },
  expired: {
    status: 410,
    title: 'This invitation has expired',
    advice: 'Ask the person who invited you to send it again.',
  },
  member: {
    status: 409,
    title: 'You are already a member',
    advice: 'A person with this e-mail address has joined the tenant. There is nothing to do.',
  },
}

type OpenLink = { link: LinkRecord; tenant: TenantRecord; invitation: InvitationRecord; invited: Invited }

async function openLink(
  context: SecretHashing,
  reader: StoreReader,
  secret: string,
): Promise<OpenLink | Refused> {
  if (!isLinkSecret(secret)) return { reason: 'unknown' }
  const link = await findLink(context, reader, secret)
  if (link === undefined) return { reason: 'unknown' }
  if (link.ended !== undefined) return { reason: link.ended }
  const tenant = await reader.get('tenant', 0, String(link.tenant))
  if (tenant === undefined) return { reason: 'withdrawn' }
  const invitation = await reader.get('invitation', link.tenant, link.invitation_id)
  if (invitation === undefined) return { reason: 'withdrawn' }
  if (isExpired(invitation, reader.now)) return { reason: 'expired' }
  if (await isMember(reader, link.tenant, invitation.email)) return { reason: 'member' }
  const { email, expires_at: expiresAt } = invitation
  return { link, tenant, invitation, invited: { tenantName: tenant.name, email, expiresAt } }
}

async function logAcceptance(
  store: StoreWriter,
  { link, tenant, invitation }: OpenLink,
  member: MemberRecord,
  traceId: string,
): Promise<void> {
  const by = { tenant_id: tenant.id, actor_id: member.user_id, actor_type: 'user' } as const
  const about = { created_at: formatDate(store.now), trace_id: traceId }
  const invited = { entity_type: 'invitation', entity_id: invitation.id, operation: 'update' } as const
  const joined = { entity_type: 'member', entity_id: member.id, operation: 'create' } as const
  await store.log(link.tenant, { ...by, ...invited, message: 'Invitation accepted', ...about })
  await store.log(link.tenant, { ...by, ...joined, message: 'Member created', ...about })
}
