/** Answers, without a socket, the requests that reactor code sends to the server that runs the code. */
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError, usage } from '../errors.js'
import { LOCAL_LIMITS, type ResponseLimits } from '../framework/limits.js'
import type { OutboundAnswer } from '../framework/ports/outbound.js'
import { type AttachedServer, NO_SERVER } from '../framework/ports/own-server.js'
import { MAX_ANSWER_BYTES } from '../framework/ports/reactors.js'
import { staleWorkError } from '../framework/unit.js'
import type { HttpResponse } from '../http/exchange.js'
import type { Answer } from '../http/steps/step.js'
import type { App } from '../vault/app.js'
import type { VaultServiceOptions } from './answerer.js'
import type { ControlState } from './control-state.js'
import type { VaultExchange } from './steps/exchange.js'

const LIMITS: ResponseLimits = {
  ...LOCAL_LIMITS,
  maxBytes: MAX_ANSWER_BYTES,
  isStrict: true,
  wantsEncoded: true,
}

interface OwnServerOptions {
  url: string
  names?: readonly string[]
  ownOrigins?: readonly string[]
  answer(): Promise<Answer<VaultExchange>>
}

export function createOwnServer(
  base: ControlState,
  { url, names = [], ownOrigins = [], answer }: OwnServerOptions,
): AttachedServer {
  return {
    ownOrigins,
    addressFor: createAddresses(url, names),
    async send(vault, { method, target, headers, body }, { identify, asRun, outer, left }) {
      const control = [base, ...base.forks.values()].find(({ app }) => app === vault)
      // Without a control state, the run belongs to a fork that was deleted.
      if (control === undefined) throw staleWorkError()
      const { VaultExchange } = await import('./steps/exchange.js')
      const readBody = async (limitBytes: number) => (body.length > limitBytes ? undefined : body)
      const request = {
        method,
        target,
        headers: { ...headers, host: new URL(url).host },
        readBody,
        onLeave: left,
      }
      const exchange = new VaultExchange(request, control)
      exchange.identify = identify
      exchange.ofRun = { asRun, outer, limits: LIMITS }
      return describeAnswer(await (await answer())(exchange))
    },
  }
}

/**
 * Returns origins. If reactor code sends requests to these origins, this server answers.
 * @throws CofferError `usage` if a name is no host name
 */
export function readOwnHosts(names: readonly string[]): string[] {
  return names.map((name) => {
    const url = `https://${name}`
    if (/^[\w.-]+$/.test(name) && URL.canParse(url)) return new URL(url).origin
    throw usage('An own host is a name without a port: api.example.com.')
  })
}

/** Answers requests of reactor code if no server has the vault open. Loads the HTTP service at the first request. */
export function withoutServer(
  app: App,
  { control, ...service }: VaultServiceOptions & { control?: ControlState } = {},
): AttachedServer {
  let created: Promise<AttachedServer> | undefined
  const create = async () => {
    const [{ ControlState }, { createVaultService }] = await Promise.all([
      import('./control-state.js'),
      import('./answerer.js'),
    ])
    const base = control ?? new ControlState(app)
    const { answerOwn } = createVaultService(service, { control: base, prefix: app.ownServer.prefix() })
    return createOwnServer(base, { url: NO_SERVER, answer: async () => answerOwn })
  }
  return {
    ownOrigins: [],
    addressFor: () => NO_SERVER,
    async send(...call) {
      created ??= create()
      return (await created).send(...call)
    },
  }
}

/**
 * Returns a function from the header Host to the address of the server. If the header contains a host name or port of
 * another server, the function returns `url`, because the caller can put anything into the header.
 */
function createAddresses(url: string, names: readonly string[]): AttachedServer['addressFor'] {
  const { protocol, port } = new URL(url)
  const known = new Set(names.map((name) => name.toLowerCase()))
  return (host) => {
    if (host === undefined || !/^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host)) return url
    if (!URL.canParse(`${protocol}//${host}`)) return url
    const reached = new URL(`${protocol}//${host}`)
    return known.has(reached.hostname) && reached.port === port ? reached.origin : url
  }
}

function describeAnswer({ status, headers, ...answer }: HttpResponse): OutboundAnswer {
  if (answer.cutAt !== undefined) throw new CofferError('bad_gateway', 'The connection was cut.')
  const body = answer.stream ?? [Buffer.from(answer.bytes ?? answer.body)]
  const collect = async (maxBytes: number) => {
    const bytes = await collectBytes(body, maxBytes)
    if (bytes !== undefined) return bytes
    throw new CofferError('bad_gateway', `The answer of this server has more than ${maxBytes} bytes.`)
  }
  return { status, headers, body: pieces(body), collect }
}

async function* pieces(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* body
}
