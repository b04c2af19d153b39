import { CofferError, noRevealError, usage } from '../../errors.js'
import { itemOutput } from '../../framework/page.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { findUnknownName } from '../../framework/schema.js'
import { loadOperation } from '../../operations/load.js'
import { findPresentation } from '../commands/presentations.js'
import type { OperationLine } from '../context.js'
import { requireVault, warnOfStore } from './place.js'

const KEY_GIVEN =
  'Only the owner of the vault can do this, and an API key was given. Run it without a key: unset COFFER_API_KEY, ' +
  'and give neither --api-key-stdin nor a profile with a key.'

/** Checks what can be checked before anything is asked. Resolves to the API key of the caller; undefined for the owner. */
export async function checkTarget(line: OperationLine, isExplained: boolean): Promise<string | undefined> {
  const { context, definition, options } = line
  const { terminal, config, input } = context
  if (config.noReveal && options.reveal === true) throw noRevealError('--reveal')
  if (isExplained && options.reveal === true) throw usage('--explain is not logged: leave out --reveal.')
  await warnOfStore(context)
  const isOwners = definition.audience === 'owner' && definition.control === undefined
  const controlKey = definition.control === undefined ? undefined : context.env.COFFER_CONTROL_KEY
  const isGiven = config.apiKey !== undefined || config.apiKeyStdin
  // A key that was ignored would give its caller the owner's rights.
  if (isOwners && isGiven && config.url === undefined) throw new CofferError('forbidden', KEY_GIVEN)
  const key = isOwners
    ? undefined
    : controlKey || (config.apiKeyStdin ? await input.readDescriptor(0, '--api-key-stdin') : config.apiKey)
  if (config.url !== undefined) {
    const { servedBy } = findPresentation(definition)
    const served = servedBy === undefined ? definition : await loadOperation(servedBy)
    const { requireServed } = await import('./server.js')
    requireServed(config, served!, key, isExplained)
  } else if (terminal.mayPrompt && definition.runOffline === undefined) requireVault(context)
  // Fields that a variable or a profile sets for all commands may fit only some of them.
  if (options.fields !== undefined && !isExplained) requireFields(definition, config.fields ?? [])
  return key
}

/** @throws CofferError `usage` for an unknown field, naming the existing ones */
function requireFields({ output }: RegisteredOperation, fields: readonly string[]): void {
  for (const field of output === undefined ? [] : fields) {
    const { level, names } = findUnknownName(itemOutput(output!), field) ?? {}
    if (names === undefined) continue
    const above = field.split('.').slice(0, level).join('.')
    const there = names.length === 0 ? 'no fields' : names.join(', ')
    throw usage(`There is no field "${field}". ${above ? `Below ${above} there` : 'There'} are: ${there}.`)
  }
}
