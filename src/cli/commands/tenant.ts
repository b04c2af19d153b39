/** `coffer tenant create | list | use | delete`: which tenant commands act in, and the question before one is deleted. */
import { CofferError } from '../../errors.js'
import type { TenantView } from '../../operations/tenant/tenant.js'
import type { Steps, Task } from '../context/task.js'
import { findTenantChoice, rememberTenant } from '../context/tenant-choice.js'
import { printNotice, printWarning } from '../output/output.js'

export const create: Steps = {
  run: async ({ context, ask, print }) => {
    const tenant = (await ask()) as TenantView
    await print(tenant)
    await printNotice(
      context.terminal,
      `Act in it with --tenant, or from now on with: coffer tenant use ${tenant.id}`,
    )
  },
}

/** Also says which tenant commands act in. */
export const list: Steps = {
  run: async ({ context, ask, print }) => {
    const choice = await findTenantChoice(context)
    const tenants = (await ask()) as TenantView[]
    const used = choice === undefined ? tenants.at(-1) : tenants.find((tenant) => isNamed(tenant, choice))
    await print(tenants.map((tenant) => ({ ...tenant, is_used: tenant === used })))
    if (choice !== undefined && used === undefined)
      await printNotice(
        context.terminal,
        'The chosen tenant is not there any more. Choose one: coffer tenant use NAME',
      )
  },
}

export const use: Steps = {
  run: async ({ context, ask, print }) => {
    const tenant = (await ask()) as TenantView
    await rememberTenant(context, tenant.id)
    await print(tenant)
  },
}

/** Has the name of the tenant typed before it is deleted, and says what is not gone. */
export const remove: Steps = {
  confirm: async (task) => {
    const { terminal } = task.context
    const name = await findName(task)
    const { ask } = await import('../input/prompt.js')
    if (terminal.mayPrompt)
      await printWarning(
        terminal,
        `This deletes the tenant "${name}" with all of its tokens, applications and logs. Backups made before keep their own keys and can still be read.`,
      )
    const typed = await ask(terminal, { message: 'Type its name to go on:', missing: '--yes' })
    if (typed !== name) throw new CofferError('interrupted', 'That is not its name. Nothing was changed.')
  },
  run: async ({ context, ask, askAsOwner, print }) => {
    await print(await ask())
    await printNotice(
      context.terminal,
      'Backups that were made before keep their own keys: what they hold of this tenant can still be read.',
    )
    const choice = await findTenantChoice(context)
    if (choice === undefined || context.config.tenant !== undefined) return
    const tenants = (await askAsOwner('tenant list', {})) as TenantView[]
    if (!tenants.some((tenant) => isNamed(tenant, choice))) await rememberTenant(context, undefined)
  },
}

/** An application may delete its tenant without being allowed to read it. */
async function findName({ key, ask, askAsOwner, together }: Task): Promise<string> {
  return together(async () => {
    const { tenant_id } = (key === undefined ? {} : await ask({}, 'app whoami')) as { tenant_id?: string }
    return ((await askAsOwner('tenant get', {}, tenant_id)) as TenantView).name
  })
}

function isNamed({ id, name }: TenantView, choice: string): boolean {
  return id === choice || name.toLowerCase() === choice.toLowerCase()
}
