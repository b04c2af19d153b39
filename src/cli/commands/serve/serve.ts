/** `coffer serve`: opens a vault and answers HTTP until it is stopped. */
import { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { ControlState } from '../../../control/control-state.js'
import { createDashboard } from '../../../control/dashboard.js'
import { drawControlKey, openControlled } from '../../../control/open.js'
import type { VaultServiceOptions } from '../../../control/service.js'
import { parseJson } from '../../../domain/json/json.js'
import { CofferError } from '../../../errors.js'
import { createAccessLog, type LogFormat } from '../../../http/access-log.js'
import { answerLater, listenFor } from '../../../http/sockets.js'
import type { App } from '../../../vault/app.js'
import {
  beginBeyondAuthorizer,
  ensureSampleApplications,
  findSampleApplications,
} from '../../../vault/sample-applications.js'
import type { CommandContext } from '../../context.js'
import { printNotice } from '../../output/output.js'
import type { InputStream } from '../../output/terminal.js'
import { findVaultDirectory } from '../../target/credentials.js'
import { hardenHost } from '../../target/reactor-options.js'
import type { Options } from '../../task.js'
import { announce, type Opened } from './announcement.js'
import { sweepRegularly } from './expiry-sweeper.js'
import { readServeFlags, type ServeOptions, withServeVariables } from './serve-options.js'

const STOPPING = 'Stopping after the requests in progress. Press Ctrl-C again to stop immediately.'

/** @throws CofferError `usage`, `unavailable`, those of opening the vault */
export async function serve(given: CommandContext, flags: Options): Promise<void> {
  const options = readServeFlags(withServeVariables(flags, given.env), given.config)
  const context = options.exitsWithParent ? withParent(given) : given
  const hardening = hardenHost(context)
  // An empty vault in memory has nothing yet that a core dump could show, so it is made meanwhile.
  const isEmpty = options.vault === 'ephemeral' && options.seed === undefined
  // A file that cannot be read is told before anything is done.
  if (!isEmpty || context.config.ca !== undefined) await hardening
  if (options.vault === 'found') {
    const work = async (app: App) => {
      const samples = options.wantsSamples
        ? await ensureSampleApplications(app)
        : await findSampleApplications(app)
      const { store, storePasswordFile, keyFile } = context.config
      const flags = [
        store === undefined ? '--vault' : '--store',
        findVaultDirectory(context),
        ...(storePasswordFile === undefined ? [] : ['--store-password-file', storePasswordFile]),
        ...(keyFile === undefined ? [] : ['--key-file', keyFile]),
      ]
      await serveVault(context, options, app, hardening, { samples, place: app.header?.vault ?? '', flags })
    }
    return context.withVault(work, { role: 'server', migrates: options.migrates })
  }
  const opened = options.vault === 'demo' ? await openDemo(context) : await openInMemory(context, options)
  try {
    await serveVault(context, options, opened.app, hardening, opened)
  } finally {
    await opened.app.close()
  }
}

/** The context in which the end of standard input stops the server too. @throws CofferError `usage` */
function withParent(context: CommandContext): CommandContext {
  const stdin: InputStream = context.input.claimStdin('--exit-with-parent')
  // Other kinds of files never end, or have ended already.
  if (stdin.isTTY || !(stdin instanceof Socket))
    throw new CofferError('usage', '--exit-with-parent needs a pipe or a socket as standard input.')
  const ended = new AbortController()
  for (const event of ['end', 'close', 'error']) stdin.once(event, () => ended.abort())
  stdin.resume()
  return { ...context, signal: AbortSignal.any([context.signal, ended.signal]) }
}

async function openInMemory(context: CommandContext, { seed: path }: ServeOptions) {
  const { clock, input } = context
  const seed =
    path === undefined ? undefined : parseJson(await input.readFile(path, '--seed'), { source: path })
  const effects = { tenantName: 'ephemeral', clock, role: 'server' } as const
  const { plane, applications: samples } = await openControlled(effects, seed)
  return { app: plane.app, plane, samples, place: 'in memory, lost when the server stops' }
}

async function openDemo(context: CommandContext): Promise<Opened & { app: App }> {
  const { openDemoVault } = await import('./demo-vault.js')
  const notices: string[] = []
  const { app, directory, samples } = await openDemoVault(context, (text) => notices.push(text))
  for (const text of notices) await printNotice(context.terminal, text)
  await beginBeyondAuthorizer(app)
  const place = `${directory}, with sample tokens; remove it to start over`
  return { app, samples, place, flags: ['--vault', directory] }
}

async function serveVault(
  context: CommandContext,
  options: ServeOptions,
  app: App,
  hardening: ReturnType<typeof hardenHost>,
  opened: Opened,
): Promise<void> {
  const { signal, terminal } = context
  const { tls, addresses, port, prefix, isRemote } = options
  const pem = tls === undefined ? {} : { tls: await readPem(context, tls) }
  app.configureReactors({ prefix, spares: 1 })
  const plane = opened.plane ?? new ControlState(app)
  const hasControls = opened.plane !== undefined || options.hasControls
  if (hasControls) app.control = plane
  const key = hasControls ? drawControlKey(app.random) : undefined
  const dashboard = isRemote ? undefined : createDashboard(plane, { prefix, isSecure: tls !== undefined })
  const service = createService(context, options, app)
  const allowHosts = [options.hostName, ...(context.config.allowHost ?? [])]
  const { answerer, begin } = answerLater(async () => {
    app.configureReactors(await hardening)
    const [{ createVaultService }, { createServiceAnswerer }] = await Promise.all([
      import('../../../control/service.js'),
      import('../../../http/start.js'),
    ])
    const controlled = createVaultService(service, { plane, key, dashboard, prefix })
    const answer = createServiceAnswerer(controlled, allowHosts)
    disablePretenuring()
    return answer
  })
  if (isRemote) app.admitOthers()
  const server = await listenFor(answerer, service, { port, addresses, ...pem })
  context.handlesSignals()
  const stopped = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
  })
  const scheme = tls === undefined ? 'http' : 'https'
  const url = `${scheme}://${options.hostName}:${server.port}`
  app.mail.publicUrl = url
  await app.mail.resume({
    notice: (text) => void printNotice(terminal, text),
    fault: (error) => terminal.stderr.write(describeFault(error, 'mail')),
  })
  app.configureReactors(await hardening)
  const pageUrl = dashboard?.listenAt(url)
  await announce(context, options, app, {
    ...opened,
    url,
    pageUrl,
    controlKey: key,
    sandbox: await app.sandbox(),
  })
  await begin()
  const sweeping = sweepRegularly(app, signal, (error) =>
    terminal.stderr.write(describeFault(error, 'sweep')),
  )
  await stopped
  // Not awaited: the reader of standard error may have stopped, which must not block stopping.
  void printNotice(terminal, STOPPING)
  await server.stop()
  await sweeping
  await plane.close()
}

