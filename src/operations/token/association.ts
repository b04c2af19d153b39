import type { Permission } from '../../domain/access/permissions.js'
import type { Lenient } from '../../domain/omit-undefined.js'
import { associationId, type TokenRecord } from '../../domain/records/records.js'
import { CofferError, conflict, invalid } from '../../errors.js'
import { readList } from '../../framework/list.js'
import { type Context, Existing, operation } from '../../framework/operation.js'
import { listOutput, pageInput } from '../../framework/page.js'
import { type Infer, inputSchema } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import { readAll } from '../../storage/store.js'
import { isLinked } from './lifetime.js'
import { filterConditions, listGranted, recordToken, requireTransform } from './token-access.js'
import * as attributes from './token-attributes.js'
import { checkNewToken, createFrom } from './token-write.js'

const parent_id = { ...attributes.tokenId, description: 'The id of the parent token.' } as const
const child_id = { ...attributes.tokenId, description: 'The id of the child token.' } as const
const both = inputSchema(['parent_id', 'child_id'], { parent_id, child_id })

export const linkTokens = operation({
  name: 'token link',
  summary: 'Make one token the child of another.',
  details: 'A link has a direction; for both directions create two links.',
  permissions: ['token:read'],
  route: 'POST /tokens/{parent_id}/children/{child_id}',
  input: both,
  isExplainable: true,
  examples: ['coffer token link customer-42 ada'],
  log: { operation: 'update', message: 'Token association created', isTold: true },
  check: refuseItself,
  async run(context, input) {
    const tokens = await requireBoth(context, input, 'token:read')
    if (await isLinked(context.store, context.caller.tenant, input.parent_id, input.child_id))
      throw conflict('These tokens are already linked.')
    await associate(context, input)
    for (const token of tokens) recordToken(context, token)
    return undefined
  },
})

export const unlinkTokens = operation({
  name: 'token unlink',
  summary: 'Remove the link between a parent and a child; both tokens stay.',
  permissions: ['token:delete'],
  route: 'DELETE /tokens/{parent_id}/children/{child_id}',
  input: both,
  isExplainable: true,
  examples: ['coffer token unlink customer-42 card-1'],
  log: { operation: 'update', message: 'Token association deleted', isTold: true },
  check: refuseItself,
  async run(context, input) {
    // First, so that a caller who may not delete them does not learn whether they are linked.
    const tokens = await requireBoth(context, input, 'token:delete')
    const { store, caller } = context
    if (!(await isLinked(store, caller.tenant, input.parent_id, input.child_id)))
      throw new CofferError('not_found', 'These tokens are not linked.')
    await store.remove('association', caller.tenant, associationId(input.parent_id, input.child_id))
    for (const token of tokens) recordToken(context, token)
    return undefined
  },
})

export const createChild = operation({
  name: 'token create-child',
  summary: 'Store a value as the child of a token.',
  permissions: ['token:create', 'token:read'],
  route: 'POST /tokens/{parent_id}/children',
  success: 201,
  input: inputSchema(['parent_id'], { parent_id, ...attributes.createAttributes }),
  output: attributes.tokenOutput,
  isExplainable: true,
  mayAnswerExisting: true,
  isRevealable: true,
  examples: [`echo '{"type":"token","data":"a note"}' | coffer token create-child card-1`],
  log: attributes.CREATED,
  check: checkNewToken,
  async run(context, { parent_id }, draft) {
    const parent = await requireRecord(context, 'token', parent_id)
    requireTransform(context, 'token:read', parent)
    const created = await createFrom(context, draft)
    const child = created instanceof Existing ? created.result : created
    // Linking requires token:read on both tokens, but not on one that the caller just created.
    if (created instanceof Existing) requireTransform(context, 'token:read', child)
    if (child.id === parent_id)
      throw invalid('data', 'is that of the parent; a token cannot be its own child')
    if (!(await isLinked(context.store, context.caller.tenant, parent_id, child.id)))
      await associate(context, { parent_id, child_id: child.id })
    return created
  },
})

export const listChildren = operation({
  ...attributes.showingTokens,
  name: 'token children',
  summary: 'List the children of a token, newest first.',
  permissions: ['token:read'],
  route: 'GET /tokens/{parent_id}/children',
  input: inputSchema(['parent_id'], { parent_id, ...attributes.tokenFilters, ...pageInput(100) }),
  output: listOutput(attributes.tokenOutput),
  examples: ['coffer token children customer-42', 'coffer token children customer-42 --type card'],
  check: attributes.checkFilters,
  runDetached(session, { parent_id, ...filters }) {
    const ofParent = async (context: Context) => {
      requireTransform(context, 'token:read', await requireRecord(context, 'token', parent_id))
      const where = { field: 'parent', value: parent_id }
      const links = await readAll(context.store, 'association', context.caller.tenant, where)
      return [{ ids: links.map(({ child_id }) => child_id) }, ...(await filterConditions(context, filters))]
    }
    return readList(session, listGranted(session.caller, ofParent), filters)
  },
})

/** @throws CofferError `validation` for a link of a token to itself */
function refuseItself({ parent_id, child_id }: Lenient<Infer<typeof both>>): void {
  if (parent_id === child_id) throw invalid('child_id', 'must differ from the parent')
}

/** @throws CofferError `not_found`, `forbidden` without `permission` on both tokens */
async function requireBoth(context: Context, input: Infer<typeof both>, permission: Permission) {
  const tokens: TokenRecord[] = []
  for (const id of [input.parent_id, input.child_id]) tokens.push(await requireRecord(context, 'token', id))
  for (const token of tokens) requireTransform(context, permission, token)
  return tokens
}

async function associate({ store, caller, date }: Context, { parent_id, child_id }: Infer<typeof both>) {
  const made = { created_by: caller.actor.id, created_at: date }
  const id = associationId(parent_id, child_id)
  await store.insert('association', caller.tenant, { id, parent_id, child_id, ...made })
}
