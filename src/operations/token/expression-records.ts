/** The kinds of records to which expressions can refer. */
import type { RecordKind } from '../../domain/expression/expression.js'
import type { TokenRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'
import { type FoundRecord, intentOutput, tokenOutput, viewIntentData, viewToken } from './token-attributes.js'

interface Row {
  /** The name of the kind in error messages. */
  label: string
  find(context: Context, id: string): Promise<FoundRecord | undefined>
}

export const RECORDS: Readonly<Record<RecordKind, Row>> = {
  token: {
    label: 'token',
    find: async ({ store, caller }, id) => {
      const record = await store.get('token', caller.tenant, id)
      return record && { record, output: tokenOutput, view: (shown) => viewToken(record, shown) }
    },
  },
  token_intent: {
    label: 'token intent',
    find: async ({ store, caller }, id) => {
      const record: TokenRecord | undefined = await store.get('token_intent', caller.tenant, id)
      return record && { record, output: intentOutput, view: (shown) => viewIntentData(record, shown) }
    },
  },
  network_token: {
    label: 'network token',
    // Imported only here, because few expressions refer to network tokens.
    find: async (context, id) => (await import('../network-token/expression.js')).findUsed(context, id),
  },
  google_pay: {
    label: 'card of Google Pay',
    find: async (context, id) => (await import('../wallets/expression.js')).findGooglePay(context, id),
  },
  apple_pay: {
    label: 'card of Apple Pay',
    find: async (context, id) => (await import('../wallets/expression.js')).findApplePay(context, id),
  },
}
