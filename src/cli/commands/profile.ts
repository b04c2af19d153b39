/** A profile is a named set of settings. Flags and environment variables have precedence over a profile. */
import { resolve } from 'node:path'
import { type Environment, findConfigDirectory, isTrue, type TARGETS } from '../../config.js'
import { usage } from '../../errors.js'
import type { JsonSchema } from '../../framework/schema.js'
import { ALL_SETTINGS, SETTINGS, type Setting } from '../../global-flags.js'
import type { Args, CommandContext, Options } from '../context.js'
import { printForRun, printNotice, printResult } from '../output/output.js'
import { readUserSettings, type Texts, type UserSettings, writeUserSettings } from '../user-settings.js'

const NEVER_KEPT = ['profile', 'yes', 'passphrase-fd', 'store-password-fd', 'no-input']
const API_KEY = 'api-key'
const NO_REVEAL = 'no-reveal'
/** Stands for the profile in use. No profile has this name, because no argument contains this character. */
const IN_USE = '\0'
/** Settings for the server of a profile. No other server receives these settings. */
const OF_SERVER = ['url', API_KEY, 'prefix', 'ca', 'insecure']
const OF_STORE = ['store', 'store-password-file']

function listProfileSettings(): Map<string, Setting> {
  const nameOf = ({ word }: Setting) => (word === SETTINGS.apiKeyStdin.word ? API_KEY : word.slice(2))
  const rows = ALL_SETTINGS.map((setting) => [nameOf(setting), setting] as const)
  return new Map(rows.filter(([name]) => !NEVER_KEPT.includes(name)))
}

export function describeConfiguration(): JsonSchema {
  const text = { type: 'string' } as const
  const settings = [...listProfileSettings()].map(([name, { description, choices }]) => [
    name,
    { ...text, description, ...(choices && { enum: choices }) },
  ])
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Settings of Coffer, config.json',
    type: 'object',
    properties: {
      $schema: {
        ...text,
        description:
          'A file with the output of `coffer profile schema`. Editors read this file, and Coffer does not.',
      },
      profile: { ...text, description: 'The name of the profile in use.' },
      profiles: {
        type: 'object',
        description: 'The name of each profile, with the settings of this profile.',
        additionalProperties: {
          type: 'object',
          properties: Object.fromEntries(settings),
          additionalProperties: false,
        },
      },
      tenants: {
        type: 'object',
        description: 'The id of each vault, with the id of the default tenant of this vault.',
        additionalProperties: text,
      },
    },
  }
}

export async function printConfigurationSchema({ terminal }: CommandContext): Promise<void> {
  await printResult(terminal, describeConfiguration(), { format: 'json' })
}

/**
 * Returns the environment with the settings of the profile as defaults.
 * @throws CofferError `usage` for an invalid profile
 */
export async function applyProfile(flags: Options, env: Environment): Promise<Environment> {
  const settings = await readUserSettings(findConfigDirectory(env))
  const asked = typeof flags.profile === 'string' ? flags.profile : env[SETTINGS.profile.variable]
  const name = asked || settings.profile
  if (name === undefined) return env
  const known = listProfileSettings()
  const defaults: Record<string, string> = {}
  for (const [setting, text] of Object.entries(keepOwn(requireProfile(settings, name), flags, env))) {
    const variable = known.get(setting)?.variable
    if (variable === undefined)
      throw usage(`The profile ${name} contains "${setting}", which is not a setting of profiles.`)
    if (setting === 'store') await refusePassword(text)
    defaults[variable] = text
  }
  const { variable: mode } = SETTINGS.noReveal
  // If the profile in use turns on no-reveal mode, an environment variable cannot turn off this mode.
  if (hidesBy(settings).includes(IN_USE)) defaults[mode] = 'true'
  const given = Object.entries(env).filter(
    ([variable, text = '']) => text !== '' && !(variable === mode && isTrue(defaults[mode])),
  )
  return { ...defaults, ...Object.fromEntries(given) }
}

/** Returns the names of profiles that turn on no-reveal mode, and `IN_USE` if one of these profiles is in use. */
function hidesBy({ profile = '', profiles }: UserSettings): string[] {
  const names = Object.keys(profiles).filter((name) => isTrue(profiles[name]![NO_REVEAL]))
  return names.includes(profile) ? [...names, IN_USE] : names
}

