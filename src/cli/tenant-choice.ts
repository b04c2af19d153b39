/**
 * Which tenant commands act in where nothing on the line says so: remembered for each vault in the user's own
 * configuration, so that it is nobody else's and survives a move of the vault.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CofferError } from '../errors.js'
import { identifyVault } from '../opening.js'
import type { Desk } from './desk.js'
import { isObject } from './fields.js'
import { findVaultDirectory } from './unlock.js'

/** By the vault's id, the tenant's. */
type Choices = Record<string, string>

/** The tenant of this run: what a flag or the environment says, else what was chosen, else undefined (the first). */
export async function findTenantChoice(desk: Desk): Promise<string | undefined> {
  if (desk.config.tenant !== undefined) return desk.config.tenant
  const { choices } = await readSettingsFile(desk)
  if (Object.keys(choices).length === 0) return undefined
  return choices[await identifyVault(findVaultDirectory(desk))]
}

/** Remembers `tenantId` for the vault of this run; undefined forgets. @throws CofferError `storage_failed` */
export async function rememberTenant(desk: Desk, tenantId: string | undefined): Promise<void> {
  const { rest, choices } = await readSettingsFile(desk)
  const vault = await identifyVault(findVaultDirectory(desk))
  const { [vault]: before, ...others } = choices
  if (before === tenantId) return
  const tenants = tenantId === undefined ? others : { ...others, [vault]: tenantId }
  const path = settingsPath(desk)
  try {
    await mkdir(desk.config.directory, { recursive: true, mode: 0o700 })
    // Two commands at once: the later one wins whole, and nobody ever reads half a file.
    const draft = `${path}.${desk.pid}.tmp`
    await writeFile(draft, `${JSON.stringify({ ...rest, tenants }, undefined, 2)}\n`, { mode: 0o600 })
    await rename(draft, path)
  } catch (cause) {
    throw new CofferError('storage_failed', `The choice could not be kept in ${path}.`, { cause })
  }
}

function settingsPath({ config }: Desk): string {
  return join(config.directory, 'config.json')
}

async function readSettingsFile(desk: Desk): Promise<{ rest: Record<string, unknown>; choices: Choices }> {
  const path = settingsPath(desk)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    const isAbsent = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
    if (isAbsent) return { rest: {}, choices: {} }
    throw new CofferError('usage', `${path} cannot be read. Remove it, or name the tenant with --tenant.`, {
      cause,
    })
  }
  const { tenants = {}, ...rest } = parseSettings(text, path)
  const isMap = isObject(tenants) && Object.values(tenants).every((id) => typeof id === 'string')
  if (isMap) return { rest, choices: tenants as Choices }
  throw new CofferError('usage', `${path}: "tenants" is not what it was written as. Remove the file.`)
}

function parseSettings(text: string, path: string): Record<string, unknown> {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (cause) {
    throw new CofferError('usage', `${path} is not JSON. Mend it, or remove it.`, { cause })
  }
  if (isObject(parsed)) return parsed
  throw new CofferError('usage', `${path} does not hold a JSON object. Remove it.`)
}
