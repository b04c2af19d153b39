/** The access that the code of a run has to this server: the key of the run, and the requests with this key. */
import { RUN_KEY } from '../../domain/access/application.js'
import { isObject, tryJson } from '../../domain/json/json.js'
import type { HeaderMap } from '../../domain/proxy/code-answer.js'
import type { GivenData } from '../../domain/reactor/printed.js'
import type { Secrets } from '../../domain/text/secrets.js'
import { CofferError } from '../../errors.js'
import { type Caller, noRevealCaller } from '../../framework/caller/caller.js'
import type { RunKey, Session } from '../../framework/context.js'
import { answerWhole, type Destination, type OutboundRequest } from '../../framework/ports/outbound.js'
import { MAX_ANSWER_BYTES, type RunAccess } from '../../framework/ports/reactors.js'
import type { StoreReader } from '../../storage/store.js'

interface Noting {
  /** In no-reveal mode: what the answer of the run must not contain. */
  secrets: Secrets | undefined
  /** What the stored output of the run is redacted by. */
  given: GivenData | undefined
}

/** `actor`: the caller that the code acts as. Without it, the run has no key. */
export function createRunAccess(
  session: Session,
  actor: Caller | undefined,
  { secrets, given }: Noting,
): RunAccess {
  const { ownServer, reachedAt, traceId } = session
  const baseUrl = ownServer.addressFor(reachedAt)
  const origins = [new URL(baseUrl).origin, new URL(ownServer.addressFor(undefined)).origin]
  const named = ownServer.ownOrigins()
  let isKey: RunKey['isKey'] | undefined

  const requireKey = () => {
    if (isKey === undefined) throw new CofferError('unauthenticated', 'The run of this key has ended.')
  }

  /** A copy of the caller that has no rights after the run, in requests that are still in progress too. */
  const asRun = (caller: Caller): Caller => {
    const read = async (reader: StoreReader) => {
      requireKey()
      await session.requireRights(reader)
      return asRun((await caller.source?.read(reader)) ?? caller)
    }
    return { ...caller, isOfRun: true, source: { isCurrent: () => false, read } }
  }
  // Code that a caller without reveal has started may otherwise print what it reads.
  const restrict = (caller: Caller) =>
    session.caller.isNoReveal ? noRevealCaller(asRun(caller)) : asRun(caller)

  const identify = async () => {
    requireKey()
    await session.requireRights()
    return restrict(actor!)
  }

  const note = ({ target, body }: OutboundRequest, headers: HeaderMap, answer: Uint8Array) => {
    if (given === undefined || headers['content-type']?.includes('problem')) return
    for (const each of [body, answer]) for (const data of listData(target, each)) given.add(data)
  }

  const destination: Destination = {
    async send(request, { sent, left }) {
      const headers = { ...request.headers, [`${ownServer.prefix()}-trace-id`]: traceId }
      sent()
      const asked = { ...request, headers }
      const call = { identify, asRun: restrict, outer: session.subjects, left }
      const answer = await ownServer.send(asked, call)
      const body = await answer.collect(MAX_ANSWER_BYTES)
      note(request, answer.headers, body)
      return answerWhole(answer.status, answer.headers, body)
    },
  }

  return {
    begin() {
      if (actor === undefined) return { baseUrl, environment: baseUrl }
      const made = session.createRunKey()
      isKey = made.isKey
      const secret = made.key.slice(RUN_KEY.length)
      secrets?.add(secret)
      given?.add(secret)
      return { apiKey: made.key, baseUrl, environment: baseUrl }
    },
    end() {
      isKey = undefined
    },
    reach(url, headers) {
      const isNamed = named.includes(url.origin)
      if (!isNamed && !origins.includes(url.origin)) return undefined
      if (isKey?.(headers[`${ownServer.prefix()}-api-key`] ?? '')) return destination
      if (!isNamed) return undefined
      // Never sent to the server on the network that has this name.
      const reason = 'this name means this server (--own-host), which takes only the key of the run here'
      throw new CofferError('forbidden', `The destination cannot be called: ${reason}.`)
    },
  }
}

const TOKENS = /^\/(?:v2\/)?(?:tokens|token-intents)(?![^/?])/

/** The data of tokens in a body. A body that describes no tokens may be data as a whole, such as that of a proxy. */
function listData(target: string, body: Uint8Array): unknown[] {
  if (body.length === 0) return []
  const text = Buffer.from(body).toString()
  const value = tryJson(text) ?? text
  return TOKENS.test(target) ? listDataOf(value) : [value]
}

function listDataOf(value: unknown): unknown[] {
  if (!isObject(value)) return [value]
  const { id, data, pagination } = value
  if (pagination !== undefined && Array.isArray(data)) return data.flatMap(listDataOf)
  if (data !== undefined) return [data]
  return id === undefined ? [value] : []
}
