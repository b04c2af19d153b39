/** Token intents come from the operation `intent create`, and from payloads of Google Pay. */
import { formatDate } from '../../domain/dates.js'
import type { IntentRecord } from '../../domain/records/records.js'
import type { TspDetails } from '../../domain/records/token-record.js'
import type { TokenDraft } from '../../domain/token/token.js'
import type { Context } from '../../framework/context.js'
import { manage } from '../manage.js'
import { enrichCard } from '../token/card-details.js'
import { startCode } from '../token/code-timer.js'
import { showNetworkToken } from '../token/network-token-ids.js'
import { intentOutput, viewIntent } from '../token/token-attributes.js'

const HOUR_MS = 60 * 60 * 1000

export const intents = manage({
  name: 'intent',
  kind: 'token_intent',
  path: '/token-intents',
  permission: 'token-intent',
  id: { type: 'string', description: 'The id of the token intent.' },
  output: intentOutput,
  view: (context, record) => showNetworkToken(context, record, viewIntent(record)),
})

type Draft = Pick<TokenDraft, 'record' | 'fingerprintText'> & { code?: TokenDraft['code'] | undefined }

/** `tsp_details`: facts from a wallet about the card of the intent. */
export async function addIntent(
  context: Context,
  { record, fingerprintText, code }: Draft,
  tsp_details?: TspDetails,
): Promise<IntentRecord> {
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
    tsp_details,
  }
  return intents.add(context, own, { id, expires })
}
