import type { Transform } from '../../domain/access/permissions.js'
import type { GooglePayRecord } from '../../domain/records/wallet-record.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { audit, component, date, enumOf, text, uuid } from '../../framework/output.js'
import type { Infer } from '../../framework/schema.js'
import { tspDetails } from '../token/token-attributes.js'
import { cardOutputs, viewCard, viewSecrets } from './wallet-card.js'

export const GOOGLE_PAY = 'google_pay'

export const googlePayOutput = component('GooglePay', ['id', 'status', 'created_at', 'expires_at'], {
  id: uuid,
  tenant_id: uuid,
  status: enumOf('active'),
  'expires_at?': date,
  ...audit,
  ...cardOutputs,
  details: tspDetails,
})

export const deletedGooglePay = component('DeletedGooglePay', ['id', 'status'], {
  id: uuid,
  tenant_id: uuid,
  status: text,
  'expires_at?': date,
})

type GooglePayView = Infer<typeof googlePayOutput>

/** Without `shown`, the view has neither the number nor the cryptogram. */
export function viewGooglePay(record: GooglePayRecord, shown: Transform = 'redact'): GooglePayView {
  const { data: _, authentication: __, fingerprint: ___, details, ...rest } = record
  return { ...rest, ...viewCard(record), ...viewSecrets(record, shown), details }
}

/** @throws CofferError `not_found` */
export async function requireGooglePay({ store, caller }: Context, id: string): Promise<GooglePayRecord> {
  const record = await store.get(GOOGLE_PAY, caller.tenant, id)
  if (record !== undefined) return record
  throw new CofferError('not_found', 'There is no card of Google Pay with this id, or it has expired.')
}
