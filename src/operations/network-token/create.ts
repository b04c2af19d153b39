import { formatDate, parseDuration } from '../../domain/dates.js'
import { deriveExpiry, deriveNumber, derivePar } from '../../domain/network-token/number.js'
import type { NetworkTokenRecord, TokenRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'
import { change } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { inputSchema } from '../../framework/schema.js'
import { rewriteToken } from '../token/rewrite-token.js'
import { createAttributes, type NetworkTokenView, viewNetworkToken } from './attributes.js'
import { type Card, type CardSource, cardRefused, checkRequest, readHolder } from './card-source.js'
import { KIND, networkTokens, READ } from './records.js'

export const createNetworkToken = change({
  ...networkTokens.createDeclaration,
  summary: 'Get a network token for a card: a number of the network instead of the number of the card.',
  details:
    'Give the card as data, or give a token or token intent that has a card. The number of the card decides whether the\n' +
    'network refuses the card: coffer help test-cards. If the card already has a network token, the answer is that network\n' +
    'token.',
  http: { status: 201, mayAnswer: 'existing', mayRefuseCard: true },
  plaintext: 'refused',
  input: inputSchema([], createAttributes),
  cli: { positionals: [] },
  examples: [
    `echo '{"data":{"number":"4111111111111111","expiration_month":12,"expiration_year":2031}}' | coffer network-token create`,
    `coffer network-token create --token-id card-1`,
  ],
  check: (request) => checkRequest(request),
  async run(context, request, given) {
    const { card, holder }: CardSource =
      given === undefined ? await readHolder(context, request) : { card: given }
    // Imported only here, because this module contains the whole table of test cards.
    const { askNetwork } = await import('../../domain/network-token/networks.js')
    const refusal = askNetwork(card.number)
    if (refusal !== undefined) throw cardRefused(refusal)
    const fingerprint = await digestOf(context, 'card', card.number)
    const existing = await findOfCard(context, fingerprint)
    const record = existing ?? (await add(context, card, fingerprint, holder))
    if (holder !== undefined) await linkHolder(context, holder, record.id)
    if (existing === undefined) return show(record, false)
    context.audit.record(KIND, record.id, READ)
    return new Existing(show(record, true))
  },
})

function show(record: NetworkTokenRecord, deduplicated: boolean): NetworkTokenView {
  return { ...viewNetworkToken(record, 'mask'), _extras: { deduplicated } }
}

/** Returns a keyed digest of the number of a card. Each `purpose` gives a different digest. */
function digestOf({ store, caller }: Context, purpose: string, number: string): Promise<string> {
  return store.fingerprint(caller.tenant, JSON.stringify(['network_token', purpose, number]))
}

async function findOfCard({ store, caller }: Context, fingerprint: string) {
  const where = { field: 'card', value: fingerprint }
  const { records } = await store.find(KIND, caller.tenant, { where, page: 1, size: 10 })
  // The index has short digests, so the whole digest is compared too.
  return records.find((record) => record.fingerprint === fingerprint)
}

async function add(
  context: Context,
  { number, expiration_month, expiration_year }: Card,
  fingerprint: string,
  holder: TokenRecord | undefined,
): Promise<NetworkTokenRecord> {
  return networkTokens.add(context, {
    number: deriveNumber(number, await digestOf(context, 'number', number)),
    ...deriveExpiry({ expiration_year }),
    card: { last4: number.slice(-4), expiration_month, expiration_year },
    par: derivePar(await digestOf(context, 'par', number)),
    status: 'active',
    fingerprint,
    token_id: holder?.is_intent ? undefined : holder?.id,
    token_intent_id: holder?.is_intent ? holder.id : undefined,
    ...(await endOf(context)),
  })
}

/** The setting `network_tokens.inactive_after` decides when the network token becomes inactive. */
async function endOf(context: Context) {
  const after = parseDuration(await context.setting('network_tokens.inactive_after'))
  if (after === undefined) return { state: undefined, due_at: undefined }
  return { state: 'waiting', due_at: formatDate(context.now + after) } as const
}

async function linkHolder(context: Context, holder: TokenRecord, id: string): Promise<void> {
  if (holder.network_token_id === id) return
  await rewriteToken(context, context.caller.tenant, { ...holder, network_token_id: id })
}
