/** `coffer pull` writes the configuration of a tenant on a server as a seed. */
import { formatTarget } from '../../client/format-request.js'
import {
  MAX_ANSWER_MIB,
  PARTS,
  type PulledTenant,
  pageInputOf,
  readTenant,
} from '../../client/read-tenant.js'
import { isLoopbackHost, readServerUrl } from '../../client/socket-fetch.js'
import { CofferError, usage } from '../../errors.js'
import { resultOf } from '../../framework/outcome.js'
import type { RoutedOperation } from '../../framework/registry.js'
import { headerNames } from '../../http/headers.js'
import { DEFAULT_PREFIX } from '../../http/server.js'
import { loadOperation } from '../../operations/load.js'
import { openExportTarget } from '../bulk/export-target.js'
import type { CommandContext, Options } from '../context.js'
import { isYaml, SEED_LIMIT_BYTES } from '../input/seed-file.js'
import { countOf, formatCount, toJson } from '../output/display.js'
import { printForRun, printNotice, printWarning } from '../output/output.js'
import { createProgress } from '../output/progress.js'
import { reachServer } from '../target/server.js'
import { withVault } from '../target/vault.js'
import type { TerminalCommand } from '../task.js'

export const pull: TerminalCommand['run'] = async (context, [path = '-'], options) => {
  const url = requireUrl(context)
  if (options.dryRun === true) return printRequests(context, url)
  // The target is opened first, so that an existing file is refused before a key is sent.
  const target = await openExportTarget(context, path)
  try {
    const pulled = await pullTenant(context, url, await readKey(context, url, options))
    const text = isYaml(path)
      ? (await import('../input/yaml.js')).formatYaml(pulled.seed)
      : `${toJson(pulled.seed, 2)}\n`
    if (Buffer.byteLength(text) > SEED_LIMIT_BYTES)
      throw new CofferError(
        'too_large',
        `The tenant is larger than the limit of a seed, ${SEED_LIMIT_BYTES} bytes.`,
      )
    await target.put(text)
    await target.complete()
    await report(context, path, pulled)
  } catch (error) {
    await target.discard()
    throw error
  }
}

/** @throws CofferError `usage` */
export function requireUrl({ config: { url, insecure } }: CommandContext): string {
  if (url === undefined)
    throw usage('Give the address of the server with --url, for example --url https://api.example.com.')
  return readServerUrl(url, { insecure: insecure ?? false })
}

/** The key never comes from an argument, because other processes can read arguments. */
export async function readKey(
  context: CommandContext,
  url: string,
  { apiKeyFile }: Options,
): Promise<string> {
  const { config, input, terminal } = context
  const { host, hostname } = new URL(url)
  const given =
    typeof apiKeyFile === 'string'
      ? await input.readSecretFile(apiKeyFile, '--api-key-file')
      : config.apiKeyStdin
        ? await input.readDescriptor(0, '--api-key-stdin')
        : config.apiKey
  if (given === undefined && !terminal.mayPrompt)
    throw new CofferError(
      'unauthenticated',
      'Reading a tenant needs a management key. Set COFFER_API_KEY, or give --api-key-file FILE or --api-key-stdin.',
    )
  if (!isLoopbackHost(hostname) && !config.yes) {
    const { confirm } = await import('../input/prompt.js')
    await confirm(terminal, `This sends the API key to ${host}. Continue?`)
  }
  if (given !== undefined) return given
  const { ask } = await import('../input/prompt.js')
  return ask(terminal, { message: `Management key for ${host}`, missing: '--api-key-file', sensitive: true })
}

export async function pullTenant(context: CommandContext, url: string, key: string): Promise<PulledTenant> {
  const { terminal, clock, config } = context
  const progress = createProgress(terminal, { label: 'Reading records' }, clock)
  const server = await reachServer(context, url, { maxAnswerMib: MAX_ANSWER_MIB })
  return withVault(context, server, async (vault) => {
    const pulled = await readTenant({
      ask: async (operation, input) => {
        const request = { operation, input, as: { key }, noReveal: config.noReveal }
        return resultOf(await vault.ask(request))
      },
      clock,
      show: (count) => progress.show(count),
    })
    await progress.finish()
    return pulled
  })
}

async function printRequests(context: CommandContext, url: string): Promise<void> {
  const { prefix = DEFAULT_PREFIX } = context.config
  const requests = []
  for (const part of PARTS) {
    const definition = (await loadOperation(part.operation)) as unknown as RoutedOperation
    const target = formatTarget(definition, pageInputOf(part, 1))
    requests.push({ method: 'GET', url: url + target, reads: part.part, permission: part.permission })
  }
  await printForRun(context, requests)
  const header = headerNames(prefix).apiKey.toUpperCase()
  await printNotice(
    context.terminal,
    `Nothing was sent. Each request has the key in ${header}. A list with more than 100 records has more pages.`,
  )
}

/** A warning names at most this many references. */
const MAX_SHOWN = 20

/** `list`: a plural, such as `proxies`. */
function countItems(count: number, list: string): string {
  return count === 1
    ? countOf(1, list.replace(/ies$/, 'y').replace(/s$/, ''))
    : `${formatCount(count)} ${list}`
}

async function report({ terminal }: CommandContext, path: string, pulled: PulledTenant): Promise<void> {
  const { settings: _, name: __, ...lists } = pulled.seed
  const counts = Object.entries(lists).map(([list, items]) => countItems(items.length, list))
  const place = path === '-' ? '' : ` to ${path}`
  const contents = counts.length === 0 ? 'a seed without records' : counts.join(', ')
  await printNotice(terminal, `Wrote ${contents}${place}. The seed has no tokens and no keys.`)
  const isConfigured = [...(lists.reactors ?? []), ...(lists.proxies ?? [])].some(
    ({ configuration }) => Object.keys((configuration ?? {}) as object).length > 0,
  )
  if (isConfigured)
    await printNotice(terminal, 'The configuration of reactors and proxies in the seed may be secret.')
  await reportGaps(terminal, pulled)
}

/** The warnings contain names from the server. `printWarning` makes control characters visible. */
export async function reportGaps(
  terminal: CommandContext['terminal'],
  { unread, unknown, unresolved }: PulledTenant,
): Promise<void> {
  for (const { part, status, permission } of unread) {
    const why =
      status === 403 ? `The key needs the permission ${permission}.` : 'The server does not have them.'
    await printWarning(terminal, `Not read: ${part} (status ${status}). ${why}`)
  }
  if (unknown.length > 0)
    await printWarning(terminal, `Left out, because Coffer does not know them: ${unknown.join(', ')}.`)
  const shown = unresolved.slice(0, MAX_SHOWN).join('; ')
  const others =
    unresolved.length > MAX_SHOWN ? `; and ${formatCount(unresolved.length - MAX_SHOWN)} more` : ''
  if (unresolved.length > 0)
    await printWarning(
      terminal,
      `Left out ${countOf(unresolved.length, 'reference')} to records that were not read: ${shown}${others}.`,
    )
}