function createService(context: CommandContext, options: ServeOptions, app: App): VaultServiceOptions {
  const { clock, terminal } = context
  const { prefix, bodyLimitBytes, rate, cors } = options
  const { stderr } = terminal
  // The server keeps answering if the reader of standard error stops.
  stderr.on('error', () => {})
  const format = chooseLogFormat(context, options)
  return {
    host: app,
    prefix,
    bodyLimitBytes,
    cors,
    reportFault: (error, traceId) => stderr.write(describeFault(error, traceId)),
    ...(rate === undefined ? {} : { rate }),
    ...(format === 'none' ? {} : { record: createAccessLog(stderr, format, clock).record }),
  }
}

function chooseLogFormat({ config }: CommandContext, { log }: ServeOptions): LogFormat {
  if (log !== undefined) return log
  if (config.quiet) return 'none'
  return config.output === 'json' ? 'json' : 'text'
}

/** The stack without the message, which may contain request data. A CofferError explains itself. */
function describeFault(error: unknown, traceId: string): string {
  if (error instanceof CofferError && error.code !== 'internal')
    return `${error.message} Reference ${traceId}\n`
  const { name, stack = '' } = error instanceof Error ? error : new Error('')
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  return `Internal error (${name}), reference ${traceId}\n${frames.join('\n')}\n`
}

async function readPem({ input }: CommandContext, tls: { cert: string; key: string }) {
  return {
    cert: await input.readFile(tls.cert, '--tls-cert'),
    key: await input.readFile(tls.key, '--tls-key'),
  }
}

/**
 * Makes V8 allocate every object in the young generation. While the server starts, objects live long, so V8 would learn
 * to allocate at the same sites in the old generation, where the garbage of requests is expensive to collect. Measured:
 * 5 to 18 % more requests per second. Contract: only in a process of our own. V8 ignores an unknown flag with a message.
 */
export function disablePretenuring(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
