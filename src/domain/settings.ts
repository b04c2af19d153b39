/**
 * The settings of a vault: which there are, what each may be, and what it is when nobody said. It knows neither where
 * they are kept nor who asks.
 */
import { CofferError } from '../errors.js'
import { readMailServer, readSender } from './mail-server.js'

interface SettingEntry<T> {
  description: string
  /** What the setting is while nobody has set it; absent where that is nothing. */
  default?: T
  /** The value as it may be shown, where it holds a secret; such a setting is never wanted as an argument. */
  conceal?(value: T): string
  /** The value that `text` spells. @throws CofferError `validation` */
  read(text: string): T
}

const MIB = 1024 * 1024

/** Where the server listens unless somebody says otherwise. */
export const DEFAULT_PUBLIC_URL = 'http://localhost:4010'

/** Every setting, by its name. */
export const VAULT_SETTINGS = {
  public_url: {
    description: 'Where people reach this server, for invitation links; unset, where it listens',
    read: readPublicUrl,
  },
  'mail.url': {
    description:
      'The mail server: smtp://user:password@host:587 or smtps://…:465; unset, mail stays in the outbox',
    conceal: (value: string) => value.replace(/:[^:@/]*@/, ':********@'),
    read: (text: string) => {
      readMailServer(text)
      return text
    },
  },
  'mail.from': {
    description: 'Whom invitations come from: Name <address>, or an address',
    read: (text: string) => {
      readSender(text)
      return text
    },
  },
  'mail.ca': {
    description: 'PEM certificates that the mail server is trusted by, besides those of the system: @ca.pem',
    read: readCertificates,
  },
  'tokens.included_monthly_active': {
    description: 'Monthly active tokens that the usage report calls included',
    default: 0,
    read: integer(0, Number.MAX_SAFE_INTEGER),
  },
  'search.masked_data': {
    description:
      'Whether data: and fingerprint: terms of a search match tokens whose data the caller is not shown in the clear: true or false',
    default: true,
    read: (text: string) => choice('true', 'false')(text) === 'true',
  },
  'reactors.undeclared_args': {
    description: 'What becomes of arguments that a formula does not declare: forward or strip',
    default: 'forward',
    read: choice('forward', 'strip'),
  },
  'reactors.isolation': {
    description:
      'pooled keeps children warm for one reactor each; process gives every run a child of its own',
    default: 'pooled',
    read: choice('pooled', 'process'),
  },
  'reactors.time_limit_ms': {
    description: 'Longest run of a reactor, in milliseconds',
    default: 10_000,
    read: integer(100, 300_000),
  },
  'reactors.memory_limit_mib': {
    description: 'Most memory of a run, in MiB',
    default: 128,
    read: integer(16, 4_096),
  },
  'reactors.result_limit_bytes': {
    description: 'Largest result of a run, in bytes of JSON',
    default: MIB,
    read: integer(1_024, 16 * MIB),
  },
} as const satisfies Record<string, SettingEntry<unknown>>

export type SettingName = keyof typeof VAULT_SETTINGS
type ValueOf<N extends SettingName> = ReturnType<(typeof VAULT_SETTINGS)[N]['read']>
type DefaultOf<N extends SettingName> = (typeof VAULT_SETTINGS)[N] extends { default: unknown }
  ? never
  : undefined

/** @throws CofferError `usage` naming those there are */
export function requireSettingName(name: string): SettingName {
  if (Object.hasOwn(VAULT_SETTINGS, name)) return name as SettingName
  throw new CofferError(
    'usage',
    `There is no setting "${name}". There are: ${Object.keys(VAULT_SETTINGS).join(', ')}.`,
  )
}

/** What the setting is among the kept `values`, its default included. */
export function settingOf<N extends SettingName>(
  values: Readonly<Record<string, unknown>>,
  name: N,
): ValueOf<N> | DefaultOf<N> {
  const entry: SettingEntry<unknown> = VAULT_SETTINGS[name]
  return (values[name] ?? entry.default) as ValueOf<N> | DefaultOf<N>
}

/** A setting as it may be shown; `value` is absent while it is nothing. */
export interface SettingView {
  name: SettingName
  value?: unknown
  is_set: boolean
  description: string
}

/** The setting among the kept `values`, any secret in it concealed. */
export function showSetting(name: SettingName, values: Readonly<Record<string, unknown>>): SettingView {
  const { description, conceal }: SettingEntry<unknown> = VAULT_SETTINGS[name]
  const value: unknown = settingOf(values, name)
  const shown = value === undefined ? {} : { value: conceal?.(value) ?? value }
  return { name, ...shown, is_set: values[name] !== undefined, description }
}

/** Whether the setting is not to be typed where others can read it. */
export function isSecretSetting(name: SettingName): boolean {
  return 'conceal' in VAULT_SETTINGS[name]
}

function readPublicUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:'
  const isBare = url?.search === '' && url.hash === '' && url.username === '' && url.password === ''
  if (url === undefined || !isWeb || !isBare || text.length > 1000)
    throw new CofferError('validation', 'must be an address such as https://vault.example.com')
  return url.href.replace(/\/+$/, '')
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/

function readCertificates(text: string): string {
  if (CERTIFICATE.test(text) && text.length <= 256 * 1024) return text
  throw new CofferError('validation', 'must be certificates as PEM; give the file as @ca.pem')
}

function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new CofferError('validation', `must be an integer from ${least} to ${most}`)
  }
}

function choice<const C extends string>(...choices: readonly C[]): (text: string) => C {
  return (text) => {
    const found = choices.find((each) => each === text)
    if (found !== undefined) return found
    throw new CofferError('validation', `must be one of ${choices.join(', ')}`)
  }
}
