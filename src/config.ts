/** The configuration of a command: flags take precedence over environment variables, and those over defaults. */
import { omitUndefined } from './domain/omit-undefined.js'
import { usage } from './errors.js'
import { type Format, SETTINGS, type Setting } from './global-flags.js'

/** The settings of a run; those that are not set and have no default are left out. */
export type Config = ReturnType<typeof readConfig>

export type Environment = Readonly<Record<string, string | undefined>>

/** `flags`: by commander's names. @throws CofferError `usage` that names the flag or variable with an invalid value */
export function readConfig(flags: Readonly<Record<string, unknown>>, env: Environment) {
  const text = (name: keyof typeof SETTINGS): string | undefined => {
    const setting: Setting = SETTINGS[name]
    const flag = flags[name]
    const value = typeof flag === 'string' ? flag : env[setting.variable] || undefined
    if (value !== undefined && setting.choices !== undefined && !setting.choices.includes(value)) {
      const source = typeof flag === 'string' ? setting.word : setting.variable
      throw usage(`${source} must be one of ${setting.choices.join(', ')}.`)
    }
    return value
  }
  const isSet = (name: 'quiet' | 'yes' | 'insecure') =>
    flags[name] === true || isTrue(env[SETTINGS[name].variable])
  const descriptor = (name: 'passphraseFd' | 'storePasswordFd') => {
    const number = text(name)
    return number === undefined ? undefined : readDescriptorNumber(number, SETTINGS[name].word)
  }
  const given = {
    // The address of a store may have a password.
    ...chooseTarget(flags, { vault: text('vault'), url: text('url'), store: text('store') }),
    storePasswordFile: text('storePasswordFile'),
    storePasswordFd: descriptor('storePasswordFd'),
    prefix: text('prefix'),
    ca: text('ca'),
    timeoutMs: readSeconds(text('timeout')),
    keyFile: text('keyFile'),
    tenant: text('tenant'),
    passphraseFile: text('passphraseFile'),
    passphraseFd: descriptor('passphraseFd'),
    passphraseCommand: text('passphraseCommand'),
    // The key itself; the flag says that standard input begins with it.
    apiKey: env[SETTINGS.apiKeyStdin.variable] || undefined,
    output: text('output') as Format | undefined,
    fields: readFields(text('fields')),
    allowNet: splitList(text('allowNet')),
    allowHost: splitList(text('allowHost'))?.map(readHostName),
    modules: text('modules'),
  }
  return Object.freeze({
    ...omitUndefined(given),
    color: (text('color') ?? 'auto') as 'auto' | 'always' | 'never',
    apiKeyStdin: flags.apiKeyStdin === true,
    input: flags.input !== false && !isTrue(env[SETTINGS.input.variable]),
    quiet: isSet('quiet'),
    yes: isSet('yes'),
    insecure: isSet('insecure'),
    /** Of key files and profiles. */
    directory: findConfigDirectory(env),
  })
}

/** What names the vault: a directory, a server or a store. */
export const TARGETS = ['vault', 'url', 'store'] as const
type Targets = { [Name in (typeof TARGETS)[number]]?: string | undefined }

/** A flag goes before a variable. @throws CofferError `usage` if two are equally close */
function chooseTarget(flags: Readonly<Record<string, unknown>>, given: Targets): Targets {
  const byFlag = TARGETS.filter((name) => typeof flags[name] === 'string')
  const named = byFlag.length > 0 ? byFlag : TARGETS.filter((name) => given[name] !== undefined)
  const [name, other] = named
  if (other !== undefined) throw usage(`Both --${name} and --${other} are given. Give one of them.`)
  return name === undefined ? {} : { [name]: given[name] }
}

function readSeconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text) * 1000
  throw usage(`${SETTINGS.timeout.word} takes seconds, from 1 to 9999.`)
}

function splitList(text: string | undefined): string[] | undefined {
  return text
    ?.split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

function readFields(text: string | undefined): string[] | undefined {
  const names = splitList(text)
  if (names?.length === 0) throw usage('--fields names no field.')
  return names
}

function readHostName(text: string): string {
  if (/^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$/i.test(text)) return text
  throw usage(`${SETTINGS.allowHost.word} takes names without a port: vault.local.`)
}

export function isTrue(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== '0' && value !== 'false'
}

function readDescriptorNumber(text: string, flag: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw usage(`${flag} takes the number of an open descriptor.`)
}

/** The user's configuration directory by the XDG base directory specification. */
export function findConfigDirectory(env: Environment): string {
  const base = env.XDG_CONFIG_HOME
  if (base?.startsWith('/')) return `${base}/coffer`
  const home = env.HOME ?? env.USERPROFILE
  if (home === undefined || home === '') throw usage('HOME is not set, so there is no place for key files.')
  return `${home}/.config/coffer`
}
