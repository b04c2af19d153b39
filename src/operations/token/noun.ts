import { readList } from '../../framework/list.js'
import { type Context, operation } from '../../framework/operation.js'
import { listOutput, pageInput } from '../../framework/page.js'
import { inputSchema } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import * as association from './association.js'
import { detokenizeTokens } from './detokenize.js'
import { importTokens } from './import.js'
import { removeLinks, settleCreation } from './lifetime.js'
import * as search from './search.js'
import { filterConditions, listGranted, recordAccess, recordToken, requireTransform } from './token-access.js'
import * as attributes from './token-attributes.js'
import { checkNewToken, checkTokenPatch, createFrom, updateFrom } from './token-write.js'
import { generateTokens, tokenize } from './tokenize.js'

const { showingTokens, tokenId, tokenOutput, viewToken } = attributes

export const createToken = operation({
  name: 'token create',
  summary: 'Store a value and return its token.',
  details:
    'Put nothing sensitive into the id: it is displayed, logged and part of URLs.\n' +
    'Put nothing sensitive into metadata: every caller who may read the token sees it.',
  permissions: ['token:create'],
  route: 'POST /tokens',
  success: 201,
  input: inputSchema([], attributes.createAttributes),
  output: tokenOutput,
  isExplainable: true,
  mayAnswerExisting: true,
  isRevealable: true,
  examples: [
    `echo '{"type":"card","data":{"number":"4242424242424242"}}' | coffer token create`,
    `echo 000707279 > ssn.txt && coffer token create --type social_security_number --data @ssn.txt --metadata customer=42 --expires-at 72h`,
    `echo '{"type":"token","data":{"name":"Ada"},"mask":{"name":"{{ data.name | slice: 0 }}…"}}' | coffer token create`,
  ],
  log: attributes.CREATED,
  check: checkNewToken,
  run: (context, _, draft) => createFrom(context, draft),
})

export const listTokens = operation({
  ...showingTokens,
  name: 'token list',
  summary: 'List tokens, newest first.',
  permissions: ['token:read'],
  route: 'GET /tokens',
  input: inputSchema([], { ...attributes.tokenFilters, ...pageInput(100) }),
  output: listOutput(tokenOutput),
  examples: [
    'coffer token list',
    'coffer token list --type card --metadata customer=42 --size 50',
    `coffer token list --container '/pci/*'`,
  ],
  check: attributes.checkFilters,
  runDetached: (session, input) => {
    const toConditions = (context: Context) => filterConditions(context, input)
    return readList(session, listGranted(session.caller, toConditions), input)
  },
})

export const getToken = operation({
  ...showingTokens,
  name: 'token get',
  summary: 'Get a token by its id.',
  permissions: ['token:read'],
  route: 'GET /tokens/{id}',
  input: inputSchema(['id'], { id: tokenId }),
  output: tokenOutput,
  examples: [
    'coffer token get card-1',
    'coffer token get card-1 --reveal --fields data',
    'coffer token get card-1 --reveal --fields data.number -o value',
  ],
  async run(context, input) {
    const record = await requireRecord(context, 'token', input.id)
    const transform = requireTransform(context, 'token:read', record)
    await recordAccess(context, record, undefined, transform)
    return viewToken(record, transform, context.caller)
  },
})

export const updateToken = operation({
  name: 'token update',
  summary: 'Change a token: data, mask and metadata are merged, the rest is replaced.',
  details:
    'A merge patch (RFC 7386): attributes in the patch are changed, null removes one, all others stay.\n' +
    'Containers, search indexes and the fingerprint expression are replaced as a whole.',
  permissions: ['token:update'],
  route: 'PATCH /tokens/{id}',
  contentType: 'application/merge-patch+json',
  input: inputSchema(['id'], { id: tokenId, ...attributes.updateAttributes }),
  output: tokenOutput,
  isExplainable: true,
  isRevealable: true,
  examples: [
    `coffer token update card-1 --metadata customer=43`,
    `echo '{"data":{"expiration_year":2032},"expires_at":null}' | coffer token update card-1`,
  ],
  log: attributes.UPDATED,
  check: checkTokenPatch,
  run: async (context, input, budget) =>
    updateFrom(context, await requireRecord(context, 'token', input.id), input, budget),
})

export const deleteToken = operation({
  name: 'token delete',
  summary: 'Delete a token and its data permanently; its log stays.',
  permissions: ['token:delete'],
  route: 'DELETE /tokens/{id}',
  input: inputSchema(['id'], { id: tokenId }),
  isExplainable: true,
  examples: ['coffer token delete card-1 --yes'],
  destroys: 'This deletes the data of token',
  log: { operation: 'delete', message: 'Token deleted' },
  async run(context, input) {
    const record = await requireRecord(context, 'token', input.id)
    requireTransform(context, 'token:delete', record)
    const { store, caller } = context
    await Promise.all([settleCreation(context, record, 'gone'), removeLinks(store, caller.tenant, record.id)])
    await store.remove('token', caller.tenant, record.id)
    recordToken(context, record)
    return undefined
  },
})

export const noun = {
  name: 'token',
  summary: 'Store values and get tokens for them',
  operations: [
    createToken,
    listTokens,
    search.listTokensByCursor,
    getToken,
    updateToken,
    deleteToken,
    search.searchTokens,
    search.searchTokensByCursor,
    tokenize,
    detokenizeTokens,
    importTokens,
    association.linkTokens,
    association.unlinkTokens,
    association.createChild,
    association.listChildren,
    generateTokens,
  ],
}
