/** The mail of invitations: written with the invitation, sent by `src/mail` after the commit, then updated. */
import { formatDate } from '../../domain/dates.js'
import { formatLink } from '../../domain/invitation.js'
import { composeLetter, delayMail, type Letter, wrapLetter } from '../../domain/letter.js'
import { defaultSender, readSender } from '../../domain/mail-server.js'
import type { InvitationRecord, MailRecord } from '../../domain/records.js'
import { DEFAULT_PUBLIC_URL, settingOf } from '../../domain/settings.js'
import type { Delivery, Message } from '../../framework/mail-port.js'
import { findNewest, readAll } from '../../storage/pages.js'
import type { Store, StoreReader, StoreWriter } from '../../storage/store.js'
import { readSettings } from '../config/settings-record.js'

const TENANTS_PER_PAGE = 1000

export type MailSettings = Awaited<ReturnType<typeof readMailSettings>>

/** Without `url` mail stays in the outbox. `listening`: where links lead by default. @throws CofferError `vault_damaged` */
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

/** Writes the mail of `invitation`, to be sent after the commit; without a mail server, to the outbox. */
export async function writeMail(
  store: StoreWriter,
  tenant: number,
  invitation: InvitationRecord,
  mail: Pick<MailRecord, 'id' | 'tenant_name' | 'secret'>,
): Promise<void> {
  const { url } = await readMailSettings(store)
  const record: MailRecord = {
    ...mail,
    invitation_id: invitation.id,
    to: invitation.email,
    link_expires_at: invitation.expires_at,
    attempts: 0,
    created_at: formatDate(store.now),
    ...(url === undefined ? { state: 'outbox' } : { state: 'waiting', due_at: formatDate(store.now) }),
  }
  await store.insert('mail', tenant, record, { fresh: true })
}

/** Removes the secret of an ended link from the mail of the invitation; waiting mail is not sent. */
export async function dropSecrets(store: StoreWriter, tenant: number, invitationId: string): Promise<void> {
  for (const mail of await findMail(store, tenant, { field: 'invitation', value: invitationId })) {
    if (mail.secret !== undefined) await store.replace('mail', tenant, withoutSecret(mail))
  }
}

export async function removeMail(store: StoreWriter, tenant: number, invitationId: string): Promise<void> {
  for (const { id } of await findMail(store, tenant, { field: 'invitation', value: invitationId }))
    await store.remove('mail', tenant, id)
}

function withoutSecret({ secret: _, due_at: __, ...mail }: MailRecord): MailRecord {
  return { ...mail, state: mail.state === 'waiting' ? 'dropped' : mail.state }
}

/** Oldest first. */
async function findMail(
  reader: StoreReader,
  tenant: number,
  where: { field: 'invitation' | 'state'; value: string },
): Promise<MailRecord[]> {
  return (await readAll(reader, 'mail', tenant, where)).reverse()
}

export function letterOf(mail: MailRecord, publicUrl: string): Letter {
  const { tenant_name: tenantName, to: email, link_expires_at: linkExpiresAt, secret } = mail
  const link = secret === undefined ? {} : { link: formatLink(publicUrl, secret) }
  return composeLetter({ tenantName, email, linkExpiresAt, ...link })
}

/** Numbers of the tenants that have waiting mail, due or not. */
export async function listWaitingTenants(store: Store): Promise<number[]> {
  const waiting: number[] = []
  const where = { field: 'state', value: 'waiting' }
  for (let page = 1; ; page++) {
    const { found, isLast } = await store.read(async (reader) => {
      const { records, total } = await reader.find('tenant', 0, { page, size: TENANTS_PER_PAGE })
      const found: number[] = []
      for (const { number } of records) {
        if ((await findNewest(reader, 'mail', number, where)) !== undefined) found.push(number)
      }
      return { found, isLast: page * TENANTS_PER_PAGE >= total }
    })
    waiting.push(...found)
    if (isLast) return waiting
  }
}

export interface Waiting {
  due: MailRecord[]
  /** ms since the epoch; absent without later mail. */
  nextAt?: number
  settings: MailSettings
}

