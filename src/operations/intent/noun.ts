/** Token intents: data that waits for a short time to become a token. Nobody can read this data. */
import { formatDate } from '../../domain/dates.js'
import { change } from '../../framework/operation.js'
import { inputSchema } from '../../framework/schema.js'
import { manage } from '../manage.js'
import { enrichCard } from '../token/card-details.js'
import { prepareGiven } from '../token/check-token.js'
import { startCode, stopTimer } from '../token/code-timer.js'
import { openDraft } from '../token/encrypted-token.js'
import { showNetworkToken } from '../token/network-token-ids.js'
import { encrypted, intentOutput, valueAttributes, viewIntent } from '../token/token-attributes.js'

const HOUR_MS = 60 * 60 * 1000

const intents = manage({
  name: 'intent',
  kind: 'token_intent',
  path: '/token-intents',
  permission: 'token-intent',
  id: { type: 'string', description: 'The id of the token intent.' },
  output: intentOutput,
  view: (context, record) => showNetworkToken(context, record, viewIntent(record)),
})

const createIntent = change({
  ...intents.createDeclaration,
  summary: 'Hold a value for a short time; coffer token create --token-intent-id makes a token of it.',
  details:
    'No answer shows the data. To use it in an expression: {{ token_intent: id | json: "$.data" }}. It is deleted with its\n' +
    'token intent, which expires after a day, or as the setting token_intents.ttl says. The cvc of a card is deleted after\n' +
    'an hour, or as the setting cards.cvc_retention says.',
  input: inputSchema(['type'], {
    ...valueAttributes,
    data: { ...valueAttributes.data, requiredUnless: ['encrypted'] },
    encrypted,
  }),
  examples: [
    `echo '{"type":"card","data":{"number":"4242424242424242","cvc":"123"}}' | coffer intent create`,
  ],
  // An intent is stored as a token. Its attributes that are not in the input have the defaults of the token
  // type.
  check: ({ type, data, encrypted }, tools) => prepareGiven({ type, data, encrypted }, tools),
  async run(context, _, wanted) {
    const { record, fingerprintText, code } = 'jwe' in wanted ? await openDraft(context, wanted) : wanted
    const { store, caller, now } = context
    const id = context.createUuid()
    const expires = now + Number.parseInt(await context.setting('token_intents.ttl'), 10) * HOUR_MS
    const fingerprint = await store.fingerprint(caller.tenant, fingerprintText)
    const kept = { ...(record as Required<typeof record>), fingerprint, is_intent: true } as const
    const own = {
      ...kept,
      expires_at: formatDate(expires),
      network_token_id: undefined,
      card_details: await enrichCard(context, record),
      code: code && (await startCode(context, { holder: 'token_intent', holder_id: id }, code)),
    }
    return viewIntent(await intents.add(context, own, { id, expires }))
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
