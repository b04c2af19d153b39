/** `coffer tenant create | list | use | delete`: the default tenant, and the confirmation before a deletion. */
import { CofferError } from '../../errors.js'
import type { TenantView } from '../../operations/tenant/tenant.js'
import { printWarning } from '../output/output.js'
import { findTenantChoice, rememberTenant } from '../target/tenant-choice.js'
import type { Hooks, Task } from '../task.js'

export const create: Hooks = {
  run: async ({ ask, print, notice }) => {
    const tenant = (await ask()) as TenantView
    await print(tenant)
    await notice(`Select it with --tenant, or make it the default: coffer tenant use ${tenant.id}`)
  },
}

/** Marks the default tenant. */
export const list: Hooks = {
  run: async ({ context, ask, print, notice }) => {
    const choice = await findTenantChoice(context)
    const tenants = (await ask()) as TenantView[]
    const used = choice === undefined ? tenants.at(-1) : tenants.find((tenant) => isNamed(tenant, choice))
    await print(tenants.map((tenant) => ({ ...tenant, is_used: tenant === used })))
    if (choice !== undefined && used === undefined)
      await notice('The default tenant does not exist any more. Choose another: coffer tenant use NAME')
  },
}

export const use: Hooks = {
  run: async ({ context, ask, print }) => {
    const tenant = (await ask()) as TenantView
    await rememberTenant(context, tenant.id)
    await print(tenant)
  },
}

/** Asks for the name of the tenant before deleting it, and warns that backups still contain its data. */
export const remove: Hooks = {
  confirm: async (task) => {
    const { terminal } = task.context
    const name = await findName(task)
    const { ask } = await import('../input/prompt.js')
    if (terminal.mayPrompt)
      await printWarning(
        terminal,
        `This deletes the tenant "${name}" with all of its tokens, applications and logs. Earlier backups contain their own keys and remain readable.`,
      )
    const typed = await ask(terminal, {
      message: 'Type the name of the tenant to delete it:',
      missing: '--yes',
    })
    if (typed !== name) throw new CofferError('interrupted', 'The name does not match. Nothing was changed.')
  },
  run: async ({ context, ask, askAsOwner, print, notice }) => {
    await print(await ask())
    await notice('Earlier backups contain their own keys, so their data of this tenant remains readable.')
    const choice = await findTenantChoice(context)
    if (choice === undefined || context.config.tenant !== undefined) return
    const tenants = (await askAsOwner('tenant list', {})) as TenantView[]
    if (!tenants.some((tenant) => isNamed(tenant, choice))) await rememberTenant(context, undefined)
  },
}

/** Read as the owner, because an application may have the permission to delete its tenant but not to read it. */
async function findName({ key, ask, askAsOwner, withOpenVault }: Task): Promise<string> {
  return withOpenVault(async () => {
    const { tenant_id } = (key === undefined ? {} : await ask({}, 'app whoami')) as { tenant_id?: string }
    return ((await askAsOwner('tenant get', {}, tenant_id)) as TenantView).name
  })
}

function isNamed({ id, name }: TenantView, choice: string): boolean {
  return id === choice || name.toLowerCase() === choice.toLowerCase()
}
