import { CofferError } from '../../errors.js'
import type { TenantView } from '../../operations/tenant/noun.js'
import { printWarning } from '../output/output.js'
import type { Hooks, Presentations } from '../task.js'

// Loaded when a command runs, because parsing and help need no vault.
const loadVault = () => import('../target/vault.js')

const BACKUPS = 'Earlier backups contain their own keys, so their data of this tenant remains readable.'

const isNamed = ({ id, name }: TenantView, choice: string) =>
  id === choice || name.toLowerCase() === choice.toLowerCase()

const createTenant: Hooks = {
  run: async ({ ask, print, notice }) => {
    const tenant = (await ask()) as TenantView
    await print(tenant)
    await notice(`Select it with --tenant, or make it the default: coffer tenant use ${tenant.id}`)
  },
}

const listTenants: Hooks = {
  run: async ({ context, ask, print }) => {
    const { findTenantChoice } = await loadVault()
    const choice = await findTenantChoice(context)
    const tenants = (await ask()) as TenantView[]
    const used = choice === undefined ? tenants.at(-1) : tenants.find((tenant) => isNamed(tenant, choice))
    await print(tenants.map((tenant) => ({ ...tenant, is_used: tenant === used })))
    if (choice !== undefined && used === undefined)
      await printWarning(
        context.terminal,
        'The default tenant does not exist any more. Choose another: coffer tenant use NAME',
      )
  },
}

const useTenant: Hooks = {
  run: async ({ context, ask, print }) => {
    const tenant = (await ask()) as TenantView
    await (await loadVault()).rememberTenant(context, tenant.id)
    await print(tenant)
  },
}

const deleteTenant: Hooks = {
  confirm: async ({ context: { terminal }, key, ask, askAsOwner, withOpenVault }) => {
    // The owner reads the name, because an application may delete its tenant without permission to read the tenant.
    const { name } = (await withOpenVault(async () => {
      const { tenant_id } = (key === undefined ? {} : await ask({}, 'app whoami')) as { tenant_id?: string }
      return askAsOwner('tenant get', {}, tenant_id)
    })) as TenantView
    const prompt = await import('../input/prompt.js')
    const danger = `This deletes the tenant "${name}" with all of its tokens, applications and logs.`
    if (terminal.mayPrompt) await printWarning(terminal, `${danger} ${BACKUPS}`)
    const message = 'Type the name of the tenant to delete it:'
    if ((await prompt.ask(terminal, { message, missing: '--yes' })) !== name)
      throw new CofferError('interrupted', 'The name does not match. Nothing was changed.')
  },
  run: async ({ context, ask, askAsOwner, print, notice }) => {
    await print(await ask())
    await notice(BACKUPS)
    const { findTenantChoice, rememberTenant } = await loadVault()
    const choice = await findTenantChoice(context)
    if (choice === undefined || context.config.tenant !== undefined) return
    const tenants = (await askAsOwner('tenant list', {})) as TenantView[]
    if (!tenants.some((tenant) => isNamed(tenant, choice))) await rememberTenant(context, undefined)
  },
}

export const presentations: Presentations = {
  'tenant create': { hooks: createTenant },
  'tenant list': {
    empty: 'This vault has no tenant. Create one: coffer tenant create NAME',
    hooks: listTenants,
  },
  'tenant use': { hooks: useTenant },
  'tenant delete': { hooks: deleteTenant },
}
