import { once } from 'node:events'
import { resolve } from 'node:path'
import { pause } from '../../../client/pause.js'
import { ControlState, openControlled } from '../../../control/control-state.js'
import { serveVault } from '../../../control/serve.js'
import { omitUndefined } from '../../../domain/omit-undefined.js'
import { CofferError, codeOf, noRevealError } from '../../../errors.js'
import { createAccessLog } from '../../../http/access-log.js'
import { type App, harden } from '../../../vault/app.js'
import { openVault } from '../../../vault/open.js'
import { ensureSampleApplications, findSampleApplications } from '../../../vault/sample-applications.js'
import type { CommandContext, Options } from '../../context.js'
import { display } from '../../output/display.js'
import { printLogLine, printNotice } from '../../output/output.js'
import { repeatCommand } from '../../output/repeat-command.js'
import { findVaultDirectory } from '../../target/place.js'
import { openThisVault, reactorOptions, withVault } from '../../target/vault.js'
import { announce, type Opened, STOPPING } from './announcement.js'
import { readControlKey, refuseApiKey } from './control-key.js'
import { signalOfParent } from './parent.js'
import { readSeed } from './seed-files.js'
import { readServeFlags, type ServeOptions } from './serve-options.js'

const SWEEP_MS = 30_000

export async function serve(context: CommandContext, _: unknown, flags: Options): Promise<void> {
  try {
    await serveWith(context, flags)
  } catch (error) {
    throw adviseFreePort(error, context, flags)
  }
}

function adviseFreePort(
  error: unknown,
  { env, program, findTerminalCommand }: CommandContext,
  flags: Options,
) {
  if (!(error instanceof CofferError) || codeOf(error.cause) !== 'EADDRINUSE') return error
  const { options: own = [] } = findTerminalCommand('serve') ?? {}
  const given = { command: `${program} serve`, args: [], options: flags, own }
  // For `npm start`, the flag must come after `--`, because npm passes only the words after `--` to the
  // script.
  const command =
    env.npm_lifecycle_event === 'start' ? 'npm start -- --port 0' : repeatCommand(given, ['--port', '0'])
  const message = `${error.message} Use a free one: ${command}`
  return new CofferError(error.code, message, { cause: error })
}

async function serveWith(given: CommandContext, flags: Options): Promise<void> {
  const options = readServeFlags(flags, given.config)
  const { wantsSamples, vault } = options
  if (given.config.noReveal && wantsSamples && vault !== 'ephemeral')
    throw noRevealError('new keys (--demo, --starter-apps)')
  const chosenKey = await readControlKey(given, options)
  if (options.workers > 1) return serveShared(given, options)
  const outer = withParent(given, options)
  const ended = new AbortController()
  const context = { ...outer, signal: AbortSignal.any([outer.signal, ended.signal]) }
  const hardenOnce = await hardenLater(context)
  // An empty vault in memory has no secrets yet. Therefore its server starts before the process is hardened, and the
  // first request waits for the hardening.
  const isEmpty = options.vault === 'ephemeral' && options.seed === undefined
  const hardening = isEmpty && context.config.output !== 'json' ? undefined : hardenOnce()
  if (!isEmpty) await hardening
  const { run: line } = options
  const runBeside: RunBeside | undefined =
    line === undefined
      ? undefined
      : async (variables) => {
          const { runLine } = await import('./run-beside.js')
          await runLine(context, line, variables).finally(() => ended.abort())
        }
  const run = (opened: Opened) => serveOpened(context, options, hardenOnce, opened, { runBeside, chosenKey })
  if (options.vault === 'found')
    return withVault(context, await openThisVault(context, 'server', openVault), async (app) =>
      run(await describeFound(context, options, app)),
    )
  const opened = options.vault === 'demo' ? await openDemo(context) : await openInMemory(context, options)
  try {
    await run(opened)
  } finally {
    await opened.control.app.close()
  }
}

/** The first process prompts for secrets and announces the server. The worker processes answer the requests. */
async function serveShared(given: CommandContext, options: ServeOptions): Promise<void> {
  const { isWorker, joinWorkers, leaveWorkers, requireShared, runWorkers } = await import('./workers.js')
  requireShared(given, options)
  if (isWorker()) {
    const { context, port } = await joinWorkers(given)
    const hardenOnce = await hardenLater(context)
    await hardenOnce()
    await withVault(context, await openThisVault(context, 'server', openVault), (app) =>
      serveOpened(context, { ...options, port }, hardenOnce, { control: new ControlState(app) }),
    )
    return leaveWorkers()
  }
  const context = withParent(given, options)
  await withVault(context, await openThisVault(context, 'command', openVault), async (app) => {
    const opened = await describeFound(context, options, app)
    context.handlesSignals()
    await runWorkers(context, options, async (port) => {
      const url = `${options.tls === undefined ? 'http' : 'https'}://${options.hostName}:${port}`
      await announce(context, options, {
        ...opened,
        url,
        pageUrl: undefined,
        controlKey: undefined,
        isKeyChosen: false,
      })
    })
  })
}

