/** `coffer unlock` and `vault lock`: a process in the background that has a vault open for a time, without a port. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { pause } from '../../client/pause.js'
import { formatDate, parseDuration } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError, ERRORS, usage } from '../../errors.js'
import { readHolder } from '../../vault/offline.js'
import { describeLocked, openVault, readHeaderAt, requireDirectory } from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { printForRun, printNotice } from '../output/output.js'
import {
  chooseOpener,
  findVaultDirectory,
  placeOf,
  requireVault,
  retryPassphrase,
} from '../target/credentials.js'
import { hardenHost } from '../target/reactor-options.js'
import { readSession, sessionPath, writeSession } from '../target/unlock-session.js'
import type { Options } from '../task.js'
import { sweepRegularly } from './serve/expiry-sweeper.js'

const LONGEST_MS = 24 * 60 * 60 * 1000
const POLL_MS = 250
const SECRET_BYTES = 32
const TIMEOUT_MS = 10_000
const SHORT_TIMEOUT_MS = 1000

/** @throws CofferError `usage`, `unavailable` if another process has the vault open, those of opening it */
export async function unlock(context: CommandContext, options: Options): Promise<void> {
  const duration = typeof options.for === 'string' ? options.for : '15m'
  const durationMs = parseDuration(duration)
  if (durationMs === undefined || durationMs > LONGEST_MS)
    throw usage('--for takes a duration such as 15m or 8h, up to 24h.')
  requireDirectory(placeOf(context))
  requireVault(context)
  if (options.foreground === true) return keepOpen(context, durationMs)
  const until = await retryPassphrase(context, () => startInBackground(context, duration))
  const { vault } = context.config
  const flag = vault === undefined ? '' : ` --vault ${quoteWord(findVaultDirectory(context))}`
  const what = `The vault is open until ${until}, and any process of yours can use it.`
  await printNotice(context.terminal, `${what} To lock it before: coffer vault lock${flag}`)
}

/** Resolves to when it ends. Its standard streams end with this process. */
async function startInBackground(context: CommandContext, duration: string): Promise<string> {
  const directory = findVaultDirectory(context)
  const opener = await chooseOpener(context, describeLocked(await readHeaderAt(placeOf(context))))
  if (opener.kind !== 'passphrase')
    throw usage('A key file opens this vault without being asked for, so there is nothing to unlock.')
  const { allowNet, modules, ca } = context.config
  const absolute = (path: string | undefined) => path && resolve(context.cwd, path)
  const settings = omitUndefined({
    ...{ for: duration, vault: directory, 'passphrase-fd': '0', output: 'json' },
    ...{ 'allow-net': allowNet?.join(','), modules: absolute(modules), ca: absolute(ca) },
  })
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const [node, script] = context.self
  // The settings of this run are in the flags; others could open the vault in another way, or another vault.
  const env = Object.entries(context.env).filter(([name]) => !name.startsWith('COFFER_'))
  const child = spawn(node, [script, 'unlock', '--foreground', ...flags], {
    cwd: '/',
    detached: true,
    env: Object.fromEntries(env),
    signal: context.signal,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  child.stdin.end(`${opener.passphrase}\n`)
  let problem = ''
  child.stderr.on('data', (chunk: Buffer) => {
    problem += chunk.toString()
  })
  const [line]: unknown[] = await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
  if (!(line instanceof Buffer)) throw readProblem(problem.trim().split('\n').at(-1) || '{}')
  child.unref()
  for (const stream of [child.stdout, child.stderr]) stream.destroy()
  return (JSON.parse(line.toString()) as { until: string }).until
}

function readProblem(line: string): CofferError {
  const { type = '', detail = 'The process in the background ended.' } = JSON.parse(line)
  const code = type.replace('urn:coffer:problem:', '').replaceAll('-', '_')
  return new CofferError(Object.hasOwn(ERRORS, code) ? code : 'internal', detail)
}

/** Until the time is over, the file of the session is gone, or a signal. */
async function keepOpen(context: CommandContext, durationMs: number): Promise<void> {
  const { clock, signal, terminal } = context
  const hardened = await hardenHost(context)
  const session = { secret: randomBytes(SECRET_BYTES), untilMs: clock() + durationMs }
  const place = placeOf(context)
  const app = await openVault({ ...place, role: 'server', session: session.secret }, (vault) =>
    chooseOpener(context, vault),
  )
  const path = sessionPath(context, app.header!.vault)
  context.handlesSignals()
  // The reader of its output may be gone.
  for (const stream of [terminal.stdout, terminal.stderr]) stream.on('error', () => {})
  const ended = new AbortController()
  try {
    app.configureReactors(hardened)
    writeSession(path, session)
    const sweeping = sweepRegularly(app, ended.signal, () => {})
    await printForRun(context, { until: formatDate(session.untilMs) })
    while (!signal.aborted && clock() < session.untilMs && existsSync(path)) await pause(POLL_MS, signal)
    ended.abort()
    await sweeping
  } finally {
    rmSync(path, { force: true })
    await app.close()
  }
}

/** Ends what `unlock` began. @throws CofferError `unavailable` if a process still has the vault open after that */
export async function lock(context: CommandContext): Promise<void> {
  const place = placeOf(context)
  requireDirectory(place)
  requireVault(context)
  const session = await readSession(context, findVaultDirectory(context))
  if (session !== undefined) rmSync(session.path, { force: true })
  // Without a session the holder may be a command, which is soon over.
  const timeoutMs = session === undefined ? SHORT_TIMEOUT_MS : TIMEOUT_MS
  let held = readHolder(place)
  for (let waitedMs = 0; held !== undefined && waitedMs < timeoutMs; waitedMs += POLL_MS) {
    await pause(POLL_MS, context.signal)
    held = readHolder(place)
  }
  if (held !== undefined && held.state !== 'dead') {
    const { pid, host } = held
    const message = `Process ${pid} still has the vault open. Stop it on ${host}: kill ${pid}`
    throw new CofferError('unavailable', message)
  }
  await printNotice(context.terminal, 'The vault is locked.')
}
