/** Parses the flags of `serve` and `openapi`, and the environment variables of those of `serve`. */
import { type Config, type Environment, isTrue } from '../../../config.js'
import { omitUndefined } from '../../../domain/omit-undefined.js'
import { usage } from '../../../errors.js'
import { LOG_FORMATS, type LogFormat } from '../../../http/access-log.js'
import { PREFIX } from '../../../http/headers.js'
import { parseRate } from '../../../http/rate-limit.js'
import { DEFAULT_BODY_LIMIT_BYTES, DEFAULT_PORT, DEFAULT_PREFIX, LOOPBACK } from '../../../http/sockets.js'
import { keyOf } from '../../input/options.js'
import type { Options } from '../../task.js'
import { nameServeVariable, SERVE_OPTIONS } from './serve-flags.js'

export type ServeOptions = ReturnType<typeof readServeFlags>

/** Limits the memory of one request. */
const MOST_BODY_BYTES = 256 * 1024 * 1024

/** The flags, by commander's names, with those that the environment sets where the line does not. */
export function withServeVariables(flags: Options, env: Environment): Record<string, unknown> {
  const merged = { ...flags }
  for (const [flag] of SERVE_OPTIONS) {
    const text = env[nameServeVariable(flag)]
    if (text === undefined || text === '') continue
    const [word = '', isNegated] = flag.split(' ')[0]!.slice(2).split(/^no-/).toReversed()
    const key = keyOf(word)
    // Commander gives a negated flag that is absent the value true.
    if (isNegated !== undefined) merged[key] = merged[key] !== false && !isTrue(text)
    else merged[key] ??= flag.includes(' ') ? text : isTrue(text)
  }
  return merged
}

/** @throws CofferError `usage` naming the flag. */
export function readServeFlags(flags: Options, config: Pick<Config, 'prefix'> = {}) {
  const { ephemeral, demo, starterApps } = flags
  if (ephemeral === true && demo === true) throw usage('--ephemeral and --demo cannot be combined.')
  const rate = textOf(flags.rateLimit)
  const seed = readSeed(textOf(flags.seed), ephemeral === true)
  const log = readLogFormat(textOf(flags.log))
  const tls = readTls(textOf(flags.tlsCert), textOf(flags.tlsKey))
  return {
    port: readPort(textOf(flags.port)),
    ...readAddresses(textOf(flags.host), flags.allowRemote === true),
    ...readDocumentFlags(flags, config),
    vault:
      ephemeral === true ? ('ephemeral' as const) : demo === true ? ('demo' as const) : ('found' as const),
    /** Whether the tables of a store are brought to the present version. */
    migrates: flags.migrate === true,
    cors: flags.cors !== false,
    exitsWithParent: flags.exitWithParent === true,
    /** Whether a vault on disk has the part of the control plane that leaves its state and clock alone. */
    hasControls: demo === true || flags.testControls === true,
    wantsSamples: ephemeral === true || demo === true || starterApps === true,
    /** `seed`: the path of one for the vault in memory; `tls`: paths of PEM files. */
    ...omitUndefined({ seed, rate: rate === undefined ? undefined : parseRate(rate), log, tls }),
  }
}

/** The options on which the OpenAPI document depends. @throws CofferError `usage` */
export function readDocumentFlags(flags: Options, { prefix = DEFAULT_PREFIX }: Pick<Config, 'prefix'> = {}) {
  if (!PREFIX.test(prefix)) throw usage('--prefix takes a letter and up to 19 letters or digits.')
  return { prefix, bodyLimitBytes: readSize(textOf(flags.bodyLimit)) }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function readPort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw usage('--port takes a number from 0 to 65535.')
}

/** `hostName`: the one in URLs. */
function readAddresses(host: string | undefined, isAllowed: boolean) {
  if (host === undefined || host === 'localhost')
    return { addresses: LOOPBACK, hostName: 'localhost', isRemote: false }
  if (LOOPBACK.includes(host)) return { addresses: [host], hostName: bracket(host), isRemote: false }
  if (!isAllowed)
    throw usage(
      `--host ${host} makes the server reachable from other machines. Allow it with --allow-remote.`,
    )
  const isEverywhere = host === '0.0.0.0' || host === '::'
  return { addresses: [host], hostName: isEverywhere ? 'localhost' : bracket(host), isRemote: true }
}

function bracket(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

const UNITS: Record<string, number> = { '': 1, KiB: 1024, MiB: 1024 * 1024 }

function readSize(text: string | undefined): number {
  if (text === undefined) return DEFAULT_BODY_LIMIT_BYTES
  const [, digits = '', unit = ''] = /^([1-9]\d{0,8})(KiB|MiB)?$/.exec(text) ?? []
  const bytes = Number(digits) * UNITS[unit]!
  if (digits !== '' && bytes <= MOST_BODY_BYTES) return bytes
  throw usage('--body-limit takes bytes, KiB or MiB, up to 256MiB: 65536, 64KiB, 4MiB.')
}

function readLogFormat(text: string | undefined): LogFormat | undefined {
  if (text === undefined) return undefined
  const format = LOG_FORMATS.find((known) => known === text)
  if (format === undefined) throw usage(`--log takes ${LOG_FORMATS.join(', ')}.`)
  return format
}

function readSeed(path: string | undefined, isEphemeral: boolean): string | undefined {
  if (path === undefined || isEphemeral) return path
  throw usage('--seed is for --ephemeral. To create the same in another vault: coffer seed apply FILE')
}

function readTls(cert: string | undefined, key: string | undefined) {
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined) throw usage('--tls-cert and --tls-key must be given together.')
  return { cert, key }
}
