/**
 * Idempotency keys. The answer to a request with a key is stored for 24 hours, in the unit of work that does what was
 * asked, and a repeated request gets it again.
 */

import { type Permission, stricterTransform } from '../../domain/access/permissions.js'
import type { AnswerRecord, AnswerSubject, Grants } from '../../domain/records/answer-record.js'
import { CofferError, validationError } from '../../errors.js'
import type { StoreReader } from '../../storage/store.js'
import type { Caller } from '../caller/caller.js'
import type { Host } from '../host.js'
import type { AnyOperation, AuditEntry, Context, OperationInput } from '../operation.js'
import type { Outcome } from '../outcome.js'
import { JsonText, type Recipient } from '../recipient.js'
import { type Schema, showsOnce, withoutShownOnce } from '../schema.js'
import { insertAnswer, readSubjects, removeAnswer, SUBJECT_KINDS } from './answer-records.js'

const MOST_ANSWER_BYTES = 4 * 1024 * 1024
/** Code of a reactor can reach more. */
const MOST_SUBJECTS = 10_000

export interface KeyedRequest {
  definition: AnyOperation
  input: OperationInput
  key: string
  recipient: Recipient
}

/**
 * Replays the answer stored for the key, else runs `work`, which stores its answer by the {@link IdempotentAnswer}.
 * @throws CofferError `conflict` while the first request runs, `forbidden` if the caller has lost access, those of `work`
 */
export async function runIdempotent(
  host: Host,
  caller: Caller,
  request: KeyedRequest,
  work: (answer: IdempotentAnswer) => Promise<Outcome>,
): Promise<Outcome> {
  const { definition, recipient } = request
  const { tenant } = caller
  const scope = formatScope(caller, request)
  const isLong = definition.runDetached !== undefined
  const claim = await host.claims.take(tenant, scope, { isLong })
  if (claim === undefined)
    throw new CofferError('conflict', 'The first request with this idempotency key is still running.')
  try {
    const { id, stored, isWhole } = await host.store.read(async (reader) => {
      const id = await host.hashSecret(scope, reader)
      const stored = await reader.get('answer', tenant, id)
      return { id, stored, isWhole: stored && (await checkWhole(reader, caller, definition, stored)) }
    })
    if (stored !== undefined && isWhole) return replay(stored, recipient)
    return await work(new IdempotentAnswer(definition, id, stored))
  } finally {
    await claim.end()
  }
}

/** Caller, path and key. A session has a scope of its own. */
function formatScope({ tenant, actor, session }: Caller, { definition, input, key }: KeyedRequest): string {
  const { route = '' } = definition
  const inPath = [...route.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => String(input[name!]))
  return JSON.stringify(['answer', tenant, actor.type, actor.id, session?.id ?? '', route, inPath, key])
}

/** Whether all that the answer is about still exists. @throws CofferError `forbidden` if the caller has lost access */
async function checkWhole(
  reader: StoreReader,
  caller: Caller,
  definition: AnyOperation,
  answer: AnswerRecord,
) {
  const subjects = await readSubjects(reader, caller.tenant, answer)
  let hasLost = false
  for (const { kind, id, granted } of subjects ?? []) {
    const record = await reader.get(kind, caller.tenant, id)
    if (record === undefined) return false
    if ('containers' in record && granted !== undefined)
      hasLost ||= isLess(grantsOn(caller, definition, id, record.containers), granted)
  }
  if (!hasLost) return subjects !== undefined
  throw new CofferError(
    'forbidden',
    'The answer kept for this idempotency key contains a token for which the permissions are no longer granted.',
  )
}

function isLess(now: Grants, before: Grants): boolean {
  return Object.entries(before).some(([permission, transform]) => {
    const present = now[permission as Permission]
    return present === undefined || stricterTransform(present, transform) !== transform
  })
}

/** Returns what the operation's permissions, and token:read, grant on a token. */
function grantsOn(
  caller: Caller,
  { permissions = [], needsOnePermission }: AnyOperation,
  id: string,
  containers: readonly string[],
): Grants {
  const [first, second] = permissions
  const grants: Grants = {}
  for (const permission of new Set<Permission>([...permissions, 'token:read'])) {
    if (needsOnePermission && permission === second) continue
    const orBy = needsOnePermission && permission === first ? second : undefined
    const transform = caller.transform(permission, { id, containers }, orBy)
    if (transform !== undefined) grants[permission] = transform
  }
  return grants
}