/** @throws CofferError `usage` if the address is invalid or contains a password */
async function refusePassword(store: string): Promise<void> {
  const { parseStoreAddress } = await import('../../vault/open.js')
  if (parseStoreAddress(store).hasPassword)
    throw usage(
      'A profile cannot contain the password of a store. Set store-password-file, or use a PGPASSFILE.',
    )
}

/** If a flag or a variable chooses another vault, store or server, leaves out the settings for the profile's target. */
function keepOwn(profile: Texts, flags: Options, env: Environment): Texts {
  const find = (name: (typeof TARGETS)[number]) =>
    typeof flags[name] === 'string' ? flags[name] : env[SETTINGS[name].variable] || undefined
  const without = (...names: readonly string[]) =>
    Object.fromEntries(Object.entries(profile).filter(([name]) => !names.includes(name)))
  const url = find('url')
  if (url !== undefined) return without('vault', ...OF_STORE, ...(url === profile.url ? [] : OF_SERVER))
  if (find('store') !== undefined) return without('vault', 'url', ...OF_STORE)
  return find('vault') === undefined ? profile : without('url', ...OF_STORE)
}

function requireProfile({ profiles }: UserSettings, name: string): Texts {
  if (Object.hasOwn(profiles, name)) return profiles[name]!
  const known = `Profiles: ${Object.keys(profiles).join(', ') || 'none'}`
  const advice = 'To create a profile: coffer profile set NAME. To use no profile: coffer profile use'
  throw usage(`There is no profile "${name}". ${known}. ${advice}`)
}

export async function listProfiles(context: CommandContext): Promise<void> {
  const { profile, profiles } = await readUserSettings(context.config.directory)
  const rows = Object.entries(profiles).map(([name, texts]) => {
    const settings = Object.hasOwn(texts, API_KEY) ? { ...texts, [API_KEY]: '********' } : texts
    return { name, is_used: name === profile, settings }
  })
  const hints = { empty: 'No profiles yet. Create one: coffer profile set --help' }
  await printForRun(context, rows, { columns: ['name', 'is_used', 'settings'], hints })
}

export async function setInProfile(context: CommandContext, [name = '', setting = '', given]: Args) {
  const known = listProfileSettings()
  const { flag } = known.get(setting) ?? {}
  if (flag === undefined)
    throw usage(`A profile has no setting "${setting}". Settings: ${[...known.keys()].join(', ')}.`)
  const isSecret = setting === API_KEY
  const value = (await context.input.readGiven(context, given, setting, { isSecret })).trim()
  if (setting === 'store') await refusePassword(value)
  if (setting === 'url')
    (await import('../../client/socket-fetch.js')).readServerUrl(value, { insecure: true })
  // An absolute path is stored, because a relative path would depend on the directory of later commands.
  const text = /<(?:directory|file)>$/.test(flag) ? resolve(context.cwd, value) : value
  await change(context, (settings) => {
    const profiles = { ...settings.profiles, [name]: { ...settings.profiles[name], [setting]: text } }
    return { ...settings, profiles }
  })
  await printForRun(context, { name, settings: { [setting]: isSecret ? '********' : text } })
  if (isSecret)
    await printNotice(context.terminal, 'The key is stored in your settings file, which only you can read.')
}

/** Makes a profile the default. If no name is given, no profile is the default. @throws CofferError `usage` */
export async function useProfile(context: CommandContext, [name]: Args): Promise<void> {
  await change(context, ({ profile: _, ...settings }) => {
    if (name === undefined) return settings
    requireProfile(settings, name)
    return { ...settings, profile: name }
  })
  const used = name === undefined ? 'No profile is in use.' : `The profile ${name} is now in use.`
  await printNotice(context.terminal, used)
}

export async function deleteProfile(context: CommandContext, [name = '']: Args): Promise<void> {
  await change(context, ({ profile, ...settings }) => {
    requireProfile(settings, name)
    const { [name]: _, ...profiles } = settings.profiles
    return { ...settings, profiles, ...(profile === undefined || profile === name ? {} : { profile }) }
  })
  await printNotice(context.terminal, 'Deleted.')
}

/**
 * Stores the changed settings. If a change ends the no-reveal mode of a profile, a person must confirm the change on a
 * terminal.
 */
async function change(context: CommandContext, next: (settings: UserSettings) => UserSettings) {
  const { directory } = context.config
  const before = await readUserSettings(directory)
  const after = next(before)
  const kept = hidesBy(after)
  if (!hidesBy(before).every((name) => kept.includes(name)))
    await (await import('../input/prompt.js')).confirmReveal(context.terminal)
  await writeUserSettings(directory, after)
}
