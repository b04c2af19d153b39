/** `coffer doctor`: examines this machine, the settings and the vault, and says what to do about what it finds. */

import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../domain/json/json.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError } from '../../errors.js'
import type { OperationInput } from '../../framework/operation.js'
import type { List } from '../../framework/page.js'
import type { Sandbox } from '../../framework/ports/reactors.js'
import type { OutboxMail } from '../../operations/invite/outbox.js'
import { readHolder } from '../../vault/offline.js'
import { identifyVault } from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { countOf } from '../output/display.js'
import { printForRun, printNotice } from '../output/output.js'
import { findKeyFile, findVaultDirectory, placeOf, readApiKey, requireVault } from '../target/credentials.js'
import { describeConfinement, describeConfinementGaps } from '../target/reactor-options.js'
import { findTenantChoice } from '../target/tenant-choice.js'
import { readUserSettings, userSettingsPath } from '../user-settings.js'

/** The oldest Node that runs Coffer, as in package.json. */
const LEAST_NODE = [20, 19] as const
const OTHERS_MAY = 0o077
/** A clock may be corrected by so much without anybody noticing. */
const CLOCK_SLACK_MS = 60_000

/** `warning`: works, but less well than it could. */
interface Verdict {
  state: 'ok' | 'warning' | 'wrong'
  found: string
  advice?: string
}

const ok = (found: string): Verdict => ({ state: 'ok', found })
const warning = (found: string, advice: string): Verdict => ({ state: 'warning', found, advice })
const wrong = (found: string, advice: string): Verdict => ({ state: 'wrong', found, advice })

/** @throws CofferError `check_failed` after printing all findings, if something is wrong */
export async function examine(context: CommandContext): Promise<void> {
  const findings: (Verdict & { check: string })[] = []
  const look = async (check: string, examineOne: () => Verdict | Promise<Verdict>) => {
    try {
      findings.push({ check, ...(await examineOne()) })
    } catch (error) {
      if (!(error instanceof CofferError) || error.code === 'interrupted') throw error
      findings.push({ check, state: 'wrong', found: error.message })
    }
  }
  await look('node', () => checkNode(context))
  await look('configuration', () => checkConfiguration(context))
  const isRemote = context.config.url !== undefined
  if (isRemote) await look('server', () => checkServer(context))
  else {
    await look('permissions', () => checkPermissions(context))
    await look('lock', () => checkLock(context))
  }
  const examineVault = () =>
    context.reachVault(async (vault) => {
      const as = { reveal: false, tenant: await findTenantChoice(context) }
      const ask: Ask = async (operation, input = {}) => (await vault.ask({ operation, input, as })).result
      const status = (await ask('vault status')) as { reactor_sandbox: Sandbox; tokens: number }
      await look('chain', () => checkChain(ask))
      await look('clock', () => checkClock(context, ask))
      await look('mail', () => checkMail(ask))
      await look('sandbox', () => checkSandbox(status.reactor_sandbox))
      return ok(`It opens, and has ${countOf(status.tokens, 'token')}.`)
    })
  // To wait for a lock that stays held would be in vain.
  if (!isRemote && findings.at(-1)?.state !== 'wrong') await look('vault', examineVault)
  const advised = findings.some(({ advice }) => advice !== undefined) ? ['advice'] : []
  await printForRun(context, findings, { columns: ['check', 'state', 'found', ...advised] })
  // A table may have no room for all of it.
  const tell = ({ found, advice }: Verdict) => [found, advice].filter((text) => text !== undefined).join(' ')
  for (const finding of findings.filter(({ state }) => state === 'warning'))
    await printNotice(context.terminal, `${finding.check}: ${tell(finding)}`)
  const failed = findings.filter(({ state }) => state === 'wrong')
  if (failed.length === 0) return
  throw new CofferError('check_failed', `Checks that failed: ${failed.length} of ${findings.length}.`, {
    errors: Object.fromEntries(failed.map((finding) => [finding.check, [tell(finding)]])),
  })
}

type Ask = (operation: string, input?: OperationInput) => Promise<unknown>

function checkNode({ nodeVersion }: CommandContext): Verdict {
  const [major = 0, minor = 0] = nodeVersion.slice(1).split('.').map(Number)
  const [leastMajor, leastMinor] = LEAST_NODE
  const isOld = major < leastMajor || (major === leastMajor && minor < leastMinor)
  if (!isOld) return ok(`Node ${nodeVersion}`)
  return wrong(`Node ${nodeVersion} is too old.`, `Install Node ${LEAST_NODE.join('.')} or newer.`)
}