function replay({ status, headers, body }: AnswerRecord, { wantsText, reserve }: Recipient): Outcome {
  const answer = { status, ...(headers && { headers }), isReplayed: true } as const
  if (body === undefined) return { ...answer, result: undefined }
  const json = new JsonText(undefined, body)
  reserve(json.bytes)
  return { ...answer, result: wantsText && headers === undefined ? json : json.toJSON() }
}

/** Returns the body to be stored, without what is shown once. */
function encodeBody(output: Schema, result: unknown): JsonText | undefined {
  if (result === undefined) return undefined
  if (!showsOnce(output)) return result instanceof JsonText ? result : new JsonText(result)
  return new JsonText(withoutShownOnce(output, result instanceof JsonText ? result.toJSON() : result))
}

/** Stores the answer of one operation, and collects what the answer is about. */
export class IdempotentAnswer {
  /** Whether a unit of work that stores the answer was committed. */
  isStored = false
  readonly #definition: AnyOperation
  readonly #id: string
  readonly #stale: AnswerRecord | undefined
  readonly #earlier: AuditEntry[] = []

  /** @param stale a stored answer that cannot be replayed, because something that it is about is gone */
  constructor(definition: AnyOperation, id: string, stale: AnswerRecord | undefined) {
    this.#definition = definition
    this.#id = id
    this.#stale = stale
  }

  /** Adds what a committed unit of work recorded. */
  addRecorded(recorded: readonly AuditEntry[]): void {
    // The containers of a token may change before the answer is stored.
    this.#earlier.push(...recorded.map(({ containers: _, ...entity }) => entity))
  }

  /**
   * Stores the answer in the unit of work of `context`; not an error, and not an answer about something that is gone.
   * @throws CofferError `validation` for one that is too large, `conflict` if another server has stored one meanwhile
   */
  async store({ store, caller }: Context, recorded: readonly AuditEntry[], outcome: Outcome): Promise<void> {
    const { status, headers, result } = outcome
    const { tenant, actor } = caller
    if (status >= 300) return
    const subjects: AnswerSubject[] = []
    for (const { kind, id, containers } of listSubjects(caller, [...this.#earlier, ...recorded])) {
      const isKnown = containers !== undefined || (kind === 'application' && id === actor.id)
      const found = isKnown ? { containers } : await store.get(kind, tenant, id)
      if (found === undefined) return
      const present = 'containers' in found ? found.containers : undefined
      subjects.push({ kind, id, granted: present && grantsOn(caller, this.#definition, id, present) })
    }
    const json = encodeBody(this.#definition.output ?? {}, result)
    if ((json?.bytes ?? 0) > MOST_ANSWER_BYTES || subjects.length > MOST_SUBJECTS)
      throw validationError(
        'The answer is too large to be kept: at most 4 MiB, about 10,000 tokens. Ask for less, or without the idempotency key.',
      )
    const type = headers?.['content-type']
    const stored = headers && (type === undefined ? {} : { 'content-type': type })
    await this.#removeStale(store, tenant)
    await insertAnswer(store, tenant, { id: this.#id, status, headers: stored, body: json?.text, subjects })
  }

  /** Leaves an answer that another server has stored meanwhile. */
  async #removeStale(store: Context['store'], tenant: number): Promise<void> {
    if (this.#stale === undefined) return
    const present = await store.get('answer', tenant, this.#id)
    if (JSON.stringify(present) === JSON.stringify(this.#stale)) await removeAnswer(store, tenant, this.#id)
  }
}

type Subject = Pick<AnswerSubject, 'kind' | 'id'> & Pick<AuditEntry, 'containers'>

/** Includes the application that asks. */
function listSubjects({ actor }: Caller, recorded: readonly AuditEntry[]): Iterable<Subject> {
  const subjects = new Map<string, Subject>()
  if (actor.type === 'application')
    subjects.set(`application/${actor.id}`, { kind: 'application', id: actor.id })
  for (const { type, id, as, containers } of recorded) {
    const kind = SUBJECT_KINDS[type]
    if (kind === undefined) continue
    if (as?.operation === 'delete') subjects.delete(`${kind}/${id}`)
    else subjects.set(`${kind}/${id}`, { kind, id, containers })
  }
  return subjects.values()
}