/**
 * The first call of the returned function hardens this process. `hardenLater` itself rejects if a file of the options
 * cannot be read.
 */
async function hardenLater(context: CommandContext) {
  const { pid, env } = context
  const options = await reactorOptions(context)
  const start = async () => ({
    ...options,
    confinement: await harden({ pid, path: env.PATH }, options.modulesDirectory),
  })
  let hardening: ReturnType<typeof start> | undefined
  return () => (hardening ??= start())
}

/** Returns a context whose signal is also aborted when the parent ends. @throws CofferError `usage` */
function withParent(context: CommandContext, { exitsWithParent }: ServeOptions): CommandContext {
  const ended = signalOfParent(context, exitsWithParent)
  return ended === undefined ? context : { ...context, signal: AbortSignal.any([context.signal, ended]) }
}

async function describeFound(context: CommandContext, { wantsSamples }: ServeOptions, app: App) {
  const samples = await (wantsSamples ? ensureSampleApplications(app) : findSampleApplications(app))
  const { store, storePasswordFile, keyFile } = context.config
  const flags = {
    [store === undefined ? '--vault' : '--store']: findVaultDirectory(context),
    ...omitUndefined({ '--store-password-file': storePasswordFile, '--key-file': keyFile }),
  }
  const place = app.header?.vault ?? ''
  return { control: new ControlState(app), samples, place, flags: Object.entries(flags).flat() }
}

async function openInMemory(
  context: CommandContext,
  { seed: path, acceptsTestKeys, isWatched }: ServeOptions,
) {
  const { clock, config, cwd } = context
  const watch = isWatched && path !== undefined ? await followSeed(context, path) : undefined
  const read = path === undefined ? undefined : await readSeed(context, path)
  const dependencies = config.dependencies?.map((directory) => resolve(cwd, directory))
  const effects = {
    ...({ tenantName: 'ephemeral', clock, role: 'server', acceptsTestKeys } as const),
    ...omitUndefined({ dependencies }),
  }
  const { control, applications: samples } = await openControlled(effects, read?.seed).catch((error) => {
    throw read?.explain(error) ?? error
  })
  const chosenKeys = acceptsTestKeys ? read?.chosenKeys : undefined
  return {
    control,
    samples,
    place: 'in memory, lost when the server stops',
    ...omitUndefined({ chosenKeys, watch }),
  }
}

/** Called before the file is read for the first time, so that no change is missed. */
async function followSeed(context: CommandContext, path: string) {
  return (await import('./watch-seed.js')).followSeed(context, path)
}

async function openDemo(context: CommandContext) {
  const { openDemoVault } = await import('./demo-vault.js')
  const { app, clock, directory, samples } = await openDemoVault(context)
  const place = `${directory}, with sample tokens; remove it to start over`
  const control = new ControlState(app, undefined, undefined, clock)
  return { control, samples, place, flags: ['--vault', directory] }
}

type RunBeside = (variables: Readonly<Record<string, string | undefined>>) => Promise<void>

