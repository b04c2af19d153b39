/**
 * Idempotency keys. The answer to a request with a key is kept for 24 hours, in the unit of work that does what was
 * asked, and the same request with the same key gets it again: so a retry never does it twice. A kept answer goes with
 * each token, reactor and application that it is about.
 */
import type { AnswerRecord, Grants } from '../domain/answer-record.js'
import { type Permission, stricterTransform } from '../domain/permissions.js'
import { CofferError } from '../errors.js'
import { isPromise } from '../maybe-promise.js'
import type { StoreReader, StoreWriter } from '../storage/store.js'
import type { Caller } from './caller.js'
import type { Host } from './host.js'
import { grantsOn, Keeping, SUBJECTS } from './keeping.js'
import { answerOf, dropAnswers, GONE, readSubjects } from './kept-answers.js'
import type { AnyOperation, OperationInput, ReachedEntity } from './operation.js'
import type { Outcome } from './outcome.js'
import { JsonText, type Recipient } from './recipient.js'

export interface KeyedRequest {
  definition: AnyOperation
  input: OperationInput
  key: string
  recipient: Recipient
}

/**
 * The answer kept for the key, else what `work` answers, which is to keep it with the {@link Keeping} that it is given.
 * @throws CofferError `conflict` while the first request runs, `forbidden`, those of `work`
 */
export async function answerOnce(
  host: Host,
  caller: Caller,
  request: KeyedRequest,
  work: (keeping: Keeping) => Promise<Outcome>,
): Promise<Outcome> {
  const scope = spellScope(caller, request)
  // Of work that is one unit the kept answer refuses the second by itself.
  const isLong = request.definition.runDetached !== undefined
  const taking = host.claims.take(caller.tenant, scope, { isLong })
  const claim = isPromise(taking) ? await taking : taking
  if (claim === undefined)
    throw new CofferError('conflict', 'The first request with this idempotency key is still running.')
  const { definition, recipient } = request
  const nameAnswer = (reader: StoreReader) => host.deriveUuid(scope, reader)
  const first = new Keeping(definition, nameAnswer)
  const workAfterLook = async (failure?: { error: unknown }) => {
    const { kept, answer } = await host.store.read(async (reader) => {
      const kept = await findKept(reader, caller.tenant, definition, await nameAnswer(reader))
      return { kept, answer: kept && (await findWhole(reader, caller, definition, kept)) }
    })
    if (answer !== undefined) return readAnswer(answer, recipient)
    if (kept === undefined && failure !== undefined && !first.isIdTaken) throw failure.error
    return work(new Keeping(definition, nameAnswer, { kept }))
  }
  try {
    // Work that is one unit fails there if an answer is kept: usually none is, and the look for it is saved.
    if (isLong) return await workAfterLook()
    return await work(first)
  } catch (error) {
    if (isLong) throw error
    return await workAfterLook({ error })
  } finally {
    const ending = claim.end()
    if (isPromise(ending)) await ending
  }
}

/** Caller, method, path and key. A session is a scope of its own. */
function spellScope({ tenant, actor, session }: Caller, { definition, input, key }: KeyedRequest): string {
  const { route = '' } = definition
  const named = route.includes('{') ? [...route.matchAll(/\{([a-z_]+)\}/g)] : []
  const inPath = named.map(([, name]) => String(input[name!]))
  return JSON.stringify(['answer', tenant, actor.type, actor.id, session?.id ?? '', route, inPath, key])
}

/** The answer with the id: a record of its own, or the token that it is about. */
async function findKept(reader: StoreReader, tenant: number, { viewWritten }: AnyOperation, id: string) {
  const kept = await reader.get('answer', tenant, id)
  if (kept !== undefined || viewWritten === undefined) return kept
  const token = await reader.get('token', tenant, id)
  return token && answerOf(token, reader.now, viewWritten)
}

/** The answer, if all it is about still exists. @throws CofferError `forbidden` if the caller could do less today */
async function findWhole(
  reader: StoreReader,
  caller: Caller,
  definition: AnyOperation,
  answer: AnswerRecord,
): Promise<AnswerRecord | undefined> {
  if (answer.status === GONE) return undefined
  const subjects = await readSubjects(reader, caller.tenant, answer)
  if (subjects === undefined) return undefined
  const present: { granted: Grants; now: Grants }[] = []
  for (const { kind, id, granted } of subjects) {
    const record = await reader.get(kind, caller.tenant, id)
    if (record === undefined) return undefined
    if (!('containers' in record) || granted === undefined) continue
    present.push({ granted, now: grantsOn(caller, definition, record) })
  }
  if (present.some(({ granted, now }) => isLess(now, granted)))
    throw new CofferError(
      'forbidden',
      'The answer kept for this idempotency key contains a token for which the permissions are no longer granted.',
    )
  return answer
}

function isLess(now: Grants, before: Grants): boolean {
  return Object.entries(before).some(([permission, transform]) => {
    const present = now[permission as Permission]
    return present === undefined || stricterTransform(present, transform) !== transform
  })
}

function readAnswer({ status, headers, body }: AnswerRecord, { wantsText, reserve }: Recipient): Outcome {
  const answer = { status, ...(headers && { headers }), isReplayed: true } as const
  if (body === undefined) return { ...answer, result: undefined }
  const json = new JsonText(undefined, body)
  reserve(json.bytes)
  return { ...answer, result: wantsText && headers === undefined ? json : json.toJSON() }
}

/** Removes the kept answers about what was deleted of `reached`. */
export async function dropAnswersAbout(
  store: StoreWriter,
  tenant: number,
  reached: readonly ReachedEntity[],
): Promise<void> {
  for (const { type, id, as } of reached) {
    const kind = SUBJECTS[type]
    if (as?.operation === 'delete' && kind !== undefined) await dropAnswers(store, tenant, { kind, id })
  }
}
