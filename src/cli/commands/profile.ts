/**
 * Profiles: settings under a name, which count where neither a flag nor the environment says something. To everything
 * else a profile is a part of the environment.
 */
import { resolve } from 'node:path'
import { type Environment, findConfigDirectory, SETTINGS, type Setting } from '../../config.js'
import { CofferError } from '../../errors.js'
import type { CommandContext } from '../context/context.js'
import {
  readUserSettings,
  type Texts,
  type UserSettings,
  writeUserSettings,
} from '../context/user-settings.js'
import { readAnswer } from '../input/input.js'
import { chooseFormat, printNotice, printResult, printWarning } from '../output/output.js'

/** What only one run, or a person at each time, can say. */
const NEVER_KEPT = ['profile', 'yes', 'passphrase-fd', 'no-input']
const API_KEY = 'api-key'
const HIDDEN = '********'

/** Settings that are paths, by their names. */
const PATHS = new Set(
  (Object.values(SETTINGS) as Setting[])
    .filter(({ flag }) => /<(?:directory|file)>$/.test(flag))
    .map(({ flag }) => flag.split(' ')[0]!.slice(2)),
)

/** The variable of each setting that a profile may hold, by the setting's name. */
function listProfileSettings(): Map<string, string> {
  const rows = (Object.values(SETTINGS) as Setting[]).map(({ flag, variable }) => {
    const word = flag.split(' ')[0]!.slice(2)
    return [word === 'api-key-stdin' ? API_KEY : word, variable] as const
  })
  return new Map(rows.filter(([name]) => !NEVER_KEPT.includes(name)))
}

/**
 * The environment with the profile of this run beneath it.
 * @throws CofferError `usage` for a profile that is none, or that holds what no profile may
 */
export async function applyProfile(
  flags: Readonly<Record<string, unknown>>,
  env: Environment,
): Promise<Environment> {
  const settings = await readUserSettings(findConfigDirectory(env))
  const asked = typeof flags.profile === 'string' ? flags.profile : env[SETTINGS.profile.variable]
  const name = asked || settings.profile
  if (name === undefined) return env
  const profile = requireProfile(settings, name)
  const known = listProfileSettings()
  const beneath: Record<string, string> = {}
  for (const [setting, text] of Object.entries(profile)) {
    const variable = known.get(setting)
    if (variable === undefined)
      throw new CofferError(
        'usage',
        `The profile ${name} holds "${setting}", which is no setting of a profile.`,
      )
    beneath[variable] = text
  }
  const given = Object.entries(env).filter(([, text]) => text !== undefined && text !== '')
  return { ...beneath, ...Object.fromEntries(given) }
}

function requireProfile({ profiles }: UserSettings, name: string): Texts {
  if (Object.hasOwn(profiles, name)) return profiles[name]!
  throw new CofferError('usage', `There is no profile "${name}". Make one: coffer profile set ${name} --help`)
}

/** Each profile, what it holds (an API key concealed), and which one counts. */
export async function listProfiles(context: CommandContext): Promise<void> {
  const { profile, profiles } = await readUserSettings(context.config.directory)
  const rows = Object.entries(profiles).map(([name, texts]) => ({
    name,
    is_used: name === profile,
    settings: conceal(texts),
  }))
  await print(context, rows)
}

function conceal(texts: Texts): Texts {
  return Object.hasOwn(texts, API_KEY) ? { ...texts, [API_KEY]: HIDDEN } : texts
}

/** Sets one setting of a profile, which is made if it is not there. @throws CofferError `usage` */
export async function setInProfile(
  context: CommandContext,
  profile: string,
  setting: string,
  given: string | undefined,
): Promise<void> {
  const known = listProfileSettings()
  if (!known.has(setting))
    throw new CofferError('usage', `A profile holds: ${[...known.keys()].join(', ')}; not "${setting}".`)
  const told = await readText(context, setting, given)
  // Where a command is run later is somewhere else.
  const text = PATHS.has(setting) ? resolve(context.cwd, told) : told
  await change(context, (settings) => {
    const profiles = { ...settings.profiles, [profile]: { ...settings.profiles[profile], [setting]: text } }
    return { ...settings, profiles }
  })
  await print(context, { name: profile, settings: conceal({ [setting]: text }) })
  if (setting === API_KEY)
    await printNotice(context.terminal, 'The key stands in your settings file, which nobody else can read.')
}

/** A key is asked for, or comes from a file or standard input, so that no other process sees it. */
async function readText(
  { terminal, input }: CommandContext,
  setting: string,
  given: string | undefined,
): Promise<string> {
  const isSecret = setting === API_KEY
  if (given === undefined && terminal.mayPrompt) {
    const { ask } = await import('../input/prompt.js')
    const answer = await ask(terminal, { message: setting, missing: 'the value', sensitive: isSecret })
    return (await readAnswer(input, answer, setting)).trim()
  }
  if (isSecret && given !== undefined && given !== '-' && !/^@(?!@)/.test(given))
    await printWarning(
      terminal,
      'Other processes can see the arguments of a command. Give the key as @FILE, or on standard input.',
    )
  return (await input.readValue(given ?? '-', setting)).trim()
}

/** From now on this profile counts; without a name, none does. @throws CofferError `usage` */
export async function useProfile(context: CommandContext, name: string | undefined): Promise<void> {
  await change(context, ({ profile: _, ...settings }) => {
    if (name === undefined) return settings
    requireProfile(settings, name)
    return { ...settings, profile: name }
  })
  await printNotice(
    context.terminal,
    name === undefined ? 'No profile counts.' : `The profile ${name} counts from now on.`,
  )
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

async function change(
  context: CommandContext,
  next: (settings: UserSettings) => UserSettings,
): Promise<void> {
  const { directory } = context.config
  await writeUserSettings({ directory, pid: context.pid }, next(await readUserSettings(directory)))
}

async function print({ terminal, config }: CommandContext, result: unknown): Promise<void> {
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    columns: ['name', 'is_used', 'settings'],
    fields: config.fields,
    known: ['settings'],
    hints: { empty: 'No profiles yet. Make one: coffer profile set --help' },
  })
}
