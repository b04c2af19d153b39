/** The token intent object: what the API shows of data that may become a token. */
import type { Transform } from '../../domain/access/permissions.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { IntentRecord, TokenRecord } from '../../domain/records/records.js'
import * as output from '../../framework/output.js'
import type { Infer } from '../../framework/schema.js'
import { tokenOutput, viewToken } from '../token/token-attributes.js'

const { card, bank } = tokenOutput.properties

export const intentOutput = output.component('TokenIntent', ['id', 'type', 'created_at', 'expires_at'], {
  id: output.uuid,
  tenant_id: output.uuid,
  type: output.text,
  'card?': card,
  'bank?': bank,
  fingerprint: output.text,
  created_by: output.uuid,
  created_at: output.date,
  expires_at: output.date,
})

export function isIntent(record: TokenRecord): record is IntentRecord {
  return record.is_intent === true
}

type IntentView = Infer<typeof intentOutput>

/** Never has data, not even masked. */
export function viewIntent(record: IntentRecord, to?: Parameters<typeof viewToken>[2]): IntentView {
  const { data: _, ...view } = viewIntentData(record, 'mask', to)
  return view
}

/** The object that expressions refer to: the intent, and its data as the transform shows it. */
export function viewIntentData(
  record: IntentRecord,
  transform: Transform,
  to?: Parameters<typeof viewToken>[2],
): IntentView & { data?: unknown } {
  const { id, tenant_id, type, data, card, bank, fingerprint, created_by, created_at } = viewToken(
    record,
    transform,
    to,
  )
  const { expires_at } = record
  const optional = omitUndefined({ data, card, bank })
  return { id, tenant_id, type, ...optional, fingerprint, created_by, created_at, expires_at }
}
