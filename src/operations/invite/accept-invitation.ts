/**
 * Accepts invitations. The secret in the link authenticates the invited person, who therefore needs no API
 * key.
 */
import {
  isExpired,
  isLinkSecret,
  type PersonNames,
  readLink,
  readNames,
} from '../../domain/invitation/invitation.js'
import { CofferError } from '../../errors.js'
import { wholeVault } from '../../framework/declaration.js'
import { type EventTools, writeEntries } from '../../framework/events.js'
import type { Host } from '../../framework/host.js'
import { detached } from '../../framework/operation.js'
import { closedInput } from '../../framework/schema.js'
import type { StoreReader } from '../../storage/store.js'
import { addMember, isMember, memberOutput, viewMember } from '../member/noun.js'
import { endLink } from './mail.js'

const ASK_AGAIN = 'Ask the person who invited you to send the invitation again.'
const DEAD_LINKS = {
  unknown: [404, 'This link is unknown', `Open the complete link from the mail. ${ASK_AGAIN}`],
  used: [410, 'This link has been used', 'If it was not you who accepted, tell the person who invited you.'],
  replaced: [410, 'There is a newer link', 'The invitation was sent again. Open the link of the last mail.'],
  withdrawn: [410, 'This invitation was withdrawn', 'Ask the person who invited you for a new one.'],
  expired: [410, 'This invitation has expired', ASK_AGAIN],
  member: [409, 'You are already a member', 'A person with this e-mail address has joined the tenant.'],
} as const

export class DeadLink extends CofferError {
  readonly reason: keyof typeof DEAD_LINKS
  readonly title: string
  readonly advice: string

  constructor(reason: keyof typeof DEAD_LINKS) {
    const [status, title, advice] = DEAD_LINKS[reason]
    super(status === 409 ? 'conflict' : 'not_found', `${title}. ${advice}`, { status })
    this.reason = reason
    this.title = title
    this.advice = advice
  }
}

export type Invited = Awaited<ReturnType<typeof inspectLink>>

type SecretHashing = Pick<Host, 'hashSecret' | 'isEqualSecret'>
export type AcceptContext = SecretHashing & Pick<Host, 'store' | 'deliveries' | 'createUuid'>

export function inspectLink(context: AcceptContext, secret: string) {
  return context.store.read(async (reader) => {
    const { tenant, invitation } = await openLink(context, reader, secret)
    return { tenantName: tenant.name, email: invitation.email, expiresAt: invitation.expires_at }
  })
}

interface Acceptance {
  secret: string
  names: PersonNames
  traceId: string
}

/** Makes the person a member, and ends the invitation and its link. @throws DeadLink, CofferError `validation` */
export async function acceptInvitation(context: AcceptContext, { names, ...acceptance }: Acceptance) {
  const checked = { ...acceptance, names: readNames(names) }
  const { member, waiting } = await context.store.write((store) => acceptLink({ ...context, store }, checked))
  context.deliveries.enqueue(waiting)
  return member
}

/** In the log records of this operation, the actor is the invited person. */
export const acceptInvitationLink = detached({
  access: wholeVault,
  name: 'invite accept',
  summary: 'Accept an invitation on behalf of the invited person.',
  input: closedInput(['link'], {
    link: { type: 'string', description: 'The link in the mail, or its token; - reads standard input.' },
    first_name: { type: 'string', description: 'The first name of the person.' },
    last_name: { type: 'string', description: 'The last name of the person.' },
  }),
  output: memberOutput,
  cli: { positionals: ['link'] },
  examples: [
    'coffer invite outbox grace@example.com --fields link -o value | coffer invite accept - --first-name Grace',
  ],
  check: readNames,
  run: async ({ inUnit, traceId }, { link }, names) => {
    const secret = readLink(link)
    return inUnit(async (context) => {
      const { member, waiting } = await acceptLink(context, { secret, names, traceId })
      context.enqueue(waiting)
      return member
    })
  },
})

/** Only one of two concurrent calls succeeds. */
async function acceptLink(context: SecretHashing & EventTools, { secret, names, traceId }: Acceptance) {
  const { store, createUuid } = context
  const { number, tenant, invitation } = await openLink(context, store, secret)
  const person = { email: invitation.email, ...names, role: invitation.role }
  const member = await addMember(store, tenant, person, createUuid)
  await store.remove('invitation', number, invitation.id)
  await endLink(store, number, invitation, 'used')
  const actor = { type: 'user', id: member.user_id } as const
  const event = { type: 'tenant.invitation.accepted', about: invitation } as const
  const accepted = { operation: 'update', message: 'Invitation accepted' } as const
  const created = { operation: 'create', message: 'Member created' } as const
  const entries = [
    { type: 'invitation', id: invitation.id, as: accepted, event, actor },
    { type: 'member', id: member.id, as: created, actor },
  ] as const
  const waiting = await writeEntries(context, tenant, entries, traceId)
  return { member: await viewMember(store, member), waiting }
}

async function openLink(context: SecretHashing, reader: StoreReader, secret: string) {
  if (!isLinkSecret(secret)) throw new DeadLink('unknown')
  const hash = await context.hashSecret(secret, reader)
  const link = await reader.get('link', 0, hash)
  if (link === undefined || !context.isEqualSecret(link.id, hash)) throw new DeadLink('unknown')
  if (link.ended !== undefined) throw new DeadLink(link.ended)
  const { tenant: number } = link
  const tenant = await reader.get('tenant', 0, String(number))
  const invitation = tenant && (await reader.get('invitation', number, link.invitation_id))
  if (tenant === undefined || invitation === undefined) throw new DeadLink('withdrawn')
  if (isExpired(invitation, reader.now)) throw new DeadLink('expired')
  if (await isMember(reader, number, invitation.email)) throw new DeadLink('member')
  return { number, tenant, invitation }
}
