/** Profiles: named sets of settings, merged into the environment of the run as defaults below flags and variables. */
import { resolve } from 'node:path'
import { type Environment, findConfigDirectory, type TARGETS } from '../../config.js'
import { usage } from '../../errors.js'
import { ALL_SETTINGS, SETTINGS, type Setting } from '../../global-flags.js'
import type { CommandContext } from '../context.js'
import { printForRun, printNotice } from '../output/output.js'
import type { Options } from '../task.js'
import { readUserSettings, type Texts, type UserSettings, writeUserSettings } from '../user-settings.js'

/** Settings of a single run. */
const NEVER_KEPT = ['profile', 'yes', 'passphrase-fd', 'store-password-fd', 'no-input']
const API_KEY = 'api-key'
const HIDDEN = '********'

/** The settings that a profile may contain, by their names in it. */
function listProfileSettings(): Map<string, Setting> {
  const nameOf = ({ word }: Setting) => (word === SETTINGS.apiKeyStdin.word ? API_KEY : word.slice(2))
  const rows = ALL_SETTINGS.map((setting) => [nameOf(setting), setting] as const)
  return new Map(rows.filter(([name]) => !NEVER_KEPT.includes(name)))
}

/** The environment with the settings of the profile as defaults. @throws CofferError `usage` for an invalid profile */
export async function applyProfile(flags: Options, env: Environment): Promise<Environment> {
  const settings = await readUserSettings(findConfigDirectory(env))
  const asked = typeof flags.profile === 'string' ? flags.profile : env[SETTINGS.profile.variable]
  const name = asked || settings.profile
  if (name === undefined) return env
  const kept = keepOwn(requireProfile(settings, name), flags, env)
  const known = listProfileSettings()
  const defaults: Record<string, string> = {}
  for (const [setting, text] of Object.entries(kept)) {
    const variable = known.get(setting)?.variable
    if (variable === undefined)
      throw usage(`The profile ${name} contains "${setting}", which is not a setting of profiles.`)
    if (setting === 'store') await refusePassword(text, `The profile ${name}`)
    defaults[variable] = text
  }
  const given = Object.entries(env).filter(([, text]) => text !== undefined && text !== '')
  return { ...defaults, ...Object.fromEntries(given) }
}

/** @throws CofferError `usage` for an address with a password, or that is none */
async function refusePassword(store: string, where: string): Promise<void> {
  const { parseStoreAddress } = await import('../../vault/open.js')
  if (!parseStoreAddress(store).hasPassword) return
  throw usage(
    `${where} takes the address of a store without a password. Set store-password-file, or use a PGPASSFILE.`,
  )
}

/** Settings that are for the server of the profile only: no other server learns them. */
const OF_SERVER = ['url', API_KEY, 'prefix', 'ca', 'insecure']

/** Settings that are for the store of the profile only. */
const OF_STORE = ['store', 'store-password-file']

/** The settings of a profile where a flag or a variable names the vault, the store or the server. */
function keepOwn(profile: Texts, flags: Options, env: Environment): Texts {
  const find = (name: (typeof TARGETS)[number]) =>
    typeof flags[name] === 'string' ? flags[name] : env[SETTINGS[name].variable] || undefined
  const leave = (names: readonly string[]) =>
    Object.fromEntries(Object.entries(profile).filter(([name]) => !names.includes(name)))
  const url = find('url')
  if (url !== undefined) return leave(['vault', ...OF_STORE, ...(url === profile.url ? [] : OF_SERVER)])
  if (find('store') !== undefined) return leave(['vault', 'url', ...OF_STORE])
  return find('vault') === undefined ? profile : leave(['url', ...OF_STORE])
}

function requireProfile({ profiles }: UserSettings, name: string): Texts {
  if (Object.hasOwn(profiles, name)) return profiles[name]!
  const names = Object.keys(profiles)
  const known = names.length === 0 ? 'There is none yet' : `Profiles: ${names.join(', ')}`
  const advice = 'Set one up with coffer profile set; coffer profile use, without a name, uses none.'
  throw usage(`There is no profile "${name}". ${known}. ${advice}`)
}

/** Lists the profiles with their settings (an API key concealed), and marks the default one. */
export async function listProfiles(context: CommandContext): Promise<void> {
  const { profile, profiles } = await readUserSettings(context.config.directory)
  const rows = Object.entries(profiles).map(([name, texts]) => {
    return { name, is_used: name === profile, settings: conceal(texts) }
  })
  await print(context, rows)
}

function conceal(texts: Texts): Texts {
  return Object.hasOwn(texts, API_KEY) ? { ...texts, [API_KEY]: HIDDEN } : texts
}

/** Sets one setting of a new or existing profile. @throws CofferError `usage` */
export async function setInProfile(
  context: CommandContext,
  profile: string,
  setting: string,
  given: string | undefined,
): Promise<void> {
  const known = listProfileSettings()
  const { flag } = known.get(setting) ?? {}
  if (flag === undefined)
    throw usage(`A profile has no setting "${setting}". Settings: ${[...known.keys()].join(', ')}.`)
  const value = (
    await context.input.readGiven(context, given, setting, { isSecret: setting === API_KEY })
  ).trim()
  if (setting === 'store') await refusePassword(value, 'A profile')
  if (setting === 'url')
    (await import('../../client/socket-fetch.js')).readServerUrl(value, { insecure: true })
  // A relative path would depend on the directory in which later commands run.
  const text = /<(?:directory|file)>$/.test(flag) ? resolve(context.cwd, value) : value
  await change(context, (settings) => {
    const profiles = { ...settings.profiles, [profile]: { ...settings.profiles[profile], [setting]: text } }
    return { ...settings, profiles }
  })
  await print(context, { name: profile, settings: conceal({ [setting]: text }) })
  if (setting === API_KEY)
    await printNotice(context.terminal, 'The key is stored in your settings file, which only you can read.')
}

/** Makes a profile the default; without a name, none is. @throws CofferError `usage` */
export async function useProfile(context: CommandContext, name: string | undefined): Promise<void> {
  await change(context, ({ profile: _, ...settings }) => {
    if (name === undefined) return settings
    requireProfile(settings, name)
    return { ...settings, profile: name }
  })
  const used = name === undefined ? 'No profile is in use.' : `The profile ${name} is now in use.`
  await printNotice(context.terminal, used)
}

/** @throws CofferError `usage` */
export async function deleteProfile(context: CommandContext, name: string): Promise<void> {
  await change(context, ({ profile, ...settings }) => {
    requireProfile(settings, name)
    const { [name]: _, ...profiles } = settings.profiles
    return { ...settings, profiles, ...(profile === undefined || profile === name ? {} : { profile }) }
  })
  await printNotice(context.terminal, 'Deleted.')
}

async function change(context: CommandContext, next: (settings: UserSettings) => UserSettings) {
  const { directory } = context.config
  await writeUserSettings({ directory, pid: context.pid }, next(await readUserSettings(directory)))
}

async function print(context: CommandContext, result: unknown): Promise<void> {
  await printForRun(context, result, {
    columns: ['name', 'is_used', 'settings'],
    known: ['settings'],
    hints: { empty: 'No profiles yet. Create one: coffer profile set --help' },
  })
}
