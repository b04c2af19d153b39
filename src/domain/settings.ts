import { usage, validationError } from '../errors.js'
import { readMailServer, readSender } from './invitation/mail-server.js'
import { suggestName } from './text/nearest.js'

interface SettingEntry<T> {
  description: string
  default?: T
  /** Hides the secret in the value. The value of a setting with `conceal` cannot be an argument of a command. */
  conceal?(value: T): string
  read(text: string): T
}

const MIB = 1024 * 1024
const MAX_CHARACTERS = 256 * 1024
const CERTIFICATES = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/

export const DEFAULT_PUBLIC_URL = 'http://localhost:4010'

export const VAULT_SETTINGS = {
  public_url: {
    description:
      'The address of this server in invitation links; by default the address on which the server listens',
    read: readPublicUrl,
  },
  'mail.url': {
    description:
      'The mail server: smtp://user:password@host:587 or smtps://…:465; without one, mail stays in the outbox',
    conceal: (value: string) => value.replace(/:[^:@/]*@/, ':********@'),
    read: checkedBy(readMailServer),
  },
  'mail.from': {
    description: 'The sender of invitations: Name <address>, or an address',
    read: checkedBy(readSender),
  },
  'mail.ca': {
    description: 'Additional PEM certificates to trust for the mail server: @ca.pem',
    read: matching(CERTIFICATES, 'must be PEM certificates; give the file as @ca.pem'),
  },
  'sessions.beyond_authorizer': boolean(
    false,
    'Whether a session may do more than the application that authorized it: true or false; `serve --ephemeral` and `serve --demo` set it to true',
  ),
  'tokens.included_monthly_active': {
    description: 'The number of monthly active tokens that the usage report shows as included',
    default: 0,
    read: integer(0, Number.MAX_SAFE_INTEGER),
  },
  'token_intents.ttl': {
    description: 'How long a token intent lives: whole hours from 1h to 48h',
    default: '24h',
    read: matching(/^(?:[1-9]|[1-3]\d|4[0-8])h$/, 'must be whole hours from 1h to 48h'),
  },
  'cards.cvc_retention': {
    description:
      'How long after each write the cvc of a card is deleted: whole hours from 1h to 9999h, or never',
    default: '1h',
    read: matching(/^(?:never|[1-9]\d{0,3}h)$/, 'must be whole hours from 1h to 9999h, or never'),
  },
  'enrichments.fake': boolean(
    false,
    'Whether Coffer adds the funding and the issuer country to cards in published test ranges: true or false; `serve --ephemeral` and `serve --demo` set it to true',
  ),
  'account_updater.delay': {
    description: 'How long the account updater processes a job: 0, or a time such as 90s, 15m or 1h',
    default: '0',
    read: matching(/^(?:0|[1-9]\d{0,5}[smhdw])$/, 'must be 0, or a time such as 90s, 15m or 1h'),
  },
  'network_tokens.inactive_after': {
    description:
      'How long after its creation a network token becomes inactive: never, or a time such as 15m, 72h or 90d',
    default: 'never',
    read: matching(/^(?:never|[1-9]\d{0,5}[smhdw])$/, 'must be never, or a time such as 15m, 72h or 90d'),
  },
  'documents.limit_bytes': limit('Size limit of a document, in bytes', 10 * MIB, 1, 64 * MIB),
  'threeds.other_cards': {
    description:
      'How 3-D Secure treats a card that is no published test card: unsupported (refused) or frictionless (successful)',
    default: 'unsupported',
    read: choice('unsupported', 'frictionless'),
  },
  'threeds.challenges': {
    description:
      'How a challenge of 3-D Secure ends: wait (for the cardholder, or for the command `coffer 3ds decide`) or complete (at once, without an answer)',
    default: 'wait',
    read: choice('wait', 'complete'),
  },
  'wallets.google': {
    description:
      'The result for an encrypted payload of Google Pay: refuse (an error), simulate (a made-up card with a cryptogram) or pan_only (a token intent of a made-up card)',
    default: 'refuse',
    read: choice('refuse', 'simulate', 'pan_only'),
  },
  'wallets.apple': {
    description:
      'The result for an encrypted payload of Apple Pay: dpan (a made-up card of a device), mpan (a made-up card of a merchant) or refuse (an error)',
    default: 'dpan',
    read: choice('dpan', 'mpan', 'refuse'),
  },
  'wallets.unverified_domains': {
    description: 'Domains that Apple Pay does not verify: names with commas between them',
    default: '',
    read: matching(/^[\w.-]*(?:,[\w.-]+)*$/, 'must be domains with commas between them, without spaces'),
  },
  'logs.keep': {
    description: 'The minimum time for which log records are kept: days such as 90d, or forever',
    default: 'forever',
    read: matching(/^(?:forever|[1-9]\d{0,4}d)$/, 'must be a number of days such as 90d, or forever'),
  },
  'search.masked_data': boolean(
    true,
    'Whether the search terms data and fingerprint match tokens whose data the caller sees masked: true or false',
  ),
  'deduplicate.reveals_existing': boolean(
    true,
    'If the caller may not read the existing token, deduplication returns it redacted (true) or creates a new token (false)',
  ),
  no_reveal: boolean(
    false,
    'Whether commands are in no-reveal mode, which shows no data and no new keys: true or false; see docs/agents.md',
  ),
  'reactors.undeclared_args': {
    description: 'Forward or strip arguments that the formula of a reactor does not declare',
    default: 'forward',
    read: choice('forward', 'strip'),
  },
  'reactors.isolation': {
    description:
      'pooled reuses a process for runs of the same reactor; process starts a new process for every run',
    default: 'pooled',
    read: choice('pooled', 'process'),
  },
  'reactors.time_limit_ms': limit('Time limit of a run, in milliseconds', 30_000, 100, 300_000),
  'reactors.async_time_limit_ms': limit(
    'Time limit of a run of react-async, in milliseconds',
    900_000,
    100,
    900_000,
  ),
  'reactors.memory_limit_mib': limit('Memory limit of a run, in MiB', 128, 16, 4_096),
  'reactors.result_limit_bytes': limit('Size limit of a result, in bytes of JSON', MIB, 1_024, 16 * MIB),
} as const satisfies Record<string, SettingEntry<unknown>>

