/**
 * The user's settings file, `config.json`: profiles and default tenants. Other users must not be able to read the
 * file, because a profile may contain an API key.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isObject, tryJson } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { CofferError, codeOf, usage } from '../errors.js'

export type Texts = Readonly<Record<string, string>>

export interface UserSettings {
  readonly profile?: string
  readonly profiles: Readonly<Record<string, Texts>>
  /** By the id of a vault: the id of its default tenant. */
  readonly tenants: Texts
  readonly others: Readonly<Record<string, unknown>>
}

const OTHERS_MAY = 0o077

export function userSettingsPath(directory: string): string {
  return join(directory, 'config.json')
}

/** @throws CofferError `usage` if the file cannot be read, `vault_exposed` if other users can read it */
export async function readUserSettings(directory: string): Promise<UserSettings> {
  const path = userSettingsPath(directory)
  let file: number | undefined
  try {
    // O_NONBLOCK prevents blocking if a named pipe has this name.
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const settings = parseSettings(readFileSync(file, 'utf8'), path)
    const mayOthers = (fstatSync(file).mode & OTHERS_MAY) !== 0
    if (!mayOthers || Object.keys(settings.profiles).length === 0) return settings
    const message = `Other users can read or change ${path}. Run: chmod 600 ${quoteWord(path)}`
    throw new CofferError('vault_exposed', message)
  } catch (cause) {
    if (cause instanceof CofferError) throw cause
    if (codeOf(cause) === 'ENOENT') return { profiles: {}, tenants: {}, others: {} }
    throw usage(`${path} cannot be read. Correct or remove it.`, { cause })
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function parseSettings(text: string, path: string): UserSettings {
  const parsed = tryJson(text)
  const { profile, profiles = {}, tenants = {}, ...others } = isObject(parsed) ? parsed : { tenants: false }
  const isProfile = profile === undefined || typeof profile === 'string'
  if (isProfile && isTexts(tenants) && isObject(profiles) && Object.values(profiles).every(isTexts))
    return { ...omitUndefined({ profile }), profiles: profiles as Record<string, Texts>, tenants, others }
  throw usage(`${path} is not a settings file of coffer. Correct or remove it.`)
}

function isTexts(value: unknown): value is Texts {
  return isObject(value) && Object.values(value).every((text) => typeof text === 'string')
}

export async function writeUserSettings(directory: string, { others, ...known }: UserSettings) {
  const { replaceUserFile } = await import('../vault/user-file.js')
  const path = userSettingsPath(directory)
  const used = Object.entries(known).filter(([, value]) => Object.keys(value).length > 0)
  const text = JSON.stringify({ ...others, ...Object.fromEntries(used) }, undefined, 2)
  // If the path is a link, replaces the target of the link, and keeps the link.
  replaceUserFile(findTarget(path), `${text}\n`)
}

/** Returns `path` itself if it is no link, or if the target of the link is missing. */
function findTarget(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
