/** The configuration of a command. Flags take precedence over environment variables, and both over defaults. */
import { omitUndefined } from './domain/omit-undefined.js'
import { usage } from './errors.js'
import { type Format, SETTINGS, type Setting } from './global-flags.js'

/** Settings without a value and without a default are absent. */
export type Config = ReturnType<typeof readConfig>

export type Environment = Readonly<Record<string, string | undefined>>

type Name = keyof typeof SETTINGS

export const TARGETS = ['vault', 'url', 'store'] as const

const GIVE_NAME = 'Give a name.'
const NOT_STDIN: { readonly [Setting in Name]?: string } = {
  passphraseFile: 'To read the passphrase from standard input: --passphrase-fd 0',
  storePasswordFile: 'To read the password from standard input: --store-password-fd 0',
}

/**
 * `flags` maps commander's option names, such as `keyFile`, to values.
 * @throws CofferError `usage`. The message names the flag or variable.
 */
export function readConfig(flags: Readonly<Record<string, unknown>>, env: Environment) {
  const text = (name: Name): string | undefined => {
    const { choices, variable, word }: Setting = SETTINGS[name]
    const flag = flags[name]
    const value = typeof flag === 'string' ? flag : env[variable] || undefined
    const given = typeof flag === 'string' ? word : variable
    // Among the global flags for files, only `--ca` accepts `-` as standard input.
    if (value === '-' && name !== 'ca' && /<(?:file|directory)>$/.test(SETTINGS[name].flag))
      throw usage(`${given} cannot be -, which stands for standard input. ${NOT_STDIN[name] ?? GIVE_NAME}`)
    if (value === undefined || choices === undefined || choices.includes(value)) return value
    throw usage(`${given} must be one of ${choices.join(', ')}.`)
  }
  const texts = <N extends Name>(...names: N[]) =>
    Object.fromEntries(names.map((name) => [name, text(name)])) as Record<N, string | undefined>
  const isSet = (name: Name) => flags[name] === true || isTrue(env[SETTINGS[name].variable])
  const number = (name: Name, form: RegExp, takes: string) => {
    const value = text(name)
    if (value === undefined || form.test(value)) return value === undefined ? undefined : Number(value)
    throw usage(`${SETTINGS[name].word} takes ${takes}.`)
  }
  const descriptor = (name: Name) => number(name, /^\d{1,4}$/, 'the number of an open descriptor')
  const seconds = number('timeout', /^[1-9]\d{0,3}$/, 'seconds, from 1 to 9999')
  const fields = splitList(text('fields'))
  if (fields?.length === 0) throw usage('--fields must name at least one field.')
  const byFlag = TARGETS.filter((name) => typeof flags[name] === 'string')
  const [target, other] = byFlag.length > 0 ? byFlag : TARGETS.filter((name) => text(name) !== undefined)
  if (other !== undefined) throw usage(`Both --${target} and --${other} are given. Give one of them.`)
  const given = {
    ...texts('storePasswordFile', 'prefix', 'ca', 'keyFile', 'tenant', 'passphraseFile', 'passphraseCommand'),
    ...texts('modules'),
    storePasswordFd: descriptor('storePasswordFd'),
    passphraseFd: descriptor('passphraseFd'),
    timeoutMs: seconds && seconds * 1000,
    // The variable contains the key itself. The flag only says that the key is on standard input.
    apiKey: env[SETTINGS.apiKeyStdin.variable] || undefined,
    output: text('output') as Format | undefined,
    fields,
    allowNet: splitList(text('allowNet')),
    dependencies: splitList(text('dependencies')),
    allowHost: splitList(text('allowHost'))?.map(readHostName('allowHost')),
    ownHost: splitList(text('ownHost'))?.map(readHostName('ownHost')),
    ...(target === undefined ? {} : (texts(target) as { [Target in (typeof TARGETS)[number]]?: string })),
  }
  return Object.freeze({
    ...omitUndefined(given),
    color: (text('color') ?? 'auto') as 'auto' | 'always' | 'never',
    apiKeyStdin: flags.apiKeyStdin === true,
    input: flags.input !== false && !isTrue(env[SETTINGS.input.variable]),
    quiet: isSet('quiet'),
    yes: isSet('yes'),
    insecure: isSet('insecure'),
    noReveal: isSet('noReveal'),
    directory: findConfigDirectory(env),
  })
}

function splitList(text: string | undefined): string[] | undefined {
  const items = text?.split(',').map((item) => item.trim())
  return items?.filter((item) => item !== '')
}

function readHostName(name: 'allowHost' | 'ownHost') {
  return (text: string): string => {
    if (/^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$/i.test(text)) return text
    throw usage(`${SETTINGS[name].word} takes names without a port: vault.local.`)
  }
}

export function isTrue(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== '0' && value !== 'false'
}

export function findConfigDirectory(env: Environment): string {
  const base = env.XDG_CONFIG_HOME
  if (base?.startsWith('/')) return `${base}/coffer`
  const home = env.HOME ?? env.USERPROFILE
  if (home === undefined || home === '')
    throw usage('HOME is not set, so Coffer does not know where key files are. Set HOME.')
  return `${home}/.config/coffer`
}
