/** Network tokens in expressions: `{{ network_token: ID | json: "$.data.number" }}`. */
import { maskNumber } from '../../domain/network-token/number.js'
import type { NetworkTokenRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'
import type { FoundRecord, UsedRecord } from '../token/token-attributes.js'
import { CONTAINERS, networkTokenOutput, viewNetworkToken } from './attributes.js'

export async function findUsed(context: Context, id: string): Promise<FoundRecord | undefined> {
  const { store, caller } = context
  const found = await store.get('network_token', caller.tenant, id)
  if (found === undefined) return undefined
  return {
    record: asToken(found),
    ...(found.status !== 'active' && { fault: `refers to a network token that is ${found.status}` }),
    output: networkTokenOutput,
    view: (shown) => viewNetworkToken(found, shown),
  }
}

/** Converts a network token to a token, so that access rules, logs and redaction treat it like a token. */
function asToken(found: NetworkTokenRecord): UsedRecord {
  const { id, tenant_id, number, expiration_month, expiration_year, created_by, created_at } = found
  const data = { number, expiration_month, expiration_year }
  const masked = { ...data, number: maskNumber(number) }
  return {
    id,
    tenant_id,
    type: 'network_token',
    entity: 'network_token',
    data,
    mask: masked,
    masked,
    fingerprint: '',
    fingerprint_expression: '',
    containers: CONTAINERS,
    created_by,
    created_at,
  }
}
