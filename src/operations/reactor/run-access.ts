/** The access that the code of a run has to this server, with the key of the run or without this key. */
import { RUN_KEY } from '../../domain/access/application.js'
import { isObject, tryJson } from '../../domain/json/json.js'
import type { HeaderMap } from '../../domain/proxy/code-answer.js'
import type { GivenData } from '../../domain/reactor/printed.js'
import type { Secrets } from '../../domain/text/secrets.js'
import { CofferError } from '../../errors.js'
import type { SubjectCollector } from '../../framework/audit-entry.js'
import { type Caller, noRevealCaller } from '../../framework/caller/caller.js'
import type { RunKey, Session } from '../../framework/context.js'
import { answerWhole, type Destination, type OutboundRequest } from '../../framework/ports/outbound.js'
import type { OwnCall } from '../../framework/ports/own-server.js'
import { MAX_ANSWER_BYTES, type RunAccess } from '../../framework/ports/reactors.js'
import type { StoreReader } from '../../storage/store.js'

interface Noting {
  /** Collects the data that the answer of the run must not contain. Used only in no-reveal mode. */
  secrets: Secrets | undefined
  /** Collects the data that is redacted in the stored output of the run. */
  given: GivenData | undefined
}

/** `actor`: the caller that the code acts as. Without an actor, the run has no key. */
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
  let isInProgress = false

  const requireKey = () => {
    if (isKey === undefined) throw new CofferError('unauthenticated', 'The run of this key has ended.')
  }
  const requireRun = () => {
    if (!isInProgress) throw new CofferError('unauthenticated', 'The run that sent this request has ended.')
  }

  /** Returns a caller that loses its rights when the run ends, even for requests in progress. */
  const asRun = (caller: Caller): Caller => {
    const read = async (reader: StoreReader) => {
      requireKey()
      await session.requireRights(reader)
      return asRun((await caller.source?.read(reader)) ?? caller)
    }
    return { ...caller, isOfRun: true, source: { isCurrent: () => false, read } }
  }
  // Code that was started in no-reveal mode also runs in this mode, because the code could print data.
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

  /** Like `asRun`, but for a request without the key of the run. */
  const asOther = (caller: Caller): Caller => {
    const read = async (reader: StoreReader) => {
      requireRun()
      return asOther((await caller.source?.read(reader)) ?? caller)
    }
    const marked = { ...caller, isOfRun: true, source: { isCurrent: () => false, read } } as const
    return session.caller.isNoReveal ? noRevealCaller(marked) : marked
  }

  const createDestination = (as: Pick<OwnCall, 'identify' | 'asRun' | 'outer'>): Destination => ({
    async send(request, { sent, left }) {
      const headers = { ...request.headers, [`${ownServer.prefix()}-trace-id`]: traceId }
      sent()
      const answer = await ownServer.send({ ...request, headers }, { ...as, left })
      const body = await answer.collect(MAX_ANSWER_BYTES)
      note(request, answer.headers, body)
      return answerWhole(answer.status, answer.headers, body)
    },
  })

  const own = () => createDestination({ identify, asRun: restrict, outer: session.subjects })
  /** The destination for a request with a different key, or without a key. */
  const other = () => {
    let isOfTenant = false
    const outer = session.subjects && subjectsIf(session.subjects, () => isOfTenant)
    const asRun = (caller: Caller) => {
      isOfTenant = caller.tenant === session.caller.tenant
      return asOther(caller)
    }
    return createDestination({ asRun, outer })
  }

  return {
    begin() {
      isInProgress = true
      if (actor === undefined) return { baseUrl, environment: baseUrl }
      const made = session.createRunKey()
      isKey = made.isKey
      const secret = made.key.slice(RUN_KEY.length)
      secrets?.add(secret)
      given?.add(secret)
      return { apiKey: made.key, baseUrl, environment: baseUrl }
    },
    end() {
      isInProgress = false
      isKey = undefined
    },
    reach(url, headers, outbound) {
      const isNamed = named.includes(url.origin)
      if (!isNamed && !origins.includes(url.origin)) return undefined
      if (headers === undefined) {
        if (!isNamed) return undefined
        // Another server on the network may have this name. Coffer never sends the request to that server.
        const reason =
          'this name means this server (--own-host), and a redirect to this server is not followed'
        throw new CofferError('forbidden', `The destination cannot be called: ${reason}.`)
      }
      if (isKey?.(headers[`${ownServer.prefix()}-api-key`] ?? '')) return own()
      outbound.requireListed(url)
      return other()
    },
  }
}

/**
 * Adds subjects only while `isOfTenant` returns true. A stored answer of one tenant must not name records of
 * another tenant.
 */
function subjectsIf(subjects: SubjectCollector, isOfTenant: () => boolean): SubjectCollector {
  return {
    addRecorded: (recorded) => {
      if (isOfTenant()) subjects.addRecorded(recorded)
    },
    addSubjects: (added) => {
      if (isOfTenant()) subjects.addSubjects(added)
    },
  }
}

const TOKENS = /^\/(?:v2\/)?(?:tokens|token-intents|network-tokens)(?![^/?])/

/**
 * Returns the data of tokens in the body of a request or an answer. If `target` is not a path of tokens, returns the
 * whole body, because the body of a proxy call, for example, may contain data anywhere.
 */
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
