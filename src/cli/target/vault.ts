/**
 * The vault of a run is opened in this process, or is used through another process or server that has the vault open.
 */
import { resolve } from 'node:path'
import { withoutServer } from '../../control/own-server.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { CofferError, noRevealError } from '../../errors.js'
import type { ReactorOptions } from '../../framework/ports/reactors.js'
import type { App } from '../../vault/app.js'
import { type ChooseOpener, identifyVault, reachVault, type VaultLocation } from '../../vault/open.js'
import type { OperationRequest, Vault } from '../../vault/vault.js'
import type { CommandContext } from '../context.js'
import { readUserSettings, type Texts, writeUserSettings } from '../user-settings.js'
import { chooseOpener } from './opener.js'
import { DEMO_DIRECTORY, DEMO_VAULT, noticeOnce, placeOf, warnOfStore } from './place.js'

export type Role = 'command' | 'server'

/**
 * Opens the vault of this run. If a server has the vault open, uses the vault through this server.
 * @throws CofferError
 */
export async function reachThisVault(context: CommandContext, role: Role = 'command'): Promise<Vault> {
  const { url, noReveal } = context.config
  const vault =
    url === undefined
      ? await openThisVault(context, role, reachVault)
      : await (await import('./server.js')).reachServer(context, url)
  return noReveal ? { ...vault, ask: (request) => vault.ask({ ...request, noReveal }) } : vault
}

/**
 * Opens the vault of this run with `open`, which is `reachVault` or `openVault`.
 * @throws CofferError the errors of `open`
 */
export async function openThisVault<V>(
  context: CommandContext,
  role: Role,
  open: (location: VaultLocation, choose: ChooseOpener) => Promise<V>,
): Promise<V> {
  await warnOfStore(context)
  const place = { ...placeOf(context), role }
  const vault = await retryPassphrase(context, () => open(place, (locked) => chooseOpener(context, locked)))
  if (context.config.vault === undefined && place.directory.endsWith(DEMO_VAULT))
    await noticeOnce(context, `This is the demo vault in ${DEMO_DIRECTORY}. Create yours: coffer init`)
  return vault
}

/** If a typed passphrase is wrong, calls `open` again, at most twice. */
export async function retryPassphrase<V>({ typed }: CommandContext, open: () => Promise<V>): Promise<V> {
  for (let left = 2; ; left--) {
    try {
      return await open()
    } catch (error) {
      const isWrong = error instanceof CofferError && error.code === 'vault_locked'
      if (!isWrong || typed.passphrase === undefined || left === 0) throw error
      delete typed.passphrase
      typed.triesLeft = left
    }
  }
}

function isApp(vault: Vault): vault is App {
  return vault.attachServer !== undefined
}

export async function withVault<V extends Vault, T>(
  context: CommandContext,
  vault: V,
  work: (vault: V) => Promise<T>,
): Promise<T> {
  context.opened.add(vault)
  try {
    vault.configureReactors?.(await reactorOptions(context))
    if (isApp(vault)) vault.attachServer(withoutServer(vault))
    const result = await work(vault)
    await vault.settle?.()
    return result
  } finally {
    context.opened.delete(vault)
    await vault.close()
  }
}

export async function askOnce(context: CommandContext, request: OperationRequest): Promise<unknown> {
  const vault = await reachThisVault(context)
  return (await withVault(context, vault, () => vault.ask(request))).result
}

export async function askOwned(context: CommandContext, operation: string): Promise<unknown> {
  const as = { reveal: false, tenant: await findTenantChoice(context) }
  return askOnce(context, { operation, input: {}, as })
}

export async function reactorOptions({ config, input, cwd }: CommandContext): Promise<ReactorOptions> {
  const { allowNet, modules, ca: file, noReveal } = config
  if (noReveal && modules !== undefined)
    throw noRevealError('--modules, because the code of modules gets data')
  const ca = file === undefined ? undefined : await input.readFile(file, '--ca')
  return omitUndefined({ ca, allowNet, modulesDirectory: modules && resolve(cwd, modules) })
}

/**
 * Returns the tenant of the flag or the environment, else the user's default for this vault. Undefined means the first
 * tenant.
 */
export async function findTenantChoice(context: CommandContext): Promise<string | undefined> {
  if (context.config.tenant !== undefined) return context.config.tenant
  const { tenants } = await readUserSettings(context.config.directory)
  if (Object.keys(tenants).length === 0) return undefined
  return tenants[await identifyVault(placeOf(context))]
}

/**
 * Stores the default tenant for the vault of this run. If `tenantId` is undefined, removes the default.
 * @throws CofferError `storage_failed`
 */
export async function rememberTenant(context: CommandContext, tenantId: string | undefined): Promise<void> {
  const { directory } = context.config
  const settings = await readUserSettings(directory)
  const tenants = { ...settings.tenants, [await identifyVault(placeOf(context))]: tenantId }
  await writeUserSettings(directory, { ...settings, tenants: omitUndefined(tenants) as Texts })
}