/** The settings of this run were read already, or nothing would run. */
async function checkConfiguration({ config }: CommandContext): Promise<Verdict> {
  const path = userSettingsPath(config.directory)
  if (!existsSync(path)) return ok(`There is no ${path}, so defaults apply.`)
  const { profiles } = await readUserSettings(config.directory)
  return ok(`${path} has ${countOf(Object.keys(profiles).length, 'profile')}.`)
}

/** Everything in the vault, its key file, and the user's settings. */
async function checkPermissions(context: CommandContext): Promise<Verdict> {
  requireVault(context)
  const directory = findVaultDirectory(context)
  const key = findKeyFile(context, await identifyVault(placeOf(context)).catch(() => ''))
  const inStore = context.config.store !== undefined
  const names = inStore ? [] : readdirSync(directory, { recursive: true })
  const files = names.map((name) => join(directory, String(name)))
  const others = [userSettingsPath(context.config.directory), ...(key === undefined ? [] : [key])]
  const open = [...(inStore ? [] : [directory]), ...files, ...others].filter(
    (path) => ((lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS_MAY) !== 0,
  )
  if (open.length === 0) return ok('Only you can read the vault, its key and your settings.')
  const [first] = open
  const more = open.length === 1 ? '' : ` and ${open.length - 1} more`
  const whole = open.some((path) => path.startsWith(directory))
    ? `-R go= ${quoteWord(directory)}`
    : `go= ${quoteWord(first!)}`
  return wrong(`Other users may read ${first}${more}.`, `Run: chmod ${whole}`)
}

async function checkServer(context: CommandContext): Promise<Verdict> {
  const key = await readApiKey(context)
  const as = key === undefined ? { reveal: false } : { key }
  const ask = { operation: 'app whoami', input: {}, as } as const
  const { result }: { result: unknown } = await context.reachVault((vault) => vault.ask(ask))
  if (isObject(result) && typeof result.name === 'string')
    return ok(`It answers, and the key is that of the application ${result.name}.`)
  return wrong('Something else than a server of the interface answers.', 'Correct the address.')
}

function checkLock(context: CommandContext): Verdict {
  const place = placeOf(context)
  if (context.config.store !== undefined)
    return ok('The vault is in a store, which any number of processes may have open.')
  const holder = readHolder(place)
  if (holder === undefined) return ok('No process has the vault open.')
  const { pid, host, since, state } = holder
  const who = `process ${pid} on ${host} since ${since}`
  if (state === 'alive') return ok(`The vault is open in ${who}; commands reach it there.`)
  if (state === 'dead') return ok('A process that had the vault open was killed. The next command tidies up.')
  const file = join(place.directory, 'lock')
  return wrong(`The lock is held by ${who}, which cannot be judged from here.`, `If it has ended: rm ${file}`)
}

async function checkChain(ask: Ask): Promise<Verdict> {
  const { is_whole, records } = (await ask('log verify')) as { is_whole: boolean; records: number }
  if (is_whole) return ok(`The log is whole: ${countOf(records, 'record')}.`)
  return wrong('The log was changed, or is not whole.', 'Run: coffer log verify')
}

async function checkClock({ clock }: CommandContext, ask: Ask): Promise<Verdict> {
  const { data } = (await ask('log list', { size: 1 })) as List<{ created_at: string }>
  const newest = data[0]?.created_at
  const aheadMs = newest === undefined ? 0 : Date.parse(newest) - clock()
  if (aheadMs < CLOCK_SLACK_MS) return ok('The clock is not behind what the vault has seen.')
  return wrong(
    `The newest record is dated ${newest}, ${Math.round(aheadMs / 1000)} s ahead of the clock.`,
    'Correct the clock. If it is right, it was wrong then: see coffer vault verify --help',
  )
}

async function checkMail(ask: Ask): Promise<Verdict> {
  const settings = (await ask('config list')) as { name: string; is_set: boolean }[]
  const isSet = (name: string) => settings.some((setting) => setting.name === name && setting.is_set)
  if (!isSet('mail.url')) return ok('There is no mail server: mail stays in the outbox.')
  const { data } = (await ask('invite outbox', { size: 20 })) as List<OutboxMail>
  const failed = data.find(({ failure, sent_at }) => failure !== undefined && sent_at === undefined)
  if (failed !== undefined)
    return wrong(`Mail is not delivered: ${failed.failure}`, `See: coffer invite outbox ${failed.id}`)
  if (isSet('public_url')) return ok('Mail is sent, and none has failed.')
  return warning('Links in mail point to this machine.', 'Run: coffer config set public_url https://…')
}

function checkSandbox(sandbox: Sandbox): Verdict {
  const gaps = describeConfinementGaps(sandbox)
  if (gaps === undefined) return ok(describeConfinement(sandbox))
  const [found, ...advice] = gaps.split(/(?<=\.) /)
  return warning(found!, advice.join(' '))
}
