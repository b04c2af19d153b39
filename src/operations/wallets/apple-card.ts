import type { Transform } from '../../domain/access/permissions.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ApplePayRecord } from '../../domain/records/wallet-record.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { audit, component, date, enumOf, object, text, uuid } from '../../framework/output.js'
import type { Infer } from '../../framework/schema.js'
import { cardOutputs, viewCard, viewSecrets } from './wallet-card.js'

export const APPLE_PAY = 'apple_pay'

const summary = {
  id: uuid,
  type: enumOf('dpan', 'mpan'),
  tenant_id: uuid,
  status: enumOf('active', 'unlinked'),
  'expires_at?': date,
} as const

export const applePayOutput = component('ApplePay', ['id', 'type', 'status', 'created_at', 'expires_at'], {
  ...summary,
  ...audit,
  ...cardOutputs,
  'transaction_id?': text,
  payment_data_type: text,
  device_manufacturer_identifier: text,
})

export const applePaySummary = object({
  apple_pay: component('ApplePaySummary', ['id', 'type', 'status'], summary),
})

type ApplePayView = Infer<typeof applePayOutput>

/** Without `shown`, the view has neither the number nor the cryptogram. */
export function viewApplePay(record: ApplePayRecord, shown: Transform = 'redact'): ApplePayView {
  const { data: _, authentication: __, fingerprint: ___, ...rest } = record
  return { ...rest, ...viewCard(record), ...viewSecrets(record, shown) }
}

export function summarizeApplePay(
  { id, type, tenant_id, expires_at }: ApplePayRecord,
  status: ApplePayRecord['status'],
): Infer<typeof applePaySummary> {
  return { apple_pay: { id, type, tenant_id, status, ...omitUndefined({ expires_at }) } }
}

/** @throws CofferError `not_found` */
export async function requireApplePay({ store, caller }: Context, id: string): Promise<ApplePayRecord> {
  const record = await store.get(APPLE_PAY, caller.tenant, id)
  if (record !== undefined) return record
  throw new CofferError('not_found', 'There is no card of Apple Pay with this id, or it has expired.')
}
