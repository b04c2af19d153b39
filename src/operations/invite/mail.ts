/**
 * Invitation links and their mail. A mail is written together with its invitation. `src/delivery` sends the mail
 * after the commit.
 */
import type { RandomSource } from '../../crypto/ports.js'
import { formatDate } from '../../domain/dates.js'
import { formatLink, LINK_SECRET_BYTES } from '../../domain/invitation/invitation.js'
import { composeDisabled, composeLetter, type Letter } from '../../domain/invitation/letter.js'
import { defaultSender, readSender } from '../../domain/invitation/mail-server.js'
import type { InvitationRecord, LinkRecord, MailRecord } from '../../domain/records/records.js'
import { DEFAULT_PUBLIC_URL, settingOf } from '../../domain/settings.js'
import type { Context } from '../../framework/context.js'
import type { EventTools } from '../../framework/events.js'
import type { Host } from '../../framework/host.js'
import { readAll, type StoreReader, type StoreWriter } from '../../storage/store.js'
import { readSettings } from '../tenant/tenant-create.js'

export type MailSettings = Awaited<ReturnType<typeof readMailSettings>>

/**
 * Without the setting `mail.url`, mail stays in the outbox. `listening`: the default of the setting `public_url`.
 * @throws CofferError `vault_damaged`
 */
export async function readMailSettings(reader: StoreReader, listening: string = DEFAULT_PUBLIC_URL) {
  const { values } = await readSettings(reader)
  const publicUrl = settingOf(values, 'public_url') ?? listening
  const from = settingOf(values, 'mail.from')
  return {
    url: settingOf(values, 'mail.url'),
    ca: settingOf(values, 'mail.ca'),
    from: from === undefined ? defaultSender(publicUrl) : readSender(from),
    publicUrl,
  }
}

/** Creates a link and its mail. Only the mail contains the secret of the link. Returns the id of the link. */
export async function mailLink(
  context: Context,
  { id: invitation_id, email, expires_at }: Pick<InvitationRecord, 'id' | 'email' | 'expires_at'>,
): Promise<string> {
  const { store, caller } = context
  const secret = randomSecret(context.random)
  const id = await context.hashSecret(secret)
  await store.insert('link', 0, { id, tenant: caller.tenant, invitation_id }, { fresh: true })
  const mail = { secret, invitation_id, to: email, link_expires_at: expires_at, trace_id: context.traceId }
  context.enqueue([await addMail(context, caller.tenant, mail)])
  return id
}

type Facts = Pick<MailRecord, 'secret' | 'invitation_id' | 'to' | 'link_expires_at' | 'webhook' | 'trace_id'>

/** Returns the delivery to enqueue after the commit. */
export async function addMail({ store, createUuid }: EventTools, tenant: number, facts: Facts) {
  const { url } = await readMailSettings(store)
  const { name: tenant_name } = (await store.get('tenant', 0, String(tenant)))!
  const created_at = formatDate(store.now)
  const state =
    url === undefined ? ({ state: 'outbox' } as const) : ({ state: 'waiting', due_at: created_at } as const)
  const mail: MailRecord = { id: createUuid(), tenant_name, ...facts, attempts: 0, created_at, ...state }
  await store.insert('mail', tenant, mail, { fresh: true })
  return { kind: 'mail' as const, tenant, lane: '', id: mail.id }
}

/**
 * Returns base64url (RFC 4648, 5) that does not begin with a hyphen. A command would parse a text with a hyphen at the
 * beginning as an option.
 */
export function randomSecret(random: RandomSource): string {
  const secret = Buffer.from(random.bytes(LINK_SECRET_BYTES)).toString('base64url')
  return secret.startsWith('-') ? randomSecret(random) : secret
}

/** Ends the link of the invitation. A mail that waits for delivery is then not sent. */
export async function endLink(
  store: StoreWriter,
  tenant: number,
  { id, link: hash }: InvitationRecord,
  ended: NonNullable<LinkRecord['ended']>,
): Promise<void> {
  const link = await store.get('link', 0, hash)
  if (link !== undefined) await store.replace('link', 0, { ...link, ended })
  for (const mail of await readMails(store, tenant, id))
    if (mail.secret !== undefined) await store.replace('mail', tenant, withoutSecret(mail))
}

export function readMails(reader: StoreReader, tenant: number, invitationId: string): Promise<MailRecord[]> {
  return readAll(reader, 'mail', tenant, { field: 'invitation', value: invitationId })
}

/**
 * Removes the secret of the link from a mail. A mail that waits for delivery becomes `dropped`, because a mail
 * without its link is useless.
 */
export function withoutSecret({ secret: _, due_at: __, ...mail }: MailRecord): MailRecord {
  return { ...mail, state: mail.state === 'waiting' ? 'dropped' : mail.state }
}

export function letterOf(mail: MailRecord, publicUrl: string): Letter {
  const { tenant_name: tenantName, to: email, link_expires_at: linkExpiresAt = '', secret, webhook } = mail
  if (webhook !== undefined) return composeDisabled({ tenantName, ...webhook })
  const link = secret && formatLink(publicUrl, secret)
  return composeLetter({ tenantName, email, linkExpiresAt, ...(link && { link }) })
}

/** The mail of a copied tenant gets new links, because the old links lead to the original tenant. */
export async function renewLinks(
  { random, hashSecret }: Pick<Host, 'random' | 'hashSecret'>,
  store: StoreWriter,
  tenant: number,
): Promise<void> {
  for (const mail of await readAll(store, 'mail', tenant)) {
    if (mail.secret === undefined) continue
    const invitation = await store.get('invitation', tenant, mail.invitation_id ?? '')
    const link = await store.get('link', 0, await hashSecret(mail.secret, store))
    if (invitation === undefined || link === undefined) continue
    const secret = randomSecret(random)
    const id = await hashSecret(secret, store)
    await store.remove('link', 0, link.id)
    await store.insert('link', 0, { ...link, id }, { fresh: true })
    await store.replace('invitation', tenant, { ...invitation, link: id })
    await store.replace('mail', tenant, { ...mail, secret })
  }
}
