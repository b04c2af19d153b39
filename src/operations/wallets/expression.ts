/** Cards of wallets in expressions: `{{ google_pay: id | json: "$.data.number" }}`. */
import type { ApplePayRecord, GooglePayRecord } from '../../domain/records/wallet-record.js'
import type { Context } from '../../framework/context.js'
import type { FoundRecord, UsedRecord } from '../token/token-attributes.js'
import { APPLE_PAY, applePayOutput, viewApplePay } from './apple-card.js'
import { GOOGLE_PAY, googlePayOutput, viewGooglePay } from './google-card.js'
import { CONTAINERS, viewSecrets } from './wallet-card.js'

export async function findGooglePay(
  { store, caller }: Context,
  id: string,
): Promise<FoundRecord | undefined> {
  const card = await store.get(GOOGLE_PAY, caller.tenant, id)
  if (card === undefined) return undefined
  const record = asToken(card, GOOGLE_PAY)
  return { record, output: googlePayOutput, view: (shown) => viewGooglePay(card, shown) }
}

export async function findApplePay({ store, caller }: Context, id: string): Promise<FoundRecord | undefined> {
  const card = await store.get(APPLE_PAY, caller.tenant, id)
  if (card === undefined) return undefined
  const record = asToken(card, APPLE_PAY)
  return { record, output: applePayOutput, view: (shown) => viewApplePay(card, shown) }
}

/** Returns a token with the secrets of the card, so that the secrets are protected like the data of a token. */
function asToken(
  card: GooglePayRecord | ApplePayRecord,
  entity: typeof GOOGLE_PAY | typeof APPLE_PAY,
): UsedRecord {
  const { id, tenant_id, fingerprint, created_by, created_at } = card
  const join = ({ data, authentication }: Partial<Pick<typeof card, 'data' | 'authentication'>>) => ({
    ...data,
    ...authentication,
  })
  return {
    ...{ id, tenant_id, type: 'card', entity, containers: [...CONTAINERS], created_by, created_at },
    ...{ fingerprint, fingerprint_expression: '' },
    data: join(card),
    mask: {},
    masked: join(viewSecrets(card, 'mask')),
  }
}
