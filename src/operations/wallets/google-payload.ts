/** Reads the payloads of Google Pay, and checks the cards in plain payloads. */
import { addError, refuseErrors } from '../../domain/property-errors.js'
import type { WalletAuthentication } from '../../domain/records/wallet-record.js'
import type { TokenDraft } from '../../domain/token/token.js'
import { type GooglePayData, readGooglePayload, SIGNED_MESSAGE } from '../../domain/wallets/google-payload.js'
import { CofferError, type PropertyErrors } from '../../errors.js'
import type { CheckTools } from '../../framework/declaration.js'
import { prepareCard } from './wallet-card.js'

/** Without `authentication`, the card is a plastic card. */
export interface GoogleCard {
  draft: TokenDraft
  authentication?: WalletAuthentication | undefined
}

/** Returns the card of a plain payload. An encrypted payload is not decrypted. @throws CofferError `validation` */
export async function readGoogleCard(
  data: GooglePayData,
  tools: CheckTools,
): Promise<GoogleCard | 'well-formed' | 'malformed'> {
  const payload = readGooglePayload(data)
  if (payload.kind === 'encrypted') return payload.isWellFormed ? 'well-formed' : 'malformed'
  const { card, authentication } = payload
  const errors: PropertyErrors = {}
  for (const [name, value] of Object.entries(card))
    if (value === undefined || value === null) addError(errors, SIGNED_MESSAGE, `needs ${name}`)
  refuseErrors(errors)
  return { draft: await prepareOrRefuse(card, tools), authentication }
}

/** Reports errors of the card under the path of the signed message, because the card is in the text of this message. */
async function prepareOrRefuse(card: object, tools: CheckTools) {
  try {
    return await prepareCard(card, tools)
  } catch (error) {
    if (!(error instanceof CofferError) || error.errors === undefined) throw error
    const errors: PropertyErrors = {}
    for (const [path, messages] of Object.entries(error.errors))
      for (const message of messages)
        addError(errors, SIGNED_MESSAGE, `${path.replace(/^data\./, '')} ${message}`)
    refuseErrors(errors)
    throw error
  }
}
