/** Network tokens in expressions: `{{ network_token: ID | json: "$.data.number" }}`. */
import type { Transform } from '../../domain/access/permissions.js'
import { maskNumber } from '../../domain/network-token/number.js'
import type { NetworkTokenRecord, TokenRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'
import { showTo } from '../../framework/no-reveal.js'
import { NETWORK_TOKEN } from '../token/token-attributes.js'
import { CONTAINERS, networkTokenOutput, viewNetworkToken } from './attributes.js'

/** A network token in the form of a token, so that access rules, logs and redaction treat it like a token. */
export interface UsedNetworkToken {
  record: TokenRecord
  /** Why the network token cannot be used. */
  fault?: string
  show(transform: Transform): object
}

export async function findUsed(context: Context, id: string): Promise<UsedNetworkToken | undefined> {
  const { store, caller } = context
  const found = await store.get('network_token', caller.tenant, id)
  if (found === undefined) return undefined
  return {
    record: asToken(found),
    ...(found.status !== 'active' && { fault: `refers to a network token that is ${found.status}` }),
    show: (transform) => showTo(caller, networkTokenOutput, viewNetworkToken(found, transform)),
  }
}

function asToken(found: NetworkTokenRecord): TokenRecord {
  const { id, tenant_id, number, expiration_month, expiration_year, created_by, created_at } = found
  const data = { number, expiration_month, expiration_year }
  const masked = { ...data, number: maskNumber(number) }
  return {
    id,
    tenant_id,
    type: NETWORK_TOKEN,
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
