/**
 * Reads sessions of 3-D Secure for the page: their steps, who did each step, and whether a challenge waits for a
 * decision.
 */
import { formatDate } from '../domain/dates.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import type { LogRecord, ThreeDsSessionRecord } from '../domain/records/records.js'
import { describeScenario, type Scenario, scenarioOf } from '../domain/threeds/scenarios.js'
import { isChallenged, isFinal, isPending, settle, shownResult } from '../domain/threeds/session.js'
import { type StepName, stepOf } from '../domain/threeds/steps.js'
import { requireSession, THREE_DS } from '../operations/3ds/changes.js'
import type { StoreReader } from '../storage/store.js'
import type { Place } from './place.js'

const LIST_SIZE = 100
const MAX_STEPS = 200

export type SessionList = Awaited<ReturnType<typeof listSessions>>
export type SessionSummary = SessionList['data'][number]

/** Newest first. The audit log does not record this read. */
export function listSessions({ control: { app, lock }, tenant }: Place) {
  return lock.shared(async () => {
    const { number } = await app.tenant(tenant)
    return app.store.read(async (reader) => {
      const { records, total } = await reader.find(THREE_DS, number, { page: 1, size: LIST_SIZE })
      return { data: records.map((record) => summarize(settle(record, reader.now))), total }
    })
  })
}

/** `waiting`: a challenge waits for the cardholder. `ended`: nobody has retrieved the result of the challenge yet. */
function stateOf(session: ThreeDsSessionRecord) {
  if (session.authentication === undefined) return 'created' as const
  if (isPending(session)) return 'waiting' as const
  if (isChallenged(session) && !isFinal(session)) return 'ended' as const
  return shownResult(session.authentication).status
}

function summarize(session: ThreeDsSessionRecord) {
  const { id, type, device, brands, created_at } = session
  return { id, type, ...omitUndefined({ device }), brands, created_at, state: stateOf(session) }
}

/** A step without `trace_id` has no log record: the clock or a setting caused the step. */
export interface SessionStep extends Partial<Pick<LogRecord, 'actor_id' | 'actor_type' | 'trace_id'>> {
  name: StepName
  at: string
}

export type SessionDetail = Awaited<ReturnType<typeof readSession>>

/**
 * Steps are oldest first. The audit log does not record this read.
 * @throws CofferError `not_found`
 */
export function readSession({ control: { app, lock }, tenant }: Place, id: string) {
  return lock.shared(async () => {
    const { number } = await app.tenant(tenant)
    return app.store.read(async (reader) => {
      const session = settle(await requireSession(reader, number, id), reader.now)
      const { token_id, token_intent_id, metadata, expires_at, authentication, method } = session
      return {
        ...summarize(session),
        ...omitUndefined({ token_id, token_intent_id, metadata, expires_at }),
        scenario: explainScenario(session),
        method: method ?? ('none' as const),
        lacksDevice: session.device === 'app' && session.device_info === undefined,
        isRedirect: session.redirect !== undefined,
        ...(authentication && { authentication: describeAuthentication(authentication) }),
        steps: completeSteps(session, await readSteps(reader, number, id)),
      }
    })
  })
}

function explainScenario({ scenario: name }: ThreeDsSessionRecord) {
  const { final, failsAt }: Scenario = scenarioOf(name)
  return { name, text: describeScenario(name), ...omitUndefined({ final, failsAt }) }
}

function describeAuthentication({ first, challenge }: NonNullable<ThreeDsSessionRecord['authentication']>) {
  if (challenge === undefined) return { first }
  const { kind, isOpened, attempts, until, ended, endedBy } = challenge
  return {
    first,
    challenge: { kind, isOpened: isOpened === true, attempts, until, ...omitUndefined({ ended, endedBy }) },
  }
}

async function readSteps(reader: StoreReader, tenant: number, id: string): Promise<SessionStep[]> {
  const where = {
    and: [
      { field: 'type', value: THREE_DS },
      { field: 'entity', value: id },
    ],
  }
  const { records } = await reader.find('log', tenant, { where, page: 1, size: MAX_STEPS })
  return records.toReversed().flatMap((record) => {
    const name = stepOf(record.message)
    const { actor_id, actor_type, trace_id, created_at: at } = record
    return name === undefined ? [] : [{ name, at, ...omitUndefined({ actor_id, actor_type, trace_id }) }]
  })
}

/** Adds the end of a challenge that the clock or a setting ended, because the log has no record of this end. */
function completeSteps({ authentication }: ThreeDsSessionRecord, steps: SessionStep[]): SessionStep[] {
  const { ended, endedBy, until } = authentication?.challenge ?? {}
  if (ended === undefined || until === undefined || steps.some(({ name }) => name === 'ended')) return steps
  const begun = steps.findIndex(({ name }) => name === 'authenticated')
  const at = endedBy === 'clock' ? formatDate(until) : steps[begun]?.at
  if (at === undefined) return steps
  const end: SessionStep = { name: 'ended', at, actor_type: 'system' }
  const later = steps.findIndex((step, place) => place > begun && (endedBy !== 'clock' || step.at >= at))
  return steps.toSpliced(later === -1 ? steps.length : later, 0, end)
}
