/**
 * The user's own file of settings, `config.json` beside the key files: profiles, and what was chosen. It is nobody
 * else's, for a profile may hold an API key. It knows no command.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CofferError } from '../../errors.js'
import { isObject } from '../output/fields.js'

/** Texts by name. */
export type Texts = Readonly<Record<string, string>>

export interface UserSettings {
  /** The profile that counts where nothing names one. */
  readonly profile?: string
  readonly profiles: Readonly<Record<string, Texts>>
  /** By a vault's id, the id of the tenant that commands act in. */
  readonly tenants: Texts
  /** Whatever else the file holds, kept as it is. */
  readonly others: Readonly<Record<string, unknown>>
}

const NOTHING: UserSettings = { profiles: {}, tenants: {}, others: {} }
const OTHERS_MAY = 0o077

export function userSettingsPath(directory: string): string {
  return join(directory, 'config.json')
}

/** @throws CofferError `usage` for a file that cannot be read, `vault_exposed` for one that others can read */
export async function readUserSettings(directory: string): Promise<UserSettings> {
  const path = userSettingsPath(directory)
  const file = readFile(path)
  if (file === undefined) return NOTHING
  const settings = parseSettings(file.text, path)
  const mayOthers = (file.mode & OTHERS_MAY) !== 0
  if (mayOthers && Object.keys(settings.profiles).length > 0) {
    throw new CofferError('vault_exposed', `Others may read or change ${path}. Run: chmod 600 ${path}`)
  }
  return settings
}

/** At once, for every command reads it; without blocking, for a pipe in its place would keep all of them waiting. */
function readFile(path: string): { text: string; mode: number } | undefined {
  let file: number | undefined
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    return { mode: fstatSync(file).mode, text: readFileSync(file, 'utf8') }
  } catch (cause) {
    const isAbsent = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
    if (isAbsent) return undefined
    throw new CofferError('usage', `${path} cannot be read. Mend or remove it.`, { cause })
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function parseSettings(text: string, path: string): UserSettings {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (cause) {
    throw new CofferError('usage', `${path} is not JSON. Mend or remove it.`, { cause })
  }
  const { profile, profiles = {}, tenants = {}, ...others } = isObject(parsed) ? parsed : { tenants: false }
  const isProfile = profile === undefined || typeof profile === 'string'
  if (isProfile && isTexts(tenants) && isObject(profiles) && Object.values(profiles).every(isTexts)) {
    return {
      ...(profile === undefined ? {} : { profile }),
      profiles: profiles as Record<string, Texts>,
      tenants,
      others,
    }
  }
  throw new CofferError('usage', `${path} does not hold what coffer writes there. Mend or remove it.`)
}

function isTexts(value: unknown): value is Texts {
  return isObject(value) && Object.values(value).every((text) => typeof text === 'string')
}

/** Puts `settings` in place of what the file holds. @throws CofferError `storage_failed` */
export async function writeUserSettings(
  { directory, pid }: { directory: string; pid: number },
  { others, ...known }: UserSettings,
): Promise<void> {
  const { mkdir, rename, rm, writeFile } = await import('node:fs/promises')
  const path = userSettingsPath(directory)
  const used = Object.entries(known).filter(([, value]) => Object.keys(value).length > 0)
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    // Two commands at once: the later one wins whole, and nobody ever reads half a file.
    const draft = `${path}.${pid}.tmp`
    // One that a killed command left, or a link, would lend the file its mode or its place.
    await rm(draft, { force: true })
    await writeFile(draft, `${JSON.stringify({ ...others, ...Object.fromEntries(used) }, undefined, 2)}\n`, {
      mode: 0o600,
      flag: 'wx',
    })
    await rename(draft, path)
  } catch (cause) {
    throw new CofferError('storage_failed', `The settings could not be written to ${path}.`, { cause })
  }
}
