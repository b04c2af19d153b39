import type { Wallet, WalletMerchantRecord } from '../../domain/records/wallet-record.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { component, date, text, uuid } from '../../framework/output.js'
import { inputSchema, textOf } from '../../framework/schema.js'
import { removeAll } from '../../framework/unit.js'
import { WALLET_NAMES } from './wallet-card.js'

const MAX_IDENTIFIER = 255

const merchantOutput = component('WalletMerchant', ['id', 'merchant_identifier', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  merchant_identifier: text,
  created_by: uuid,
  created_at: date,
})

const merchantId = { type: 'string', description: 'The id of the merchant.' } as const

export function declareMerchants<const W extends Wallet>(wallet: W) {
  const title = WALLET_NAMES[wallet]
  const noun = `${wallet}-pay merchant` as const
  const path = `/${wallet}-pay/merchant-registration` as const
  const entity = `${wallet}_pay_merchant` as const
  const access = requires(`${wallet}-pay:manage`)
  const created = `"$(coffer ${noun} create --merchant-identifier merchant.com.example -o id)"`
  const log = <const O extends 'create' | 'read' | 'delete'>(operation: O, done: string) => ({
    operation,
    message: `${title} merchant ${done}`,
  })
  const byId = inputSchema(['id'], { id: merchantId })
  return [
    change({
      name: `${noun} create`,
      summary: `Register a merchant of ${title}.`,
      access,
      route: `POST ${path}`,
      http: { status: 201 },
      log: log('create', 'registered'),
      input: inputSchema(['merchant_identifier'], {
        merchant_identifier: textOf(MAX_IDENTIFIER, `The identifier of the merchant at ${title}.`),
      }),
      output: merchantOutput,
      examples: [`coffer ${noun} create --merchant-identifier merchant.com.example`],
      async run(context, { merchant_identifier }) {
        const { store, caller } = context
        const record: WalletMerchantRecord = {
          id: context.createUuid(),
          tenant_id: (await context.tenant()).id,
          wallet,
          merchant_identifier,
          created_by: caller.actor.id,
          created_at: context.date,
        }
        await store.insert('wallet_merchant', caller.tenant, record, { fresh: true })
        context.audit.record(entity, record.id)
        return viewMerchant(record)
      },
    }),
    query({
      name: `${noun} get`,
      summary: 'Get the merchant with this id.',
      access,
      route: `GET ${path}/{id}`,
      log: log('read', 'retrieved'),
      input: byId,
      output: merchantOutput,
      examples: [`coffer ${noun} get ${created}`],
      async run(context, { id }) {
        const record = await requireMerchant(context, wallet, id)
        context.audit.record(entity, id)
        return viewMerchant(record)
      },
    }),
    change({
      name: `${noun} delete`,
      summary: 'Delete a merchant and its certificates permanently.',
      access,
      route: `DELETE ${path}/{id}`,
      log: log('delete', 'deleted'),
      input: byId,
      cli: { confirmation: `This deletes the certificates of merchant` },
      examples: [`coffer ${noun} delete ${created} --yes`],
      async run(context, { id }) {
        await requireMerchant(context, wallet, id)
        await removeAll(context, 'wallet_certificate', { field: 'merchant', value: id })
        await context.store.remove('wallet_merchant', context.caller.tenant, id)
        context.audit.record(entity, id)
        return undefined
      },
    }),
  ] as const
}

function viewMerchant({ wallet: _, ...rest }: WalletMerchantRecord) {
  return rest
}

/** @throws CofferError `not_found` if the wallet has no merchant with this id */
export async function requireMerchant(
  { store, caller }: Context,
  wallet: Wallet,
  id: string,
): Promise<WalletMerchantRecord> {
  const record = await store.get('wallet_merchant', caller.tenant, id)
  if (record?.wallet === wallet) return record
  throw new CofferError('not_found', `There is no merchant of ${WALLET_NAMES[wallet]} with this id.`)
}
