/**
 * Enrichment adds facts from a bank or a card network to stored data. Coffer sends no request to a bank or network, and
 * answers from published test data.
 */
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { invalid } from '../../errors.js'
import { anyKey, requires } from '../../framework/declaration.js'
import { query } from '../../framework/operation.js'
import { component, enumOf, object, text } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { logTokenUse, requireTransform } from '../token/token-access.js'
import { tokenId } from '../token/token-attributes.js'

const BIN = /^\d{6,8}$/
const ROUTING_NUMBER = /^\d{9}$/

const verifyBank = query({
  name: 'enrich bank',
  summary: 'Verify a bank account.',
  details:
    'Coffer sends no request to a bank, and knows only the published test accounts. Account 00001 with routing number\n' +
    '021000021 is enabled, and account 00000 with routing number 021000020 is disabled. Each other account is inconclusive.',
  access: requires('token:use'),
  route: 'POST /enrichments/bank-account-verify',
  log: { operation: 'use', message: 'Token used' },
  input: inputSchema(['token_id'], {
    token_id: { ...tokenId, description: 'A token of the type bank or us_bank_account_number.' },
    country_code: {
      type: 'string',
      description: 'The country of the account. Only US, the default, is known.',
    },
    routing_number: {
      type: 'string',
      description: 'The routing number: required for the type us_bank_account_number, and for no other type.',
    },
  }),
  output: component('BankVerification', ['status'], {
    status: enumOf('enabled', 'disabled', 'inconclusive'),
  }),
  cli: { positionals: ['token_id'] },
  examples: [
    `coffer enrich bank "$(echo '{"type":"bank","data":{"routing_number":"021000021","account_number":"00001"}}' | coffer token create -o id)"`,
    'coffer enrich bank "$(echo 00001 | coffer token create --type us_bank_account_number --data - -o id)" --routing-number 021000021',
  ],
  check: ({ country_code, routing_number }) => {
    if (country_code !== undefined && country_code !== 'US') throw invalid('country_code', 'must be US')
    if (routing_number !== undefined && !ROUTING_NUMBER.test(routing_number))
      throw invalid('routing_number', 'must be 9 digits')
  },
  async run(context, { token_id, routing_number }) {
    const token = await context.store.get('token', context.caller.tenant, token_id)
    if (token === undefined) throw invalid('token_id', 'refers to a token that does not exist')
    requireTransform(context, 'token:use', token)
    const account = readAccount(token, routing_number)
    await logTokenUse(context, token)
    // Imported only here, because each server loads this file at its start.
    const { verifyAccount } = await import('../../domain/enrichment/published.js')
    return { status: verifyAccount(account.routing_number, account.account_number) }
  },
})

interface Account {
  routing_number: string
  account_number: string
}

/** @throws CofferError `validation` */
function readAccount({ type, data }: TokenRecord, routing_number: string | undefined): Account {
  if (type === 'bank') {
    if (routing_number === undefined) return data as Account
    throw invalid('routing_number', 'must not be given for a token of the type bank, which contains it')
  }
  if (type !== 'us_bank_account_number')
    throw invalid('token_id', 'must be a token of the type bank or us_bank_account_number')
  if (routing_number !== undefined) return { routing_number, account_number: data as string }
  throw invalid('routing_number', 'is required for a token of the type us_bank_account_number')
}

const describeCard = query({
  name: 'enrich card',
  summary: 'Describe the cards whose numbers begin with these digits.',
  details:
    'The digits decide the brand. Coffer has no data about issuers. If the setting enrichments.fake is true, the answer also\n' +
    'contains the funding and the country of published test ranges.',
  access: anyKey,
  route: 'GET /enrichments/card-details',
  input: inputSchema(['bin'], {
    bin: {
      type: 'string',
      description: 'The first 6 to 8 digits of the number of a card.',
    },
  }),
  output: component('CardDetailsOfBin', ['brand', 'funding'], {
    'brand?': text,
    'funding?': text,
    'issuer?': object({ country: text }),
  }),
  cli: { positionals: ['bin'] },
  examples: ['coffer enrich card 424242'],
  check: ({ bin }) => {
    if (bin !== undefined && !BIN.test(bin)) throw invalid('bin', 'must be 6 to 8 digits')
  },
  async run(context, { bin }) {
    const isFake = await context.setting('enrichments.fake')
    const { describeBin } = await import('../../domain/enrichment/published.js')
    return omitUndefined(describeBin(bin, { isFake }))
  },
})

export const noun = {
  name: 'enrich',
  summary: 'Verify bank accounts and describe cards, from published test data',
  operations: [verifyBank, describeCard],
}
