import type { Permission } from '../../domain/access/permissions.js'
import { andThen } from '../../domain/awaitable.js'
import type { Lenient } from '../../domain/omit-undefined.js'
import { associationId, type TokenRecord } from '../../domain/records/records.js'
import { CofferError, conflict, invalid } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { type CheckTools, requires } from '../../framework/declaration.js'
import { readList } from '../../framework/list.js'
import { change, list, query } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { listOutput, pageInput } from '../../framework/page.js'
import { type Infer, inputSchema } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import { readAll } from '../../storage/store.js'
import { checkNewToken, checkTokenPatch } from './check-token.js'
import * as creation from './create-token.js'
import { detokenizeTokens } from './detokenize.js'
import { importTokens } from './import.js'
import { isLinked, removeDependents } from './lifetime.js'
import { showNetworkToken } from './network-token-ids.js'
import * as search from './search.js'
import { filterConditions, listGranted, logToken, logTokenUse, requireTransform } from './token-access.js'
import * as attributes from './token-attributes.js'
import { viewWritten } from './token-attributes.js'
import { checkFilters, tokenFilters } from './token-filters.js'
import { generateTokens, tokenize } from './tokenize.js'
import * as changes from './update-token.js'

const { readDeclaration, tokenId, tokenOutput, viewToken } = attributes

const createDeclaration = {
  http: { status: 201, mayAnswer: 'existing' },
  output: tokenOutput,
  isExplainable: true,
  plaintext: 'masked',
  log: attributes.CREATED,
  check: (input: Readonly<Record<string, unknown>>, tools: CheckTools) => checkNewToken(input, tools),
} as const

export const createToken = change({
  ...createDeclaration,
  name: 'token create',
  summary: 'Store a value and return its token.',
  details:
    'Put nothing sensitive into the id, because the id is displayed, logged and part of URLs.\n' +
    'Put nothing sensitive into metadata, because every caller who can read the token sees the metadata.',
  access: requires('token:create'),
  route: 'POST /tokens',
  input: inputSchema([], attributes.createAttributes),
  examples: [
    `echo '{"type":"card","data":{"number":"4242424242424242"}}' | coffer token create`,
    `echo 000707279 > ssn.txt && coffer token create --type social_security_number --data @ssn.txt --metadata customer=42 --expires-at 72h`,
    `echo '{"type":"token","data":{"name":"Ada"},"mask":{"name":"{{ data.name | slice: 0 }}…"}}' | coffer token create`,
  ],
  run: (context, _, draft) => creation.createToken(context, draft, viewWritten),
})

export const listTokens = list({
  ...readDeclaration,
  name: 'token list',
  summary: 'List tokens, newest first.',
  access: requires('token:read'),
  route: 'GET /tokens',
  input: inputSchema([], { ...tokenFilters, ...pageInput(100) }),
  output: listOutput(tokenOutput),
  examples: [
    'coffer token list',
    'coffer token list --type card --metadata customer=42 --size 50',
    `coffer token list --container '/pci/*'`,
  ],
  check: checkFilters,
  run: (session, input) =>
    readList(
      session,
      listGranted(session.caller, (context) => filterConditions(context, input)),
      input,
    ),
})

export const getToken = query({
  ...readDeclaration,
  name: 'token get',
  summary: 'Get a token by its id.',
  access: requires('token:read'),
  route: 'GET /tokens/{id}',
  input: inputSchema(['id'], { id: tokenId }),
  output: tokenOutput,
  examples: [
    'coffer token get card-1',
    'coffer token get card-1 --reveal --fields data',
    'coffer token get card-1 --reveal --fields data.number -o value',
  ],
  // This operation gets the most requests. For speed, it waits for no promise if the store belongs to one process.
  run: (context, input) =>
    andThen(requireRecord(context, 'token', input.id), (record) => {
      const transform = requireTransform(context, 'token:read', record)
      const logging = logTokenUse(context, record, undefined, transform)
      return andThen(logging, () => showNetworkToken(context, record, viewToken(record, transform)))
    }),
})

export const updateToken = change({
  name: 'token update',
  summary: 'Change a token: data, mask and metadata are merged, other given attributes are replaced.',
  details:
    'The body is a merge patch (RFC 7396). Only the attributes in the patch are changed. Null removes an attribute.\n' +
    'Containers, search indexes and the fingerprint expression are replaced as a whole.',
  access: requires('token:update'),
  route: 'PATCH /tokens/{id}',
  http: { body: { types: ['application/merge-patch+json'] } },
  input: inputSchema(['id'], { id: tokenId, ...attributes.updateAttributes }),
  output: tokenOutput,
  isExplainable: true,
  plaintext: 'masked',
  examples: [
    `coffer token update card-1 --metadata customer=43`,
    `echo '{"data":{"expiration_year":2032},"expires_at":null}' | coffer token update card-1`,
  ],
  log: attributes.UPDATED,
  check: checkTokenPatch,
  run: async (context, input, budget) =>
    changes.updateToken(context, await requireRecord(context, 'token', input.id), input, budget),
})

export const deleteToken = change({
  name: 'token delete',
  summary: 'Delete a token and its data permanently; its log stays.',
  access: requires('token:delete'),
  route: 'DELETE /tokens/{id}',
  input: inputSchema(['id'], { id: tokenId }),
  isExplainable: true,
  cli: { confirmation: 'This deletes the data of token' },
  examples: ['coffer token delete card-1 --yes'],
  log: { operation: 'delete', message: 'Token deleted' },
  async run(context, input) {
    const record = await requireRecord(context, 'token', input.id)
    requireTransform(context, 'token:delete', record)
    await removeDependents(context, record)
    await context.store.remove('token', context.caller.tenant, record.id)
    context.containerSets.release(record.containers)
    logToken(context, record)
    return undefined
  },
})

