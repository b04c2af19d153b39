/**
 * Accepting an invitation. Whoever has the link is taken for the person it was mailed to, so no key is needed; no
 * application can accept one.
 */
import { formatDate } from '../../domain/dates.js'
import { isExpired, isLinkSecret, type PersonNames, readLink, readNames } from '../../domain/invitation.js'
import { refuseErrors } from '../../domain/property-errors.js'
import type { InvitationRecord, LinkRecord, MemberRecord, TenantRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import { operation } from '../../framework/operation.js'
import { closedInput } from '../../framework/schema.js'
import type { Store, StoreReader, StoreWriter } from '../../storage/store.js'
import { type MemberView, memberOutput, viewMember } from '../member/member.js'
import { isMember, joinTenant } from '../member/user.js'
import { endLink, findLink, type SecretHashing } from './link.js'
import { dropSecrets } from './mail.js'

/** Why a link opens nothing. `member`: the person belongs to the tenant already. */
export type DeadLink = 'unknown' | 'used' | 'replaced' | 'withdrawn' | 'expired' | 'member'

/** What a link opens. */
export interface Invited {
  tenantName: string
  email: string
  expiresAt: string
}

export type LinkState = { isLive: true; invited: Invited } | { isLive: false; reason: DeadLink }

export interface AcceptContext extends SecretHashing {
  readonly store: Store
  createUuid(): string
}

/** What the link with this secret opens now. Changes nothing. */
export async function inspectLink(context: AcceptContext, secret: string): Promise<LinkState> {
  if (!isLinkSecret(secret)) return { isLive: false, reason: 'unknown' }
  return context.store.read(async (reader) => {
    const found = await openLink(context, reader, secret)
    if ('reason' in found) return { isLive: false, reason: found.reason }
    const { email, expires_at: expiresAt } = found.invitation
    return { isLive: true, invited: { tenantName: found.tenant.name, email, expiresAt } }
  })
}

export type Acceptance =
  | { isAccepted: true; member: MemberView; invited: Invited }
  | { isAccepted: false; reason: DeadLink }

/** Makes the person a member (`ADMIN`) and consumes the invitation, or says why not. Of two at once, one wins. */
export async function acceptInvitation(
  { store: vault, ...context }: AcceptContext,
  { secret, names, traceId }: { secret: string; names: PersonNames; traceId: string },
): Promise<Acceptance> {
  const valid = checkNames(names)
  return vault.write((store) => acceptLink({ ...context, store }, { secret, names: valid, traceId }))
}

/** For a person who has the link but no browser. The log records name them, not the owner who runs the command. */
export const acceptInvitationLink = operation({
  name: 'invite accept',
  audience: 'owner',
  scope: 'vault',
  summary: 'Accept an invitation, as the person who was invited would.',
  input: closedInput(['link'], {
    link: { type: 'string', description: 'The link in the mail, or its token; - is standard input.' },
    first_name: { type: 'string', description: 'What they are called.' },
    last_name: { type: 'string', description: 'What their family is called.' },
  }),
  positionals: ['link'],
  output: memberOutput,
  examples: ['coffer invite accept http://localhost:4010/invitations/accept?token=…'],
  check: ({ first_name = '', last_name = '' }) => checkNames({ first_name, last_name }),
  runDetached: async ({ inUnit, traceId }, { link }, names) => {
    const secret = readLink(link)
    const outcome = await inUnit((context) => acceptLink(context, { secret, names, traceId }))
    if (outcome.isAccepted) return outcome.member
    throw refuseLink(outcome.reason)
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
  if (!isLinkSecret(secret)) return { isAccepted: false, reason: 'unknown' }
  const { store, createUuid } = context
  const found = await openLink(context, store, secret)
  if ('reason' in found) return { isAccepted: false, reason: found.reason }
  const { link, tenant, invitation } = found
  const record = await createMember(store, found, names, createUuid)
  await store.remove('invitation', link.tenant, invitation.id)
  await endLink(store, link.id, 'used')
  await dropSecrets(store, link.tenant, invitation.id)
  await logAcceptance(store, found, record, traceId)
  const invited = { tenantName: tenant.name, email: invitation.email, expiresAt: invitation.expires_at }
  return { isAccepted: true, member: await viewMember(store, record), invited }
}

/** What is said of a dead link, wherever it is said: what happened, and what to do. */
export const DEAD_LINKS: Readonly<
  Record<DeadLink, { title: string; advice: string; status: 404 | 409 | 410 }>
> = {
  unknown: {
    status: 404,
    title: 'This link is not known',
    advice: 'Open the link from the mail as a whole, or ask whoever invited you to send it again.',
  },
  used: {
    status: 410,
    title: 'This link has been used',
    advice:
      'The invitation was accepted with it. If that was you, there is nothing left to do; if not, tell whoever invited you.',
  },
  replaced: {
    status: 410,
    title: 'There is a newer link',
    advice: 'The invitation was sent again. Open the link in the latest mail.',
  },
  withdrawn: {
    status: 410,
    title: 'This invitation was withdrawn',
    advice: 'Ask whoever invited you for a new one.',
  },
  expired: {
    status: 410,
    title: 'This invitation has expired',
    advice: 'Ask whoever invited you to send it again.',
  },
  member: {
    status: 409,
    title: 'You are a member already',
    advice: 'Somebody with this e-mail address has joined the tenant. There is nothing left to do.',
  },
}

/** The same as a refusal. */
function refuseLink(reason: DeadLink): CofferError {
  const { title, advice, status } = DEAD_LINKS[reason]
  return new CofferError(status === 409 ? 'conflict' : 'not_found', `${title}. ${advice}`, { status })
}

interface OpenLink {
  link: LinkRecord
  tenant: TenantRecord
  invitation: InvitationRecord
}

async function openLink(
  context: SecretHashing,
  reader: StoreReader,
  secret: string,
): Promise<OpenLink | { reason: DeadLink }> {
  const link = await findLink(context, reader, secret)
  if (link === undefined) return { reason: 'unknown' }
  if (link.ended !== undefined) return { reason: link.ended }
  const tenant = await reader.get('tenant', 0, String(link.tenant))
  if (tenant === undefined) return { reason: 'withdrawn' }
  const invitation = await reader.get('invitation', link.tenant, link.invitation_id)
  if (invitation === undefined) return { reason: 'withdrawn' }
  if (isExpired(invitation, reader.now)) return { reason: 'expired' }
  if (await isMember(reader, link.tenant, invitation.email)) return { reason: 'member' }
  return { link, tenant, invitation }
}

async function createMember(
  store: StoreWriter,
  { link, tenant, invitation }: OpenLink,
  names: PersonNames,
  createUuid: () => string,
): Promise<MemberRecord> {
  const user = await joinTenant(store, link.tenant, { email: invitation.email, ...names }, createUuid)
  const record: MemberRecord = {
    id: createUuid(),
    tenant_id: tenant.id,
    role: 'ADMIN',
    user_id: user.id,
    created_by: user.id,
    created_at: formatDate(store.now),
  }
  await store.insert('member', link.tenant, record, { fresh: true })
  return record
}

async function logAcceptance(
  store: StoreWriter,
  { link, tenant, invitation }: OpenLink,
  member: MemberRecord,
  traceId: string,
): Promise<void> {
  const common = {
    tenant_id: tenant.id,
    actor_id: member.user_id,
    actor_type: 'user',
    created_at: formatDate(store.now),
    trace_id: traceId,
  } as const
  await store.log(link.tenant, {
    ...common,
    entity_type: 'invitation',
    entity_id: invitation.id,
    operation: 'update',
    message: 'Invitation accepted',
  })
  await store.log(link.tenant, {
    ...common,
    entity_type: 'member',
    entity_id: member.id,
    operation: 'create',
    message: 'Member created',
  })
}
