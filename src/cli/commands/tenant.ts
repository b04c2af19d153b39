/** `coffer tenant create|list|use`, and the question before a tenant is deleted. They are for the vault's owner alone. */
import { CofferError } from '../../errors.js'
import type { TenantView } from '../../operations/tenant/tenant.js'
import type { Desk } from '../context.js'
import { chooseFormat, printNotice, printResult, printWarning } from '../output/output.js'
import { findTenantChoice, rememberTenant } from './tenant-choice.js'

const COLUMNS = ['name', 'id', 'is_used', 'created_at']

/** @throws CofferError `conflict` for a name that is taken, `validation` */
export async function createTenant(desk: Desk, name: string): Promise<void> {
  const tenant = await command<TenantView>(desk, 'tenant create', { name })
  await print(desk, tenant)
  await printNotice(
    desk.terminal,
    `Act in it with --tenant, or from now on with: coffer tenant use ${tenant.id}`,
  )
}

/** Every tenant, and which of them commands act in. */
export async function listTenants(desk: Desk): Promise<void> {
  const choice = await findTenantChoice(desk)
  const tenants = await command<TenantView[]>(desk, 'tenant list', {})
  const used = choice === undefined ? tenants.at(-1) : tenants.find((tenant) => isNamed(tenant, choice))
  await print(
    desk,
    tenants.map((tenant) => ({ ...tenant, is_used: tenant === used })),
  )
  if (choice !== undefined && used === undefined)
    await printNotice(
      desk.terminal,
      'The chosen tenant is not there any more. Choose one: coffer tenant use NAME',
    )
}

function isNamed({ id, name }: TenantView, choice: string): boolean {
  return id === choice || name.toLowerCase() === choice.toLowerCase()
}

/** @throws CofferError `not_found` */
export async function useTenant(desk: Desk, nameOrId: string): Promise<void> {
  const tenant = await command<TenantView>(desk, 'tenant find', { tenant: nameOrId })
  await rememberTenant(desk, tenant.id)
  await print(desk, { id: tenant.id, name: tenant.name, is_used: true })
}

/**
 * Has the name of the tenant typed before it is deleted. `key`: that of the application that deletes its own.
 * @throws CofferError `interrupted` when it is not the name
 */
export async function confirmTenantDeletion(desk: Desk, key: string | undefined): Promise<void> {
  const { name } = await findTenant(desk, key)
  const { ask } = await import('../input/prompt.js')
  if (desk.terminal.mayPrompt)
    await printWarning(
      desk.terminal,
      `This deletes the tenant "${name}" with all of its tokens, applications and logs. Backups made before keep their own keys and can still be read.`,
    )
  const typed = await ask(desk.terminal, { message: 'Type its name to go on:', missing: '--yes' })
  if (typed !== name) throw new CofferError('interrupted', 'That is not its name. Nothing was changed.')
}

async function findTenant(desk: Desk, key: string | undefined): Promise<{ name: string }> {
  const tenant = await findTenantChoice(desk)
  return desk.reachVault(async (vault) => {
    if (key === undefined) {
      const as = { reveal: false, ...(tenant === undefined ? {} : { tenant }) }
      return (await vault.ask({ operation: 'tenant get', input: {}, as })).result as { name: string }
    }
    const { result } = await vault.ask({ operation: 'app whoami', input: {}, as: { key } })
    const { tenant_id } = result as { tenant_id: string }
    return (await vault.command('tenant find', { tenant: tenant_id })) as { name: string }
  })
}

/** Says what is not gone. A choice must not outlive what was chosen. */
export async function concludeTenantDeletion(desk: Desk): Promise<void> {
  await printNotice(
    desk.terminal,
    'Backups that were made before keep their own keys: what they hold of this tenant can still be read.',
  )
  const choice = await findTenantChoice(desk)
  if (choice === undefined || desk.config.tenant !== undefined) return
  const tenants = await command<TenantView[]>(desk, 'tenant list', {})
  if (!tenants.some((tenant) => isNamed(tenant, choice))) await rememberTenant(desk, undefined)
}

function command<T>(desk: Desk, name: string, input: Record<string, unknown>): Promise<T> {
  return desk.reachVault((vault) => vault.command(name, input)) as Promise<T>
}

async function print({ terminal, config }: Desk, result: unknown): Promise<void> {
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    columns: COLUMNS,
    fields: config.fields,
    known: ['modified_by', 'modified_at'],
    hints: { empty: 'This vault has no tenant. Create one: coffer tenant create NAME' },
  })
}
