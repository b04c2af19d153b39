/** The default tenant of commands: of this user, by vault id in their settings, so it survives a move of the vault. */
import { identifyVault } from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { readUserSettings, writeUserSettings } from '../user-settings.js'
import { placeOf } from './credentials.js'

/** The tenant of this run, from a flag or the environment, else the default; undefined for the first. */
export async function findTenantChoice(context: CommandContext): Promise<string | undefined> {
  if (context.config.tenant !== undefined) return context.config.tenant
  const { tenants } = await readUserSettings(context.config.directory)
  if (Object.keys(tenants).length === 0) return undefined
  return tenants[await identifyVault(placeOf(context))]
}

/** Stores the default tenant of the vault of this run; undefined removes it. @throws CofferError `storage_failed` */
export async function rememberTenant(context: CommandContext, tenantId: string | undefined): Promise<void> {
  const { directory } = context.config
  const settings = await readUserSettings(directory)
  const vault = await identifyVault(placeOf(context))
  const { [vault]: before, ...others } = settings.tenants
  if (before === tenantId) return
  const tenants = tenantId === undefined ? others : { ...others, [vault]: tenantId }
  await writeUserSettings({ directory, pid: context.pid }, { ...settings, tenants })
}
