/** Network tokens are numbers that card networks issue for cards. Coffer simulates the networks. */
import { requires, requiresAny } from '../../framework/declaration.js'
import { query } from '../../framework/operation.js'
import { object, text } from '../../framework/output.js'
import { networkTokenOutput, transformFor, viewNetworkToken } from './attributes.js'
import { createNetworkToken } from './create.js'
import { CREATE_EXAMPLE } from './examples.js'
import { KIND, networkTokens, READ } from './records.js'
import { createCryptogram, resumeNetworkToken, suspendNetworkToken } from './states.js'

export const getNetworkToken = query({
  name: 'network-token get',
  summary: 'Get the network token with this id.',
  access: requiresAny('network-token:read', 'network-token:reveal'),
  route: 'GET /network-tokens/{id}',
  plaintext: 'masked',
  log: READ,
  input: networkTokens.byId,
  output: networkTokenOutput,
  examples: [
    `coffer network-token get ${CREATE_EXAMPLE}`,
    `coffer network-token get ${CREATE_EXAMPLE} --reveal --fields data`,
  ],
  async run(context, { id }) {
    const record = await networkTokens.require(context, id)
    const transform = transformFor(context.caller)
    context.audit.record(KIND, id, READ, transform)
    return viewNetworkToken(record, transform)
  },
})

const image = object({ url: text, description: text, height: text, width: text })

const getAccount = query({
  name: 'network-token account',
  summary: 'Get the pictures of the card from its issuer. Coffer has no pictures, so the answer is empty.',
  access: requires('network-token:read'),
  route: 'GET /network-tokens/{id}/account',
  log: READ,
  input: networkTokens.byId,
  output: object({
    'card_art?': object({ background_color: text, 'logo?': image, 'card_image?': image }),
  }),
  examples: [`coffer network-token account ${CREATE_EXAMPLE}`],
  async run(context, { id }) {
    await networkTokens.require(context, id)
    context.audit.record(KIND, id)
    return {}
  },
})

const deleteNetworkToken = networkTokens.delete({
  summary: 'Delete a network token permanently; its log stays.',
  examples: [`coffer network-token delete ${CREATE_EXAMPLE} --yes`],
  confirmation: 'This deletes the network token',
})

export const noun = {
  name: 'network-token',
  summary: 'Get network tokens for cards, from published test data',
  operations: [
    createNetworkToken,
    getNetworkToken,
    createCryptogram,
    suspendNetworkToken,
    resumeNetworkToken,
    getAccount,
    deleteNetworkToken,
  ],
}