async function serveOpened(
  context: CommandContext,
  options: ServeOptions,
  hardenOnce: Awaited<ReturnType<typeof hardenLater>>,
  opened: Opened | Pick<Opened, 'control'>,
  { runBeside, chosenKey }: { runBeside?: RunBeside | undefined; chosenKey?: string | undefined } = {},
): Promise<void> {
  const { signal, terminal, config, input, clock } = context
  const { tls, addresses, port, hostName, prefix, bodyLimitBytes, rate, cors } = options
  const { control } = opened
  const { app } = control
  // A worker announces nothing. A worker has no dashboard, because a session exists in the memory of one process
  // only.
  const isAnnounced = 'place' in opened
  // No-reveal mode turns the dashboard off. A vault in memory contains only test data, so it keeps its dashboard.
  const hasDashboard = isAnnounced && (control.hasState || !config.noReveal)
  const samples = 'samples' in opened ? opened.samples : {}
  const { stderr } = terminal
  const sink = options.logSink === undefined ? undefined : await openSink(context, app, options.logSink)
  app.configureReactors({ prefix, spares: 1 })
  const hasControls = control.hasState || options.hasControls
  if (hasControls) app.attachControl(control)
  if (chosenKey !== undefined) await refuseApiKey(app, chosenKey)
  const controlKey = hasControls ? (chosenKey ?? control.createKey()) : undefined
  // The server keeps running if the reader closes standard error.
  stderr.on('error', () => {})
  const isSilent = config.quiet || runBeside !== undefined
  const format = options.log ?? (isSilent ? 'none' : config.output === 'json' ? 'json' : 'text')
  const pem = tls && {
    cert: await input.readFile(tls.cert, '--tls-cert'),
    key: await input.readFile(tls.key, '--tls-key'),
  }
  const server = await serveVault(control, {
    ...{ prefix, bodyLimitBytes, cors, addresses, port, hostName, key: controlKey },
    isKeyForOthers: chosenKey !== undefined,
    ...{ allowHosts: config.allowHost ?? [], ownHosts: config.ownHost, reportFault: report, hasDashboard },
    ...omitUndefined({ rate, tls: pem, place: 'flags' in opened ? opened.flags?.[1] : undefined }),
    ...(format === 'none' ? {} : { record: createAccessLog(stderr, format, clock) }),
    prepare: async () => {
      app.configureReactors(await hardenOnce())
    },
  })
  context.handlesSignals()
  const stopped = signal.aborted ? undefined : once(signal, 'abort')
  // The JSON announcement contains the confinement of reactors, so the hardening must be finished.
  if (config.output === 'json') app.configureReactors(await hardenOnce())
  const { url, pageUrl } = server
  if (isAnnounced && runBeside === undefined)
    await announce(context, options, {
      ...opened,
      url,
      pageUrl,
      controlKey,
      isKeyChosen: chosenKey !== undefined,
    })
  await server.begin()
  // Deliveries start only after the options are set, because the options say to which hosts a delivery may be sent.
  await app.deliveries.resume({
    notice: (text) => void printLogLine(terminal, text),
    fault: (error) => report(error, 'deliveries'),
  })
  if (options.vault === 'demo' && hasDashboard && tls === undefined) {
    const { sendDemoRequests } = await import('./demo-requests.js')
    // The demo works without these requests. They may fail when the server is stopped.
    void sendDemoRequests({ app, url, prefix, samples, signal }).catch((error: unknown) => {
      if (!signal.aborted) report(error, 'demo')
    })
  }
  const { key } = samples.private ?? {}
  const ran = runBeside?.({ COFFER_URL: url, COFFER_API_KEY: key, COFFER_CONTROL_KEY: controlKey })
  // The error is thrown below, after the server has stopped.
  ran?.catch(() => undefined)
  // The log sink ends after the server, so that the sink also receives the records of requests in progress.
  const stoppedSink = new AbortController()
  const sinking = sink?.run(stoppedSink.signal)
  const sweeping = sweepRegularly(app, signal, (error) => report(error, 'sweep'))
  const examining = app
    .examineContainers(() => signal.aborted)
    .catch((error: unknown) => report(error, 'container sets'))
  const watching = 'watch' in opened ? opened.watch?.(control) : undefined
  await stopped
  // Not awaited: if the reader of standard error has stopped reading, the notice must not block the stop.
  if (isAnnounced && runBeside === undefined) void printNotice(terminal, STOPPING)
  await server.stop()
  stoppedSink.abort()
  await sinking
  await sweeping
  await watching
  await examining
  await control.close()
  await ran

  function report(error: unknown, traceId: string): void {
    stderr.write(describeFault(error, traceId))
  }
}

/** Attaches the sink before the first sweep, which must not drop log records that the sink has not received. */
async function openSink({ terminal, env }: CommandContext, app: App, address: string) {
  const { createLogSink } = await import('../../../vault/log-sink.js')
  return createLogSink(app, {
    address,
    token: env.COFFER_LOG_SINK_TOKEN || undefined,
    notice: (text) => void printLogLine(terminal, text),
    wait: (ms, signal) => pause(ms, signal, { ref: false }),
  })
}

/** Purges expired records and sends due deliveries every 30 s until `signal` is aborted. */
export async function sweepRegularly(
  app: Pick<App, 'sweep' | 'deliveries'>,
  signal: AbortSignal,
  report: (error: unknown) => void,
  wait: (signal: AbortSignal) => Promise<unknown> = (during) => pause(SWEEP_MS, during, { ref: false }),
): Promise<void> {
  while (!signal.aborted) {
    const swept = await app.sweep().catch((error: unknown) => {
      report(error)
      return 0
    })
    await app.deliveries.resume().catch(report)
    // One sweep purges a limited number of records, so the next sweep may have to follow at once.
    if (swept === 0) await wait(signal)
  }
}

/** For an unexpected error, returns only the name and the stack, because the message may contain data of a request. */
function describeFault(error: unknown, traceId: string): string {
  if (error instanceof CofferError && error.code !== 'internal')
    return `${display(error.message)} Reference ${traceId}\n`
  const { name, stack = '' } = error instanceof Error ? error : new Error('')
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  return `Internal error (${name}), reference ${traceId}\n${frames.join('\n')}\n`
}
