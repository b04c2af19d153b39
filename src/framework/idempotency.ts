/**
 * Idempotency keys. The answer to a request with a key is kept for 24 hours, in the unit of work that does what was
 * asked, and the same request with the same key gets it again: so a retry never does it twice. A kept answer goes with
 * each token, reactor and application that it is about.
 */

import type { Target } from '../domain/access.js'
import type { AnswerRecord, AnswerSubject } from '../domain/answer-record.js'
import { type Permission, stricterTransform, type Transform } from '../domain/permissions.js'
import type { TokenRecord } from '../domain/records.js'
import { CofferError, validationError } from '../errors.js'
import { isPromise, type MaybePromise } from '../maybe-promise.js'
import type { StoreReader, StoreWriter } from '../storage/store.js'
import type { Caller } from './caller.js'
import type { Host } from './host.js'
import { dropAnswers, insertAnswer, readSubjects, removeAnswer, showAs } from './kept-answers.js'
import type { AnyOperation, Context, OperationInput, ReachedEntity } from './operation.js'
import type { Outcome } from './outcome.js'
import { JsonText, type Recipient } from './recipient.js'
import { type Schema, showsOnce, withoutShownOnce } from './schema.js'

const MOST_KEPT_BYTES = 4 * 1024 * 1024
/** What an answer may be about at most; a reactor's code can reach more. */
const MOST_SUBJECTS = 10_000

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
  const answerId = host.digest(scope)
  const workAfterLook = async (failure?: { error: unknown }) => {
    const { kept, answer } = await host.store.read(async (reader) => {
      const kept = await reader.get('answer', caller.tenant, answerId)
      return { kept, answer: kept && (await findWhole(reader, caller, definition, kept)) }
    })
    if (answer !== undefined) return readAnswer(answer, recipient)
    if (kept === undefined && failure !== undefined) throw failure.error
    return work(new Keeping(answerId, definition, kept !== undefined))
  }
  try {
    // Work that is one unit fails there if an answer is kept: usually none is, and the look for it is saved.
    if (isLong) return await workAfterLook()
    return await work(new Keeping(answerId, definition, false))
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

/**
 * The answer with its body, if everything that it is about still exists.
 * @throws CofferError `forbidden` if the caller could do less with a token today
 */
async function findWhole(
  reader: StoreReader,
  caller: Caller,
  definition: AnyOperation,
  answer: AnswerRecord,
): Promise<AnswerRecord | undefined> {
  const listed = await readSubjects(reader, caller.tenant, answer)
  if (listed === undefined) return undefined
  let { body } = answer
  const { view } = answer
  const subjects: AnswerSubject[] = view === undefined ? listed : [...listed, { kind: 'token', ...view }]
  const present: { granted: Grants; now: Grants }[] = []
  for (const { kind, id, granted } of subjects) {
    const record = await reader.get(kind, caller.tenant, id)
    if (record === undefined) return undefined
    if (!('containers' in record) || granted === undefined) continue
    present.push({ granted, now: grantsOn(caller, definition, record) })
    if (view === undefined) continue
    // Another token may have got the id.
    if ((record as TokenRecord).answer_id !== answer.id) return undefined
    body = JSON.stringify(showAs(view, record as TokenRecord, definition.viewWritten!))
  }
  if (present.some(({ granted, now }) => isLess(now, granted)))
    throw new CofferError(
      'forbidden',
      'The answer kept for this idempotency key contains a token for which the permissions are no longer granted.',
    )
  return { ...answer, body }
}

const READ: Permission = 'token:read'

type Grants = Partial<Record<Permission, Transform>>

/** What the operation's permissions, and token:read, grant on a token. */
function grantsOn(
  caller: Caller,
  { permissions = [], needsOnePermission }: AnyOperation,
  { id, containers }: Target,
): Grants {
  const [first, second] = permissions
  const grants: Grants = {}
  for (const permission of permissions.includes('token:read') ? permissions : [...permissions, READ]) {
    if (needsOnePermission && permission === second) continue
    const orBy = needsOnePermission && permission === first ? second : undefined
    const transform = caller.transform(permission, { id, containers }, orBy)
    if (transform !== undefined) grants[permission] = transform
  }
  return grants
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

const SUBJECTS: Readonly<Record<string, AnswerSubject['kind']>> = {
  token: 'token',
  card: 'token',
  bank: 'token',
  reactor: 'reactor',
  application: 'application',
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

/** The body to be kept, without what is shown once. */
function toKeptJson(output: Schema, result: unknown): JsonText | undefined {
  if (result === undefined) return undefined
  if (!showsOnce(output)) return result instanceof JsonText ? result : new JsonText(result)
  return new JsonText(withoutShownOnce(output, result instanceof JsonText ? result.toJSON() : result))
}

type Subject = Pick<AnswerSubject, 'kind' | 'id'> & Pick<ReachedEntity, 'containers'>

/** Keeps the answer of one operation, with what it was about. */
export class Keeping {
  /** Whether a unit of work that keeps the answer was committed. */
  isDone = false
  readonly #answerId: string
  readonly #definition: AnyOperation
  readonly #isStale: boolean
  /** What earlier units of work reached. */
  readonly #earlier: ReachedEntity[] = []

  /** @param isStale an answer is kept, but something that it is about is gone */
  constructor(answerId: string, definition: AnyOperation, isStale: boolean) {
    this.#answerId = answerId
    this.#definition = definition
    this.#isStale = isStale
  }

  /** Notes what a committed unit of work reached. */
  note(reached: readonly ReachedEntity[]): void {
    // The containers of a token may change before the answer is kept.
    this.#earlier.push(...reached.map(({ containers: _, ...entity }) => entity))
  }

  /**
   * Begins the unit of work in which the answer is kept.
   * @throws CofferError `conflict` if one is kept already
   */
  begin(store: StoreWriter, tenant: number): MaybePromise<void> {
    const id = this.#answerId
    if (!this.#isStale) return store.makeRoom('answer', tenant, id)
    return removeAnswer(store, tenant, id).then(() => store.makeRoom('answer', tenant, id))
  }

  /** The id of the answer for the token that the unit writes, if the answer may be kept as the view of it. */
  get viewId(): string | undefined {
    return this.#definition.viewWritten && this.#answerId
  }

  /**
   * Keeps the answer in the unit of work of `context`, which reached `reached`; not if it is about something that is
   * gone.
   * @throws CofferError `validation` for one that is too large
   */
  keep(context: Context, reached: readonly ReachedEntity[], outcome: Outcome): MaybePromise<void> {
    const { status, result } = outcome
    if (status >= 300) return
    const { store, caller } = context
    const isView = this.viewId !== undefined && status === 201 && caller.dependsOnId !== true
    const { id = '', containers } = (isView && reached[0]) || {}
    if (containers === undefined) return this.#keepCopy(context, reached, outcome)
    refuseTooLarge(toKeptJson({}, result))
    const view = { id, granted: grantsOn(caller, this.#definition, { id, containers }) }
    return insertAnswer(store, caller.tenant, { id: this.#answerId, status, view, subjects: actorOf(caller) })
  }

  async #keepCopy(
    { store, caller }: Context,
    reached: readonly ReachedEntity[],
    { status, headers, result }: Outcome,
  ): Promise<void> {
    const { tenant } = caller
    const subjects: AnswerSubject[] = []
    for (const { kind, id, containers } of listSubjects(caller, [...this.#earlier, ...reached])) {
      const isKnown = containers !== undefined || (kind === 'application' && id === caller.actor.id)
      const found = isKnown ? { containers } : await store.get(kind, tenant, id)
      if (found === undefined) return
      const present = 'containers' in found ? found.containers : undefined
      const granted = present && grantsOn(caller, this.#definition, { id, containers: present })
      subjects.push({ kind, id, granted })
    }
    const json = toKeptJson(this.#definition.output ?? {}, result)
    refuseTooLarge(json, subjects.length)
    const type = headers?.['content-type']
    const kept = headers && (type === undefined ? {} : { 'content-type': type })
    const answer = { id: this.#answerId, status, headers: kept, body: json?.text, subjects }
    await insertAnswer(store, tenant, answer)
  }
}

/** @throws CofferError `validation` */
function refuseTooLarge(json: JsonText | undefined, subjects = 1): void {
  if ((json?.bytes ?? 0) <= MOST_KEPT_BYTES && subjects <= MOST_SUBJECTS) return
  throw validationError(
    'The answer is too large to be kept: at most 4 MiB, about 10,000 tokens. Ask for less, or without the idempotency key.',
  )
}

/** The application that asks, as one that the answer goes with. */
function actorOf({ actor: { type, id } }: Caller): AnswerSubject[] {
  return type === 'application' ? [{ kind: type, id }] : []
}

function listSubjects(caller: Caller, reached: readonly ReachedEntity[]): Iterable<Subject> {
  const subjects = new Map<string, Subject>()
  for (const subject of actorOf(caller)) subjects.set(`application/${subject.id}`, subject)
  for (const { type, id, as, containers } of reached) {
    const kind = SUBJECTS[type]
    if (kind === undefined) continue
    if (as?.operation === 'delete') subjects.delete(`${kind}/${id}`)
    else subjects.set(`${kind}/${id}`, { kind, id, containers })
  }
  return subjects.values()
}
