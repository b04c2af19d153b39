import { type PropertyErrors, usage } from '../../errors.js'
import type { Lenient } from '../omit-undefined.js'
import { addError, refuseErrors } from '../property-errors.js'
import type { InvitationRecord } from '../records/records.js'

const VALIDITY_MS = 72 * 60 * 60 * 1000
export const LINK_SECRET_BYTES = 32
const LINK_SECRET = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/
export const ACCEPT_PATH = '/invitations/accept'
const NAME_LIMIT = 200

export const STATUSES = ['PENDING', 'EXPIRED'] as const

/** Returns ms since the epoch: 72 hours after `now` or after the previous expiry (`before`), whichever is later. */
export function extendExpiry(now: number, before?: string): number {
  return Math.max(now, before === undefined ? now : Date.parse(before)) + VALIDITY_MS
}

export function isExpired({ expires_at }: Pick<InvitationRecord, 'expires_at'>, now: number): boolean {
  return Date.parse(expires_at) <= now
}

export type InvitationView = ReturnType<typeof viewInvitation>

export function viewInvitation(record: InvitationRecord, now: number) {
  const { id, tenant_id, email, role, expires_at, link: _, ...made } = record
  const status = isExpired(record, now) ? STATUSES[1] : STATUSES[0]
  return { id, tenant_id, email, role, status, expires_at, ...made }
}

export function isLinkSecret(text: string): boolean {
  return LINK_SECRET.test(text)
}

/** Requires: `publicUrl` does not end with a slash. */
export function formatLink(publicUrl: string, secret: string): string {
  return `${publicUrl}${ACCEPT_PATH}?token=${secret}`
}

export function readLink(text: string): string {
  const secret = text.includes('?') ? (/[?&]token=([^&#\s]*)/.exec(text)?.[1] ?? '') : text.trim()
  if (isLinkSecret(secret)) return secret
  throw usage('This is not an invitation link. Give the whole link from the mail, or its token.')
}

export type PersonNames = Partial<Record<'first_name' | 'last_name', string>>

export function readNames(given: Lenient<PersonNames>): PersonNames {
  const unfit =
    /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u
  const names: PersonNames = {}
  const errors: PropertyErrors = {}
  for (const property of ['first_name', 'last_name'] as const) {
    const name = given[property]?.trim().normalize('NFC') ?? ''
    if (name === '') continue
    if (name.length > NAME_LIMIT) addError(errors, property, `must have at most ${NAME_LIMIT} characters`)
    else if (unfit.test(name)) addError(errors, property, 'must be visible text on one line')
    else names[property] = name
  }
  refuseErrors(errors)
  return names
}
