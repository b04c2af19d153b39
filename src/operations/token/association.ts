/** Associations: links from a parent token to a child token. */
import type { Lenient } from '../../domain/omit-undefined.js'
import { type AssociationRecord, associationId } from '../../domain/records/records.js'
import { CofferError, conflict, invalid } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { listOutput, pageInput } from '../../framework/page.js'
import { requireRecord } from '../../framework/require-record.js'
import { type Infer, inputSchema } from '../../framework/schema.js'
import { filterConditions, listTokensWhere, recordToken, requireTransform } from './token-access.js'
import { checkFilters, createAttributes, tokenFilters, tokenId, tokenOutput } from './token-attributes.js'
import { findChildLinks, isLinked } from './token-links.js'
import { checkNewToken, createFrom } from './token-write.js'

const parent_id = { ...tokenId, description: 'The id of the parent token.' } as const
const child_id = { ...tokenId, description: 'The id of the child token.' } as const
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
  log: { operation: 'update', message: 'Token association created' },
  check: refuseItself,
  async run(context, input) {
    const { parent, child } = await requireBoth(context, input)
    requireTransform(context, 'token:read', parent)
    requireTransform(context, 'token:read', child)
    await associate(context, parent.id, child.id)
    for (const token of [parent, child]) recordToken(context, token)
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
  log: { operation: 'update', message: 'Token association deleted' },
  check: refuseItself,
  async run(context, input) {
    const { parent, child } = await requireBoth(context, input)
    // First, so that a caller who may not delete them does not learn whether they are linked.
    requireTransform(context, 'token:delete', parent)
    requireTransform(context, 'token:delete', child)
    const { tenant } = context.caller
    if (!(await isLinked(context.store, tenant, parent.id, child.id)))
      throw new CofferError('not_found', 'These tokens are not linked.')
    await context.store.remove('association', tenant, associationId(parent.id, child.id))
    for (const token of [parent, child]) recordToken(context, token)
    return undefined
  },
})

export const createChild = operation({
  name: 'token create-child',
  summary: 'Store a value as the child of a token.',
  permissions: ['token:create', 'token:read'],
  route: 'POST /tokens/{parent_id}/children',
  success: 201,
  input: inputSchema(['parent_id', 'type', 'data'], { parent_id, ...createAttributes }),
  output: tokenOutput,
  isExplainable: true,
  mayAnswerExisting: true,
  isRevealable: true,
  examples: [`echo '{"type":"token","data":"a note"}' | coffer token create-child card-1`],
  log: { operation: 'create', message: 'Token created' },
  check: checkNewToken,
  async run(context, { parent_id }, draft) {
    const parent = await requireRecord(context, 'token', parent_id)
    requireTransform(context, 'token:read', parent)
    const created = await createFrom(context, draft)
    const child = created instanceof Existing ? created.result : created
    // Linking requires token:read on both tokens, but not on one that the caller just created.
    if (created instanceof Existing) requireTransform(context, 'token:read', child)
    if (child.id === parent.id)
      throw invalid('data', 'is that of the parent; a token cannot be its own child')
    const isThere = await isLinked(context.store, context.caller.tenant, parent.id, child.id)
    if (!isThere) await associate(context, parent.id, child.id)
    return created
  },
})

export const listChildren = operation({
  name: 'token children',
  summary: 'List the children of a token, newest first.',
  permissions: ['token:read'],
  route: 'GET /tokens/{parent_id}/children',
  input: inputSchema(['parent_id'], { parent_id, ...tokenFilters, ...pageInput(100) }),
  output: listOutput(tokenOutput),
  isExplainable: true,
  isRevealable: true,
  examples: ['coffer token children customer-42', 'coffer token children customer-42 --type card'],
  log: { operation: 'read', message: 'Token retrieved' },
  check: checkFilters,
  runDetached: (session, { parent_id, ...filters }) =>
    listTokensWhere(session, filters, async (context) => {
      const parent = await requireRecord(context, 'token', parent_id)
      requireTransform(context, 'token:read', parent)
      const links = await findChildLinks(context.store, context.caller.tenant, parent.id)
      return [{ ids: links.map(({ child_id }) => child_id) }, ...(await filterConditions(context, filters))]
    }),
})

/** @throws CofferError `validation` for a link of a token to itself */
function refuseItself({ parent_id, child_id }: Lenient<Infer<typeof both>>): void {
  if (parent_id === child_id) throw invalid('child_id', 'must differ from the parent')
}

/** @throws CofferError `not_found` */
async function requireBoth(
  context: Context,
  { parent_id, child_id }: { parent_id: string; child_id: string },
) {
  const parent = await requireRecord(context, 'token', parent_id)
  return { parent, child: await requireRecord(context, 'token', child_id) }
}

/** @throws CofferError `conflict` if the link exists */
async function associate(context: Context, parentId: string, childId: string): Promise<void> {
  if (await isLinked(context.store, context.caller.tenant, parentId, childId))
    throw conflict('These tokens are already linked.')
  const record: AssociationRecord = {
    id: associationId(parentId, childId),
    parent_id: parentId,
    child_id: childId,
    created_by: context.caller.actor.id,
    created_at: context.date,
  }
  await context.store.insert('association', context.caller.tenant, record)
}
