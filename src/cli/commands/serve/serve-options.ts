import type { Config } from '../../../config.js'
import { omitUndefined } from '../../../domain/omit-undefined.js'
import { noRevealError, usage } from '../../../errors.js'
import { LOG_FORMATS } from '../../../http/access-log.js'
import { PREFIX } from '../../../http/headers.js'
import { parseRate } from '../../../http/rate-limit.js'
import { DEFAULT_BODY_LIMIT_BYTES, DEFAULT_PORT, DEFAULT_PREFIX, LOOPBACK } from '../../../http/server.js'
import type { CommandContext, Options } from '../../context.js'
import { printResult } from '../../output/output.js'

export type ServeOptions = ReturnType<typeof readServeFlags>

const MAX_BODY_BYTES = 256 * 1024 * 1024
const MAX_PORT = 65_535
const MAX_WORKERS = 64

export function readServeFlags(flags: Options, config: Partial<Config> = {}) {
  const { ephemeral, demo, starterApps, testKeys, controlStored } = flags
  const texts = flags as Record<string, string | undefined>
  const {
    rateLimit,
    seed,
    log: format,
    tlsCert,
    tlsKey,
    run,
    host,
    controlKeyFile,
    workers = '1',
    logSink,
  } = texts
  const { port = run === undefined ? String(DEFAULT_PORT) : '0' } = texts
  if (ephemeral === true && demo === true) throw usage('--ephemeral and --demo cannot be combined.')
  if (seed !== undefined && ephemeral !== true)
    throw usage('--seed needs --ephemeral. To create the same data in another vault: coffer seed apply FILE')
  if (config.dependencies !== undefined && ephemeral !== true)
    throw usage(
      '--dependencies needs --ephemeral, because it starts the esbuild of the project. For another vault, link the packages beforehand: coffer reactor link DIR --out MODULES, then serve with --modules MODULES',
    )
  if (config.dependencies !== undefined && config.noReveal === true)
    throw noRevealError('--dependencies, because the code of dependencies gets data')
  if (testKeys === true && ephemeral !== true)
    throw usage('--test-keys needs --ephemeral: a stored vault has random API keys only.')
  if (controlStored === true && ephemeral === true)
    throw usage('--control-stored is for stored vaults. Leave it out with --ephemeral.')
  if (flags.watch === true) requireWatchable(seed, host)
  const log = LOG_FORMATS.find((known) => known === format)
  if (format !== undefined && log === undefined) throw usage(`--log takes ${LOG_FORMATS.join(', ')}.`)
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw usage('--tls-cert and --tls-key must be given together.')
  if (!/^\d{1,5}$/.test(port) || Number(port) > MAX_PORT)
    throw usage(`--port takes a number from 0 to ${MAX_PORT}.`)
  if (!/^[1-9]\d?$/.test(workers) || Number(workers) > MAX_WORKERS)
    throw usage(`--workers takes a number from 1 to ${MAX_WORKERS}.`)
  if (logSink !== undefined && workers !== '1')
    throw usage(
      '--log-sink needs a single process. Leave out --workers, or give --log-sink to one of several servers.',
    )
  return {
    port: Number(port),
    workers: Number(workers),
    ...readAddresses(host, flags.allowRemote === true),
    ...readDocumentFlags(flags, config),
    vault: ephemeral === true ? 'ephemeral' : demo === true ? 'demo' : 'found',
    cors: flags.cors !== false,
    isWatched: flags.watch === true,
    exitsWithParent: flags.exitWithParent === true,
    /** Whether a vault that is not in memory has a control plane. */
    hasControls: demo === true || flags.testControls === true || controlStored === true,
    isControlStored: controlStored === true,
    acceptsTestKeys: testKeys === true,
    wantsSamples: ephemeral === true || demo === true || starterApps === true,
    /** `seed`: the path of a file or of a directory. `tls`: paths of PEM files. */
    ...omitUndefined({
      seed,
      run,
      controlKeyFile,
      logSink,
      log,
      rate: rateLimit === undefined ? undefined : parseRate(rateLimit),
      tls: tlsCert === undefined ? undefined : { cert: tlsCert, key: tlsKey! },
    }),
  }
}

/**
 * With `--watch`, a changed seed can give an existing API key other rights. Therefore other machines must not reach the
 * server.
 */
function requireWatchable(seed: string | undefined, host: string | undefined): void {
  if (seed === undefined || seed === '-')
    throw usage('--watch needs a seed in a file: coffer serve --ephemeral --seed FILE --watch')
  if (host !== undefined && host !== 'localhost' && !LOOPBACK.includes(host))
    throw usage('--watch works only on a loopback address. Leave out --host.')
}

function readAddresses(host: string | undefined, isAllowed: boolean) {
  if (host === undefined || host === 'localhost')
    return { addresses: LOOPBACK, hostName: 'localhost', isRemote: false }
  const isRemote = !LOOPBACK.includes(host)
  if (isRemote && !isAllowed)
    throw usage(
      `--host ${host} makes the server reachable from other machines. Allow it with --allow-remote.`,
    )
  const hostName = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return { addresses: [host], hostName, isRemote }
}

const UNITS: Record<string, number> = { '': 1, KiB: 1024, MiB: 1024 * 1024 }

/** Reads the options that change the OpenAPI document. @throws CofferError `usage` */
function readDocumentFlags(
  { bodyLimit = String(DEFAULT_BODY_LIMIT_BYTES) }: Options,
  { prefix = DEFAULT_PREFIX }: Pick<Config, 'prefix'>,
) {
  if (!PREFIX.test(prefix)) throw usage('--prefix takes a letter and up to 19 letters or digits.')
  const [, digits, unit = ''] = /^([1-9]\d{0,8})(KiB|MiB)?$/.exec(String(bodyLimit)) ?? []
  const bodyLimitBytes = Number(digits) * UNITS[unit]!
  if (bodyLimitBytes <= MAX_BODY_BYTES) return { prefix, bodyLimitBytes }
  throw usage('--body-limit takes bytes, KiB or MiB, up to 256MiB: 65536, 64KiB, 4MiB.')
}

/** `coffer openapi`. @throws CofferError `usage` */
export async function printOpenApi(context: CommandContext, _: unknown, flags: Options): Promise<void> {
  const { VERSION } = await import('../../../version.js')
  const { registry, terminal, config } = context
  const options = { version: VERSION, ...readDocumentFlags(flags, config) }
  const document =
    flags.control === true
      ? (await import('../../../http/openapi/control-openapi.js')).createControlDocument(registry, options)
      : (await import('../../../http/openapi/openapi.js')).createDocument(registry, options)
  await printResult(terminal, document, { format: 'json', fields: config.fields })
}
