/** `coffer webhook listen` prints the events of a vault, and sends them to an address of this machine. */
import { createForwarder } from '../../client/forward.js'
import { type Listening, listen, type Outcome } from '../../client/listen.js'
import { pause } from '../../client/pause.js'
import { formatDate } from '../../domain/dates.js'
import { CofferError } from '../../errors.js'
import { resultOf } from '../../framework/outcome.js'
import { loadOperation } from '../../operations/load.js'
import type { OperationRequest, Vault } from '../../vault/vault.js'
import type { CommandContext } from '../context.js'
import { countOf, display, toJson } from '../output/display.js'
import { chooseFormat, printNotice, printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'
import { checkTarget } from '../target/check.js'
import { findTenantChoice, reachThisVault, withVault } from '../target/vault.js'
import type { TerminalCommand } from '../task.js'

export const listenToWebhooks: TerminalCommand['run'] = async (context, _, options) => {
  const ca = context.config.ca && (await context.input.readFile(context.config.ca, '--ca'))
  const { signal, terminal } = context
  const forwarder =
    typeof options.forwardTo === 'string'
      ? createForwarder(options.forwardTo, { ca: ca || undefined, signal })
      : undefined
  const definition = (await loadOperation('control listener open'))!
  const key = await checkTarget({ context, definition, args: [], options }, false)
  const as = key === undefined ? { reveal: false, tenant: await findTenantChoice(context) } : { key }
  context.handlesSignals()
  const turns = new Turns()
  const taking = new Connection(context, as, turns)
  // Ctrl-C does not interrupt this connection, because this connection deletes the webhook after Ctrl-C.
  const reporting = new Connection({ ...context, signal: new AbortController().signal }, as, turns)
  const ended = new AbortController()
  const isKeyWanted = options.printKey === true
  try {
    await listen({
      ask: (operation, input) => taking.ask(operation, input),
      report: (operation, input) => reporting.ask(operation, input),
      longestWaitMs: () => (taking.isDirect ? 0 : (context.config.timeoutMs ?? Number.POSITIVE_INFINITY) / 2),
      url: forwarder?.url,
      events: options.event as string[] | undefined,
      send: forwarder?.send,
      opened: async (listening) => {
        if (!isKeyWanted) return announce(context, listening, forwarder?.url)
        await write(terminal.stdout, listening.public_key)
        ended.abort()
      },
      delivered: (outcome) => printOutcome(context, outcome, forwarder !== undefined),
      problem: (text) => printWarning(terminal, text),
      signal: AbortSignal.any([signal, ended.signal]),
      wait: pause,
    })
  } finally {
    await Promise.all([forwarder?.close(), taking.close(), reporting.close()])
  }
}

async function announce({ terminal }: CommandContext, { events }: Listening, address: string | undefined) {
  const what = countOf(events.length, 'type')
  const where =
    address === undefined
      ? 'Events are only printed. To send them to an address: --forward-to URL.'
      : `Events are sent to ${address}.`
  await printNotice(terminal, `Listening for ${what} of events. ${where} Press Ctrl-C to stop.`)
}

async function printOutcome(context: CommandContext, outcome: Outcome, isSent: boolean): Promise<void> {
  const { terminal, config, clock } = context
  const { event, status, failure, ms, retryMs } = outcome
  const { id, attempt, type, body } = event
  if (chooseFormat(terminal, config.output) !== 'table') {
    const line = {
      id,
      type,
      attempt,
      ...(isSent && { status, ms }),
      failure,
      retry_ms: retryMs,
      payload: JSON.parse(body),
    }
    await write(terminal.stdout, `${toJson(line)}\n`)
    return
  }
  const time = formatDate(clock()).slice(11, 19)
  const answer = failure ?? `${status} in ${ms} ms`
  const retry = retryMs === undefined ? '' : ` Next attempt in ${retryMs / 1000} s.`
  const end = outcome.isDelivered || retryMs !== undefined ? retry : ' No further attempt.'
  const words = [time, type, id, isSent ? answer + end : '']
  await write(terminal.stdout, `${display(words.join('  ').trimEnd())}\n`)
}

/** Only one connection at a time can have the vault open, so requests without a server take turns. */
class Turns {
  #last: Promise<unknown> = Promise.resolve()

  take<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => undefined)
    return result
  }
}

/** After one of these errors, the request may succeed over a new connection. */
const BROKEN = ['unavailable', 'request_timeout', 'interrupted', 'storage_failed']

/** Reconnects to a server after a failure. Without a server, opens the vault for each request. */
class Connection {
  readonly #context: CommandContext
  readonly #as: OperationRequest['as']
  readonly #turns: Turns
  #server: Vault | undefined
  #isDirect = false

  constructor(context: CommandContext, as: OperationRequest['as'], turns: Turns) {
    this.#context = context
    this.#as = as
    this.#turns = turns
  }

  /** Whether the last request was performed without a server. */
  get isDirect(): boolean {
    return this.#isDirect
  }

  async ask(operation: string, input: Record<string, unknown>): Promise<unknown> {
    const request = { operation, input, as: this.#as } as OperationRequest
    if (this.#server === undefined) {
      const first = await this.#turns.take(() => this.#begin(request))
      if (first !== undefined) return first.result
    }
    try {
      return resultOf(await this.#server!.ask(request))
    } catch (error) {
      if (error instanceof CofferError && BROKEN.includes(error.code)) await this.close()
      throw error
    }
  }

  async close(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    this.#context.opened.delete(server)
    await server.close()
  }

  /** Connects to the server of the vault. If there is no server, performs the request and returns its result. */
  async #begin(request: OperationRequest): Promise<{ result: unknown } | undefined> {
    // An earlier request may have opened the connection while this request waited.
    if (this.#server !== undefined) return undefined
    const vault = await reachThisVault(this.#context)
    this.#isDirect = vault.attachServer !== undefined
    if (this.#isDirect) {
      // This request does not wait for events. A waiting request would keep the vault open, and no server could start.
      const { input } = request
      const asked = 'timeout' in input ? { ...request, input: { ...input, timeout: '0ms' } } : request
      return withVault(this.#context, vault, async () => ({ result: resultOf(await vault.ask(asked)) }))
    }
    this.#context.opened.add(vault)
    this.#server = vault
    return undefined
  }
}
