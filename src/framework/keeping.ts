/** Keeps the answer of an operation for its idempotency key, in the unit of work that does what was asked. */
import type { Target } from '../domain/access.js'
import type { AnswerRecord, AnswerSubject, Grants } from '../domain/answer-record.js'
import type { Permission } from '../domain/permissions.js'
import { CofferError, validationError } from '../errors.js'
import { isPromise, type MaybePromise } from '../maybe-promise.js'
import type { StoreReader, StoreWriter } from '../storage/store.js'
import type { Caller } from './caller.js'
import { insertAnswer, removeAnswer } from './kept-answers.js'
import type { AnyOperation, Context, ReachedEntity, TokenAnswer } from './operation.js'
import type { Outcome } from './outcome.js'
import { JsonText } from './recipient.js'
import { type Schema, showsOnce, withoutShownOnce } from './schema.js'

const MOST_KEPT_BYTES = 4 * 1024 * 1024
/** What an answer may be about at most; a reactor's code can reach more. */
const MOST_SUBJECTS = 10_000

/** Kinds of what a kept answer goes with, by type of entity. */
export const SUBJECTS: Readonly<Record<string, AnswerSubject['kind']>> = {
  token: 'token',
  card: 'token',
  bank: 'token',
  reactor: 'reactor',
  application: 'application',
}

const READ: Permission = 'token:read'

/** What the operation's permissions, and token:read, grant on a token. */
export function grantsOn(
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
  /** Whether a token may not have the id of the answer: another has it, or had it. */
  isIdTaken = false
  readonly #definition: AnyOperation
  readonly #nameAnswer: (reader: StoreReader) => Promise<string>
  readonly #found: { kept: AnswerRecord | undefined } | undefined
  /** What earlier units of work reached. */
  readonly #earlier: ReachedEntity[] = []
  #id = ''
  #isInToken = false

  /**
   * @param found what is kept under the id, if that was looked at: an answer that cannot be given again, or nothing, though
   *   a token may have the id
   */
  constructor(
    definition: AnyOperation,
    nameAnswer: (reader: StoreReader) => Promise<string>,
    found?: { kept: AnswerRecord | undefined },
  ) {
    this.#definition = definition
    this.#nameAnswer = nameAnswer
    this.#found = found
  }

  /** Notes what a committed unit of work reached. */
  note(reached: readonly ReachedEntity[]): void {
    // The containers of a token may change before the answer is kept.
    this.#earlier.push(...reached.map(({ containers: _, ...entity }) => entity))
  }

  /** Begins the unit in which the answer is kept. @throws CofferError `conflict` if one is kept already */
  async begin(store: StoreWriter, tenant: number): Promise<void> {
    const id = await this.#nameAnswer(store)
    this.#id = id
    this.#isInToken = false
    if (this.#found !== undefined) await this.#removeFound(store, tenant, this.#found.kept)
    const room = store.makeRoom('answer', tenant, id)
    const free = this.#definition.viewWritten === undefined || store.isFree('token', tenant, id)
    const [, isFree] = isPromise(room) || isPromise(free) ? await Promise.all([room, free]) : [room, free]
    this.isIdTaken = !isFree || this.#found !== undefined
    if (!this.isIdTaken || this.#found !== undefined) return
    throw new CofferError('conflict', 'A token has the id that belongs to this idempotency key.')
  }

  /** Not if another server has put its answer in the place meanwhile. */
  async #removeFound(store: StoreWriter, tenant: number, kept: AnswerRecord | undefined): Promise<void> {
    const present = await store.get('answer', tenant, this.#id)
    if (present === undefined || JSON.stringify(present) !== JSON.stringify(kept)) return
    await removeAnswer(store, tenant, this.#id)
  }

  /** What a token takes that the unit of `caller` creates under an id of its own choice, to be the answer itself. */
  inToken(caller: Caller): TokenAnswer | undefined {
    const id = this.#id
    const definition = this.#definition
    if (definition.viewWritten === undefined || this.isIdTaken || caller.dependsOnId === true)
      return undefined
    const grant = (containers: readonly string[]) => {
      this.#isInToken = true
      return grantsOn(caller, definition, { id, containers })
    }
    return { id, grant }
  }

  /**
   * Keeps the answer in the unit of work of `context`, which reached `reached`; not if it is about something that is
   * gone.
   * @throws CofferError `validation` for one that is too large
   */
  keep(context: Context, reached: readonly ReachedEntity[], outcome: Outcome): MaybePromise<void> {
    if (outcome.status >= 300) return
    if (this.#isInToken) refuseTooLarge(toKeptJson({}, outcome.result))
    else return this.#keepCopy(context, reached, outcome)
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
    const answer = { id: this.#id, status, headers: kept, body: json?.text, subjects }
    // An expired token with the id, purged by this unit, has left a record there.
    if (this.isIdTaken) await removeAnswer(store, tenant, this.#id)
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

/** With the application that asks. */
function listSubjects({ actor }: Caller, reached: readonly ReachedEntity[]): Iterable<Subject> {
  const subjects = new Map<string, Subject>()
  if (actor.type === 'application')
    subjects.set(`application/${actor.id}`, { kind: 'application', id: actor.id })
  for (const { type, id, as, containers } of reached) {
    const kind = SUBJECTS[type]
    if (kind === undefined) continue
    if (as?.operation === 'delete') subjects.delete(`${kind}/${id}`)
    else subjects.set(`${kind}/${id}`, { kind, id, containers })
  }
  return subjects.values()
}