export type SettingName = keyof typeof VAULT_SETTINGS
type ValueOf<N extends SettingName> = ReturnType<(typeof VAULT_SETTINGS)[N]['read']>
type DefaultOf<N extends SettingName> = (typeof VAULT_SETTINGS)[N] extends { default: unknown }
  ? never
  : undefined

export function requireSettingName(name: string): SettingName {
  if (Object.hasOwn(VAULT_SETTINGS, name)) return name as SettingName
  const names = Object.keys(VAULT_SETTINGS)
  const nearest = suggestName(name, names)
  throw usage(`There is no setting "${name}"${nearest || `. There are: ${names.join(', ')}.`}`)
}

export type SettingValue<N extends SettingName> = ValueOf<N> | DefaultOf<N>

export function settingOf<N extends SettingName>(
  values: Readonly<Record<string, unknown>>,
  name: N,
): SettingValue<N> {
  const entry: SettingEntry<unknown> = VAULT_SETTINGS[name]
  return (values[name] ?? entry.default) as SettingValue<N>
}

export function showSetting(name: SettingName, values: Readonly<Record<string, unknown>>) {
  const { description, conceal }: SettingEntry<unknown> = VAULT_SETTINGS[name]
  const value: unknown = settingOf(values, name)
  const shown: { value?: unknown } = value === undefined ? {} : { value: conceal?.(value) ?? value }
  return { name, ...shown, is_set: values[name] !== undefined, description }
}

export type SettingView = ReturnType<typeof showSetting>

function checkedBy(check: (text: string) => unknown): (text: string) => string {
  return (text) => {
    check(text)
    return text
  }
}

function readPublicUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:'
  const isBare = url?.search === '' && url.hash === '' && url.username === '' && url.password === ''
  if (url === undefined || !isWeb || !isBare || text.length > 1000)
    throw validationError('must be an address such as https://vault.example.com')
  return url.href.replace(/\/+$/, '')
}

function matching(pattern: RegExp, rule: string): (text: string) => string {
  return (text) => {
    if (pattern.test(text) && text.length <= MAX_CHARACTERS) return text
    throw validationError(rule)
  }
}

function limit(description: string, usual: number, least: number, most: number) {
  return { description, default: usual, read: integer(least, most) } as const
}

function boolean(usual: boolean, description: string) {
  return { description, default: usual, read: (text: string) => choice('true', 'false')(text) === 'true' }
}

function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw validationError(`must be an integer from ${least} to ${most}`)
  }
}

function choice<const C extends string>(...choices: readonly C[]): (text: string) => C {
  return (text) => {
    const found = choices.find((each) => each === text)
    if (found !== undefined) return found
    throw validationError(`must be one of ${choices.join(', ')}`)
  }
}