/** The waiting mail of a tenant; none if the tenant was deleted. */
export async function listWaiting(store: Store, tenant: number, listening?: string): Promise<Waiting> {
  return store.read(async (reader) => {
    const settings = await readMailSettings(reader, listening)
    const isThere = (await reader.get('tenant', 0, String(tenant))) !== undefined
    const waiting = isThere ? await findMail(reader, tenant, { field: 'state', value: 'waiting' }) : []
    const due = waiting.filter((mail) => isDue(mail, reader.now))
    const later = waiting.filter((mail) => !due.includes(mail)).map(({ due_at = '' }) => Date.parse(due_at))
    const next = later.length === 0 ? {} : { nextAt: Math.min(...later) }
    return { due, settings, ...next }
  })
}

export function messageOf(mail: MailRecord, { from, publicUrl }: MailSettings): Message {
  const letter = letterOf(mail, publicUrl)
  const { subject, text } = letter
  const date = Date.parse(mail.created_at)
  // The Message-ID (RFC 5322, 3.6.4), the same at every attempt.
  const id = `<${mail.id}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`
  return { id, from, to: mail.to, subject, text, html: wrapLetter(letter), date }
}

/** More than sending one mail can take. */
const SENDING_MS = 5 * 60 * 1000

/** Claims a mail where servers share the store: it is due again if nothing comes of it. False if another one has it. */
export async function claimMail(store: Store, tenant: number, { id }: MailRecord): Promise<boolean> {
  if (!store.isShared) return true
  return store.write(async (writer) => {
    if ((await writer.get('tenant', 0, String(tenant))) === undefined) return false
    const mail = await writer.get('mail', tenant, id)
    if (mail === undefined || !isDue(mail, writer.now)) return false
    await writer.replace('mail', tenant, { ...mail, due_at: formatDate(writer.now + SENDING_MS) })
    return true
  })
}

function isDue({ state, due_at = '' }: MailRecord, now: number): boolean {
  return state === 'waiting' && Date.parse(due_at) <= now
}

/** Records the result of sending the first of these mails; of the rest, which was not sent, for what is still due. */
export async function noteDelivery(
  store: Store,
  tenant: number,
  [tried, ...rest]: readonly MailRecord[],
  { delivery, server }: { delivery: Delivery; server: string },
): Promise<void> {
  await changeMails(store, tenant, [tried!, ...rest], (mail, now) =>
    mail.id === tried!.id || isDue(mail, now) ? afterDelivery(mail, delivery, server, now) : undefined,
  )
}

/** The mail after another attempt; undefined if its link ended meanwhile and nothing was sent. */
function afterDelivery(
  mail: MailRecord,
  delivery: Delivery,
  server: string,
  now: number,
): MailRecord | undefined {
  const attempts = mail.attempts + 1
  if (delivery.outcome === 'sent') {
    const { failure: _, ...rest } = withoutSecret(mail)
    return { ...rest, state: 'sent', attempts, server, sent_at: formatDate(now) }
  }
  if (mail.state !== 'waiting') return undefined
  const { due_at: _, ...failed } = { ...mail, attempts, server, failure: delivery.reason }
  const dueAt = now + delayMail(attempts)
  const isOver = delivery.outcome === 'refused' || Date.parse(mail.link_expires_at) <= dueAt
  return isOver ? { ...failed, state: 'refused' } : { ...failed, due_at: formatDate(dueAt) }
}

/** Moves waiting mail to the outbox, after the mail server was removed from the settings. */
export async function keepInOutbox(store: Store, tenant: number, mails: readonly MailRecord[]) {
  await changeMails(store, tenant, mails, ({ due_at: _, ...mail }) =>
    mail.state === 'waiting' ? { ...mail, state: 'outbox' } : undefined,
  )
}

/** Stores what `change` makes of each; undefined leaves it. Mail deleted meanwhile is ignored. */
async function changeMails(
  store: Store,
  tenant: number,
  mails: readonly MailRecord[],
  change: (mail: MailRecord, now: number) => MailRecord | undefined,
): Promise<void> {
  await store.write(async (writer) => {
    if ((await writer.get('tenant', 0, String(tenant))) === undefined) return
    for (const { id } of mails) {
      const mail = await writer.get('mail', tenant, id)
      const changed = mail && change(mail, writer.now)
      if (changed !== undefined) await writer.replace('mail', tenant, changed)
    }
  })
}