const parent_id = { ...tokenId, description: 'The id of the parent token.' } as const
const child_id = { ...tokenId, description: 'The id of the child token.' } as const
const both = inputSchema(['parent_id', 'child_id'], { parent_id, child_id })
const linkDeclaration = { input: both, isExplainable: true, check: refuseItself } as const

export const linkTokens = change({
  ...linkDeclaration,
  name: 'token link',
  summary: 'Make a token the child of another token.',
  details: 'A link has a direction; for both directions create two links.',
  access: requires('token:read'),
  route: 'POST /tokens/{parent_id}/children/{child_id}',
  examples: ['coffer token link customer-42 ada'],
  log: { operation: 'update', message: 'Token association created', derivesNoEvent: true },
  async run(context, input) {
    if (await areLinked(context, input, 'token:read')) throw conflict('These tokens are already linked.')
    await associate(context, input)
    return undefined
  },
})

export const unlinkTokens = change({
  ...linkDeclaration,
  name: 'token unlink',
  summary: 'Remove the link between a parent and a child; both tokens stay.',
  access: requires('token:delete'),
  route: 'DELETE /tokens/{parent_id}/children/{child_id}',
  examples: ['coffer token unlink customer-42 card-1'],
  log: { operation: 'update', message: 'Token association deleted', derivesNoEvent: true },
  async run(context, input) {
    if (!(await areLinked(context, input, 'token:delete')))
      throw new CofferError('not_found', 'These tokens are not linked.')
    const { store, caller } = context
    await store.remove('association', caller.tenant, associationId(input.parent_id, input.child_id))
    return undefined
  },
})

export const createChild = change({
  ...createDeclaration,
  name: 'token create-child',
  summary: 'Store a value as the child of a token.',
  access: requires('token:create', 'token:read'),
  route: 'POST /tokens/{parent_id}/children',
  input: inputSchema(['parent_id'], { parent_id, ...attributes.createAttributes }),
  examples: [`echo '{"type":"token","data":"a note"}' | coffer token create-child card-1`],
  async run(context, { parent_id }, draft) {
    const parent = await requireRecord(context, 'token', parent_id)
    requireTransform(context, 'token:read', parent)
    const created = await creation.createToken(context, draft, viewWritten)
    const child = created instanceof Existing ? created.result : created
    // Linking requires token:read on both tokens. A token that the caller has just created needs no check.
    if (created instanceof Existing) requireTransform(context, 'token:read', child)
    if (child.id === parent_id)
      throw invalid('data', 'equals the data of the parent, and a token cannot be its own child')
    if (!(await isLinked(context.store, context.caller.tenant, parent_id, child.id)))
      await associate(context, { parent_id, child_id: child.id })
    return created
  },
})

export const listChildren = list({
  ...readDeclaration,
  name: 'token children',
  summary: 'List the children of a token, newest first.',
  access: requires('token:read'),
  route: 'GET /tokens/{parent_id}/children',
  input: inputSchema(['parent_id'], { parent_id, ...tokenFilters, ...pageInput(100) }),
  output: listOutput(tokenOutput),
  examples: ['coffer token children customer-42', 'coffer token children customer-42 --type card'],
  check: checkFilters,
  run(session, { parent_id, ...filters }) {
    const ofParent = async (context: Context) => {
      requireTransform(context, 'token:read', await requireRecord(context, 'token', parent_id))
      const where = { field: 'parent', value: parent_id }
      const links = await readAll(context.store, 'association', context.caller.tenant, where)
      return [{ ids: links.map(({ child_id }) => child_id) }, ...(await filterConditions(context, filters))]
    }
    return readList(session, listGranted(session.caller, ofParent), filters)
  },
})

function refuseItself({ parent_id, child_id }: Lenient<Infer<typeof both>>): void {
  if (parent_id === child_id) throw invalid('child_id', 'must differ from the parent')
}

/**
 * Whether the tokens are linked. Logs the access to both tokens.
 * @throws CofferError `not_found`, or `forbidden` without `permission`, before the caller learns whether the tokens
 * are linked
 */
async function areLinked(
  context: Context,
  { parent_id, child_id }: Infer<typeof both>,
  permission: Permission,
) {
  const tokens: TokenRecord[] = []
  for (const id of [parent_id, child_id]) tokens.push(await requireRecord(context, 'token', id))
  for (const token of tokens) requireTransform(context, permission, token)
  for (const token of tokens) logToken(context, token)
  return isLinked(context.store, context.caller.tenant, parent_id, child_id)
}

async function associate({ store, caller, date }: Context, { parent_id, child_id }: Infer<typeof both>) {
  const made = { created_by: caller.actor.id, created_at: date }
  const id = associationId(parent_id, child_id)
  await store.insert('association', caller.tenant, { id, parent_id, child_id, ...made })
}

export const noun = {
  name: 'token',
  summary: 'Store values and get tokens for them',
  operations: [
    createToken,
    listTokens,
    search.findTokens,
    search.listTokensByCursor,
    getToken,
    updateToken,
    deleteToken,
    search.searchTokens,
    search.searchTokensByCursor,
    tokenize,
    detokenizeTokens,
    importTokens,
    linkTokens,
    unlinkTokens,
    createChild,
    listChildren,
    generateTokens,
  ],
}
