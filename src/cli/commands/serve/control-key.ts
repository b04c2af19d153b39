/** A control key that the user chooses opens the control plane to other machines. */
import { CONTROL_KEY_RULE, isControlKey } from '../../../domain/text/chosen-key.js'
import { CofferError, usage } from '../../../errors.js'
import { authenticate } from '../../../framework/caller/authenticate.js'
import type { App } from '../../../vault/app.js'
import type { CommandContext } from '../../context.js'
import type { ServeOptions } from './serve-options.js'

const FLAG = '--control-key-file'
const VARIABLE = 'COFFER_CONTROL_KEY'

/** Messages never contain the key. @throws CofferError `usage` */
export async function readControlKey(
  { env, input }: Pick<CommandContext, 'env' | 'input'>,
  { controlKeyFile, vault, isControlStored }: ServeOptions,
): Promise<string | undefined> {
  const variable = env[VARIABLE] || undefined
  if (controlKeyFile === undefined && variable === undefined) {
    if (isControlStored) throw usage(`--control-stored needs a control key. Give ${FLAG} or set ${VARIABLE}.`)
    return undefined
  }
  const given = controlKeyFile === undefined ? VARIABLE : FLAG
  if (vault !== 'ephemeral' && !isControlStored)
    throw usage(
      `${given} opens the control plane to other machines, and this vault is stored. ` +
        (given === FLAG ? `Leave out ${FLAG}` : `Run: unset ${VARIABLE}`) +
        '. To open the control plane all the same, add --control-stored.',
    )
  const key =
    controlKeyFile === undefined
      ? variable!
      : (await input.readFile(controlKeyFile, FLAG)).replace(/\r?\n$/, '')
  if (isControlKey(key)) return key
  throw usage(`The key of ${given} ${CONTROL_KEY_RULE}. Make one: openssl rand -hex 16`)
}

/**
 * Callers who know an API key must not control the server.
 * @throws CofferError `usage` if `key` is also an API key
 */
export async function refuseApiKey(app: App, key: string): Promise<void> {
  try {
    await authenticate(app, key)
  } catch (error) {
    if (error instanceof CofferError && error.code === 'unauthenticated') return
    throw error
  }
  throw usage('The control key is also an API key of this vault. Choose another control key.')
}
