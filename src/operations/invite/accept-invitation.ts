/**
 * Accepting an invitation. Who has the link is the person it was mailed to, so that nobody is asked for a key; and
 * because no application can do it, it is no operation of the API.
 */
import { formatDate } from '../../domain/dates.js'
import { isExpired, isLinkSecret, type PersonNames, readNames } from '../../domain/invitation.js'
import { refuseErrors } from '../../domain/property-errors.js'
import type { InvitationRecord, LinkRecord, MemberRecord, TenantRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import type { Store, StoreReader, StoreWriter } from '../../storage/store.js'
import { type MemberView, viewMember } from '../member/member.js'
import { isMember, joinTenant } from '../member/user.js'
import { endLink, findLink, type LinkPowers } from './link.js'
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

export interface AcceptPowers extends LinkPowers {
  readonly store: Store
  createUuid(): string
}

/** What the link with this secret opens now. Changes nothing. */
export async function inspectLink(powers: AcceptPowers, secret: string): Promise<LinkState> {
  if (!isLinkSecret(secret)) return { isLive: false, reason: 'unknown' }
  return powers.store.read(async (reader) => {
    const found = await openLink(powers, reader, secret)
    if ('reason' in found) return { isLive: false, reason: found.reason }
    const { email, expires_at: expiresAt } = found.invitation
    return { isLive: true, invited: { tenantName: found.tenant.name, email, expiresAt } }
  })
}

export type Acceptance =
  | { isAccepted: true; member: MemberView; invited: Invited }
  | { isAccepted: false; reason: DeadLink }

/**
 * Makes the person a member (`ADMIN`) and consumes the invitation, or says why not. Of two at once, one wins.
 * @throws CofferError `validation` for names that are none
 */
export async function acceptInvitation(
  powers: AcceptPowers,
  { secret, names: given, traceId }: { secret: string; names: PersonNames; traceId: string },
): Promise<Acceptance> {
  if (!isLinkSecret(secret)) return { isAccepted: false, reason: 'unknown' }
  const { names, errors } = readNames(given)
  refuseErrors(errors)
  return powers.store.write(async (store) => {
    const found = await openLink(powers, store, secret)
    if ('reason' in found) return { isAccepted: false, reason: found.reason }
    const { link, tenant, invitation } = found
    const record = await createMember(store, found, names, powers.createUuid)
    await store.remove('invitation', link.tenant, invitation.id)
    await endLink(store, link.id, 'used')
    await dropSecrets(store, link.tenant, invitation.id)
    await logAcceptance(store, found, record, traceId)
    const invited = { tenantName: tenant.name, email: invitation.email, expiresAt: invitation.expires_at }
    return { isAccepted: true, member: await viewMember(store, record), invited }
  })
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
export function refuseLink(reason: DeadLink): CofferError {
  const { title, advice, status } = DEAD_LINKS[reason]
  return new CofferError(status === 409 ? 'conflict' : 'not_found', `${title}. ${advice}`, { status })
}

interface OpenLink {
  link: LinkRecord
  tenant: TenantRecord
  invitation: InvitationRecord
}

async function openLink(
  powers: AcceptPowers,
  reader: StoreReader,
  secret: string,
): Promise<OpenLink | { reason: DeadLink }> {
  const link = await findLink(powers, reader, secret)
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
