import { createHttpClient } from '../../client/http-client.js'
import { pause } from '../../client/pause.js'
import { createSocketFetch, readServerUrl } from '../../client/socket-fetch.js'
import type { Config } from '../../config.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { CofferError, usage } from '../../errors.js'
import { isControl } from '../../framework/declaration.js'
import type { RegisteredOperation, RegisteredRelay, RoutedOperation } from '../../framework/registry.js'
import { loadOperation } from '../../operations/load.js'
import type { OperationRequest, Vault } from '../../vault/vault.js'
import type { CommandContext } from '../context.js'
import { NEEDS_VAULT } from './place.js'

const KEY_MISSING =
  'A command to a server needs an API key. Set COFFER_API_KEY, give --api-key-stdin, or store the key: coffer profile set NAME api-key'

const CONTROL_KEY_MISSING =
  'The control plane of a server needs its key, which coffer serve prints. Set COFFER_CONTROL_KEY to it, or give --api-key-stdin.'

/** @throws CofferError `usage` */
export async function reachServer(
  context: CommandContext,
  address: string,
  limits: { maxAnswerMib?: number } = {},
): Promise<Vault> {
  const { config, input, signal } = context
  const { ca: file, insecure, prefix, timeoutMs } = config
  const ca = file === undefined ? undefined : await input.readFile(file, '--ca')
  const url = readServerUrl(address, { insecure })
  const sockets = context.fetch ? undefined : createSocketFetch({ ...omitUndefined({ ca }), insecure })
  const { randomUUID: createKey } = await import('node:crypto')
  const fetch = context.fetch ?? sockets!.fetch
  const effects = { fetch, signal, createKey, wait: pause, random: Math.random }
  const options = { url, ...effects, prefixAdvice, ...limits, ...omitUndefined({ prefix, timeoutMs }) }
  const ask = async (request: OperationRequest) => {
    const { operation, input, as, explain, idempotencyKey, noReveal = false } = request
    const definition = await loadOperation(operation)
    if (definition === undefined) throw new CofferError('not_found', `There is no operation "${operation}".`)
    requireRoute(definition, explain !== undefined)
    if (!('key' in as)) throw new CofferError('unauthenticated', KEY_MISSING)
    return createHttpClient({ ...options, noReveal, key: as.key }).call(definition, input, idempotencyKey)
  }
  return {
    ask: ask as Vault['ask'],
    // The server itself purges expired records.
    sweep: async () => 0,
    close: async () => sockets?.close(),
  }
}

function prefixAdvice(prefix: string): string {
  return `Give --prefix ${prefix}, set COFFER_PREFIX=${prefix}, or store the prefix: coffer profile set NAME prefix ${prefix}`
}

/**
 * Checks that a server performs the operation. Call before the first prompt.
 * @throws CofferError `usage`, `unauthenticated`
 */
export function requireServed(
  { url = '', insecure }: Config,
  definition: RegisteredOperation,
  key: string | undefined,
  isExplained: boolean,
): void {
  readServerUrl(url, { insecure })
  requireRoute(definition, isExplained)
  const wanted = isControl(definition) ? CONTROL_KEY_MISSING : KEY_MISSING
  if (key === undefined) throw new CofferError('unauthenticated', wanted)
}

function requireRoute(
  definition: RegisteredOperation,
  isExplained: boolean,
): asserts definition is RoutedOperation | RegisteredRelay {
  if ((definition.endpoint !== undefined || definition.kind === 'relay') && !isExplained) return
  const { name, cli } = definition
  const form = cli?.form
  const command = form === undefined ? name : `${form.command} --${form.flag}`
  const what = isExplained ? '--explain' : `coffer ${command}`
  const who = definition.access.owner !== undefined ? 'is for the owner of the vault, and ' : ''
  throw usage(`${what} ${who}${NEEDS_VAULT}`)
}
