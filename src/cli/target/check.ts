import { CofferError, noRevealError, usage } from '../../errors.js'
import { isControl } from '../../framework/declaration.js'
import { mayRunOffline } from '../../framework/operation.js'
import { loadOperation } from '../../operations/load.js'
import type { OperationLine } from '../context.js'
import { findPresentation } from '../nouns/all.js'
import { requireVault, warnOfStore } from './place.js'

const KEY_GIVEN =
  'Only the owner of the vault can do this, and an API key was given. Run it without a key: unset COFFER_API_KEY, ' +
  'and give neither --api-key-stdin nor a profile with a key.'

/**
 * Checks the vault or server before the first prompt. Resolves to the API key of the caller, or to undefined for the
 * owner.
 * @throws CofferError
 */
export async function checkTarget(line: OperationLine, isExplained: boolean): Promise<string | undefined> {
  const { context, definition, options } = line
  const { terminal, config, input } = context
  if (config.noReveal && options.reveal === true) throw noRevealError('--reveal')
  if (isExplained && options.reveal === true)
    throw usage('--explain cannot be combined with --reveal, because --explain is not logged.')
  await warnOfStore(context)
  const isOwners = definition.access.owner !== undefined && !isControl(definition)
  const controlKey = isControl(definition) ? context.env.COFFER_CONTROL_KEY : undefined
  const isGiven = config.apiKey !== undefined || config.apiKeyStdin
  // If an API key were ignored here, the caller would have the rights of the owner.
  if (isOwners && isGiven && config.url === undefined) throw new CofferError('forbidden', KEY_GIVEN)
  const key = isOwners
    ? undefined
    : controlKey || (config.apiKeyStdin ? await input.readDescriptor(0, '--api-key-stdin') : config.apiKey)
  if (config.url !== undefined) {
    const { servedBy } = findPresentation(definition)
    const served = servedBy === undefined ? definition : await loadOperation(servedBy)
    const { requireServed } = await import('./server.js')
    requireServed(config, served!, key, isExplained)
  } else if (terminal.mayPrompt && !mayRunOffline(definition)) requireVault(context)
  return key
}
