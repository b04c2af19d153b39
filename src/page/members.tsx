import type { ResultOf } from '../operations/all.js'
import { type Asked, useAsked, useLive } from './api.js'
import { Button, Confirm, EditDialog, useDialog } from './forms.js'
import { Badge, Facts } from './parts.js'
import { go, linkTo } from './route.js'
import { useSchemaFields } from './schema-form.js'
import { Detail, Item, ItemScreen, usePaging } from './screen.js'
import { Time } from './text.js'

type Member = ResultOf<'member list'>['data'][number]
type Invitation = ResultOf<'invite list'>['data'][number]
type Person = ({ kind: 'member' } & Member) | ({ kind: 'invitation' } & Invitation)

const nameOf = (person: Person) => {
  if (person.kind === 'invitation') return person.email
  const { email, first_name, last_name } = person.user
  return [first_name, last_name].filter(Boolean).join(' ') || email || 'The owner of the vault'
}
const mailOf = (person: Person) => (person.kind === 'invitation' ? person.email : person.user.email)

/** The largest page of members. Invitations have pages of the same size, so that one page number fits both lists. */
const SIZE = 50

function usePeople(): Asked<{ data: Person[]; pagination: { total_items: number; total_pages: number } }> {
  const paging = usePaging(SIZE)
  const members = useAsked('member list', paging)
  const invitations = useAsked('invite list', paging)
  const error = members.error ?? invitations.error
  if (members.result === undefined || invitations.result === undefined) return error ? { error } : {}
  const data = [
    ...members.result.data.map((each): Person => ({ kind: 'member', ...each })),
    ...invitations.result.data.map((each): Person => ({ kind: 'invitation', ...each })),
  ]
  const [one, other] = [members.result.pagination, invitations.result.pagination]
  const pagination = {
    total_items: one.total_items + other.total_items,
    total_pages: Math.max(one.total_pages, other.total_pages),
  }
  return { result: { data, pagination }, ...(error && { error }) }
}

export function Members() {
  const show = useDialog()
  return (
    <ItemScreen
      thing="person"
      find="Name, e-mail address, role"
      asked={usePeople()}
      actions={<Button class="primary" text="Invite" act={() => show(<Invite />)} />}
      textOf={(person) => `${nameOf(person)} ${mailOf(person)} ${person.role}`}
      groupOf={({ kind }) => (kind === 'member' ? 'Members' : 'Invitations')}
      item={(person) => (
        <Item
          name={nameOf(person)}
          tag={<Badge kind={isExpired(person) ? 'push warn' : 'push'}>{tagOf(person)}</Badge>}
          about={
            person.kind === 'invitation' ? `invited as ${person.role}` : (mailOf(person) ?? 'no address')
          }
        />
      )}
      detail={({ of }) => (of.kind === 'member' ? <MemberDetail of={of} /> : <InvitationDetail of={of} />)}
    />
  )
}

const isExpired = (person: Person) => person.kind === 'invitation' && person.status === 'EXPIRED'
const tagOf = (person: Person) => (person.kind === 'invitation' ? person.status : person.role)

function Invite() {
  const { ask } = useLive()
  const { read, draw } = useSchemaFields({ operation: 'invite create' })
  const send = async (_: unknown, data: FormData) =>
    go(linkTo('members', (await ask('invite create', read(data))).id))
  return (
    <EditDialog title="Invite a person" verb="Invite" send={send}>
      {draw()}
      <p class="dim small">
        The mail contains a link that works once and expires after 72 hours. If no mail server is set, the
        mail stays in the Outbox.
      </p>
    </EditDialog>
  )
}

function ChangeRole({ of: member }: { of: Member & { kind: 'member' } }) {
  const { ask } = useLive()
  const { read, draw } = useSchemaFields({ operation: 'member update', of: member })
  const send = (_: unknown, data: FormData) => ask('member update', { ...read(data), id: member.id })
  return (
    <EditDialog title={`Role of ${nameOf(member)}`} verb="Save" send={send}>
      {draw()}
    </EditDialog>
  )
}

function MemberDetail({ of: member }: { of: Member & { kind: 'member' } }) {
  const { ask } = useLive()
  const show = useDialog()
  const { id, role, user } = member
  const name = nameOf(member)
  const leave = () =>
    show(
      <Confirm
        title={`Remove ${name}?`}
        text={`${name} loses all access to this tenant.`}
        verb="Remove"
        act={() => ask('member delete', { id }).then(() => go(linkTo('members')))}
      />,
    )
  const isOwner = role === 'OWNER'
  const facts = {
    Role: role,
    'E-mail': user.email,
    'Member id': <code>{id}</code>,
    'User id': <code>{user.id}</code>,
    Since: member.created_at && <Time of={member.created_at} by={member.created_by} />,
  }
  return (
    <Detail title={name} head={<Badge>{role}</Badge>}>
      {isOwner ? (
        <p class="dim">The owner cannot be removed. The role of the owner cannot be changed.</p>
      ) : (
        <div class="row">
          <Button text="Change role" act={() => show(<ChangeRole of={member} />)} />
          <Button class="danger push" text="Remove …" act={leave} />
        </div>
      )}
      <Facts of={facts} />
      <p class="dim small">Coffer stores and shows roles, but roles do not restrict anything.</p>
    </Detail>
  )
}

function InvitationDetail({ of: invitation }: { of: Invitation & { kind: 'invitation' } }) {
  const { ask } = useLive()
  const show = useDialog()
  const { id, email, role, status, expires_at } = invitation
  const withdraw = () =>
    show(
      <Confirm
        title={`Withdraw the invitation of ${email}?`}
        text="Its link becomes invalid, and its mail is removed from the Outbox."
        verb="Withdraw"
        act={() => ask('invite delete', { id }).then(() => go(linkTo('members')))}
      />,
    )
  const facts = {
    Role: role,
    Expires: <Time of={expires_at} />,
    'Invitation id': <code>{id}</code>,
    Created: invitation.created_at && <Time of={invitation.created_at} by={invitation.created_by} />,
  }
  return (
    <Detail title={email} head={<Badge kind={isExpired(invitation) ? 'warn' : ''}>{status}</Badge>}>
      <div class="row">
        <Button text="Send again" of={`: ${email}`} act={() => ask('invite resend', { id })} />
        <a class="button" href={linkTo('outbox', undefined, { find: email })}>
          Its mail
        </a>
        <Button class="danger push" text="Withdraw …" act={withdraw} />
      </div>
      <Facts of={facts} />
      <p class="dim small">
        If you send the invitation again, the mail contains a new link. Earlier links become invalid.
      </p>
    </Detail>
  )
}
