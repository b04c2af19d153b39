/** A token intent stores data for a short time, before the data becomes a token. No answer contains the data. */
import { change } from '../../framework/operation.js'
import { inputSchema } from '../../framework/schema.js'
import { prepareGiven } from '../token/check-token.js'
import { stopTimer } from '../token/code-timer.js'
import { openDraft } from '../token/encrypted-token.js'
import { encrypted, valueAttributes, viewIntent } from '../token/token-attributes.js'
import { addIntent, intents } from './intents.js'

const createIntent = change({
  ...intents.createDeclaration,
  summary: 'Hold a value for a short time; `coffer token create --token-intent-id` makes a token of it.',
  details:
    'No answer shows the data. To use it in an expression: {{ token_intent: id | json: "$.data" }}. The data is deleted\n' +
    'with its token intent, after one day. The setting token_intents.ttl changes this time. The cvc of a card is deleted after\n' +
    'one hour. The setting cards.cvc_retention changes this time.',
  input: inputSchema(['type'], {
    ...valueAttributes,
    data: { ...valueAttributes.data, requiredUnless: ['encrypted'] },
    encrypted,
  }),
  examples: [
    `echo '{"type":"card","data":{"number":"4242424242424242","cvc":"123"}}' | coffer intent create`,
  ],
  // Other attributes get the defaults of the token type.
  check: ({ type, data, encrypted }, tools) => prepareGiven({ type, data, encrypted }, tools),
  async run(context, _, wanted) {
    const { record, fingerprintText, code } = 'jwe' in wanted ? await openDraft(context, wanted) : wanted
    return viewIntent(await addIntent(context, { record, fingerprintText, code }))
  },
})

export const noun = {
  name: 'intent',
  summary: 'Hold values before they become tokens',
  operations: [
    createIntent,
    intents.get('coffer intent get "$(echo hello | coffer intent create --type token --data - -o id)"'),
    intents.delete({
      summary: 'Delete a token intent and its data permanently; its log stays.',
      examples: [
        'coffer intent delete "$(echo hello | coffer intent create --type token --data - -o id)" --yes',
      ],
      confirmation: 'This deletes the data of token intent',
      before: ({ store, caller }, { code }) => stopTimer(store, caller.tenant, code),
    }),
  ],
}
