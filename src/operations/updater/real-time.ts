import { omitUndefined } from '../../domain/omit-undefined.js'
import { RESULT_CODES } from '../../domain/updater/result-codes.js'
import { requires } from '../../framework/declaration.js'
import { change } from '../../framework/operation.js'
import { enumOf, object } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { tokenId, tokenOutput } from '../token/token-attributes.js'
import { updateCard, updaterCaller } from './update-card.js'

export const updateNow = change({
  name: 'updater real-time',
  summary: 'Ask whether a card was replaced, and get the token of the new card.',
  details:
    'The number of the card decides the answer: coffer help test-cards. The old token stays. Only batch jobs ask networks\n' +
    'other than Visa and Mastercard.',
  access: requires('account-updater:real-time:invoke'),
  route: 'POST /account-updater/real-time',
  plaintext: 'masked',
  log: { operation: 'use', message: 'Token used' },
  input: inputSchema(['token_id'], {
    token_id: { ...tokenId, description: 'A token of the type card.' },
    expiration_month: {
      type: 'integer',
      minimum: 1,
      maximum: 12,
      description: 'Used instead of the month of the token.',
    },
    expiration_year: {
      type: 'integer',
      minimum: 1000,
      maximum: 9999,
      description: 'Used instead of the year of the token.',
    },
    deduplicate_token: {
      type: 'boolean',
      description:
        'Whether an existing token of the new card is updated and returned. Default: the setting deduplicate_tokens of the tenant.',
    },
    merchant_id: { type: 'string', description: 'Accepted, without effect.' },
  }),
  output: object({ 'new_token?': tokenOutput, result_code: enumOf(...RESULT_CODES) }),
  cli: { positionals: ['token_id'], columns: ['result_code', 'new_token'] },
  examples: [
    `coffer updater real-time "$(echo '{"type":"card","data":{"number":"4111111111111111","expiration_month":12,"expiration_year":2023}}' | coffer token create -o id)"`,
  ],
  async run(context, { token_id, expiration_month, expiration_year, deduplicate_token }) {
    const request = { token_id, expiration_month, expiration_year, deduplicates: deduplicate_token }
    const { code, token } = await updateCard(context.as(updaterCaller(context.caller)), {
      ...request,
      isBatch: false,
    })
    return { ...omitUndefined({ new_token: token }), result_code: code }
  },
})
