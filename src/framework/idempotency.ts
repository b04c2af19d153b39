/**
 * Stores answers to requests with an idempotency key, in the unit of work of the request. If a record that an answer
 * describes is deleted, the answer is deleted too.
 */
import { type Permission, stricterTransform } from '../domain/access/permissions.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { withoutRunKeys } from '../domain/reactor/run-key.js'
import type { AnswerRecord, AnswerSubject, Grants } from '../domain/records/answer-record.js'
import { SUBJECTS_OF_ROW } from '../domain/records/index-fields.js'
import type { EntityType } from '../domain/records/log-record.js'
import type { RecordOf, TokenRecord } from '../domain/records/records.js'
import { endsCode } from '../domain/token/card-code.js'
import { CofferError, validationError } from '../errors.js'
import type { StoreReader, StoreWriter } from '../storage/store.js'
import type { AuditEntry, SubjectCollector } from './audit-entry.js'
import { authorizeNow } from './caller/authorize.js'
import type { Caller } from './caller/caller.js'
import type { Context, OperationInput } from './context.js'
import type { Host } from './host.js'
import { firstEnd, withoutCodes } from './kept-answer.js'
import { EncodedJson, type ResponseLimits } from './limits.js'
import { type AnyOperation, isOneUnit } from './operation.js'
import type { Outcome } from './outcome.js'
import { type Schema, showsOnce, withoutShownOnce } from './schema.js'

const KEPT_MS = 24 * 60 * 60 * 1000
const MAX_ANSWER_BYTES = 4 * 1024 * 1024
const MAX_SUBJECTS = 10_000
const READ_AT_ONCE = 20
/**
 * At most this many answers are removed together with an application. The other answers expire later. Nobody can get
 * the other answers, because the id of a removed application is never used again.
 */
const MAX_OF_APPLICATION = 10_000

type Kind = AnswerSubject['kind']

const SUBJECT_KINDS: Readonly<Record<EntityType, Kind | undefined>> = {
  token: 'token',
  card: 'token',
  bank: 'token',
  token_intent: 'token_intent',
  reactor: 'reactor',
  reactor_formula: 'formula',
  application: 'application',
  proxy: 'proxy',
  webhook: 'webhook',
  invitation: 'invitation',
  key: 'client_key',
  threeds_session: 'threeds_session',
  account_updater_job: 'account_updater_job',
  merchant: 'merchant',
  network_token: 'network_token',
  google_pay: 'google_pay',
  apple_pay: 'apple_pay',
  google_pay_merchant: 'wallet_merchant',
  apple_pay_merchant: 'wallet_merchant',
  google_pay_certificate: 'wallet_certificate',
  apple_pay_certificate: 'wallet_certificate',
  document: 'document',
  member: undefined,
  tenant: undefined,
}

interface KeyedRequest {
  definition: AnyOperation
  input: OperationInput
  key: string
  limits: ResponseLimits
  outer?: SubjectCollector | undefined
}

/**
 * @throws CofferError `conflict` while another request with this key runs, or `forbidden` if the caller has lost access
 */
export async function runIdempotent(
  host: Host,
  caller: Caller,
  request: KeyedRequest,
  work: (answer: IdempotentAnswer) => Promise<Outcome>,
): Promise<Outcome> {
  const { definition, limits } = request
  const scope = formatScope(caller, request)
  const isLong = !isOneUnit(definition)
  const claim = await host.claims.take(caller.tenant, scope, { isLong })
  if (claim === undefined)
    throw new CofferError('conflict', 'The first request with this idempotency key is still running.', {
      retryAfterSeconds: 1,
    })
  try {
    const { id, stored, isUsable } = await host.store.read(async (reader) => {
      const id = await host.hashSecret(scope, reader)
      const current = await authorizeNow(caller, definition, reader)
      const stored = await reader.get('answer', caller.tenant, id)
      return { id, stored, isUsable: stored && (await checkSubjects(reader, current, definition, stored)) }
    })
    if (stored !== undefined && isUsable) {
      request.outer?.addSubjects(stored.subjects)
      return replay(stored, limits)
    }
    return await work(new IdempotentAnswer(definition, id, stored))
  } finally {
    await claim.end()
  }
}

/** Identifies a request by its caller, path and idempotency key. Each session has its own idempotency keys. */
function formatScope(
  { tenant, actor, session, isNoReveal, isOfRun, grants }: Caller,
  { definition, input, key }: KeyedRequest,
): string {
  const { route = '' } = definition
  const inPath = [...route.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => String(input[name!]))
  const who = [tenant, actor.type, actor.id, session?.id ?? '']
  // An answer that was stored outside of no-reveal mode could contain data that this mode hides.
  if (isNoReveal) who.push('no-reveal')
  // The code of a run can have other rights than the caller who started the run. Therefore the code never gets an
  // answer that was stored for this caller.
  if (isOfRun) who.push('run', JSON.stringify(grants))
  return JSON.stringify(['answer', ...who, route, inPath, key])
}

/**
 * Returns whether all records of the answer still exist.
 * @throws CofferError `forbidden` if the caller has lost access to a record of the answer
 */
async function checkSubjects(
  reader: StoreReader,
  caller: Caller,
  definition: AnyOperation,
  { subjects }: AnswerRecord,
): Promise<boolean> {
  let hasLost = false
  for (const { kind, id, granted = {} } of subjects) {
    const record = await reader.get(kind, caller.tenant, id)
    if (record === undefined) return false
    const present = grantsOn(caller, definition, record)
    hasLost ||= Object.entries(granted).some(([permission, before]) => {
      const now = present?.[permission as Permission]
      return now === undefined || stricterTransform(now, before) !== before
    })
  }
  if (!hasLost) return true
  throw new CofferError(
    'forbidden',
    'The stored answer for this idempotency key contains a token for which the earlier access is no longer granted.',
  )
}

/**
 * Returns the access to a token by the permissions of the operation and by token:read. Returns undefined if the record
 * is no token.
 */
function grantsOn(caller: Caller, { access }: AnyOperation, record: RecordOf[Kind]) {
  if (!('containers' in record)) return undefined
  const grants: Grants = {}
  for (const permission of new Set<Permission>([...access.permissions, 'token:read'])) {
    const transform = caller.transform(permission, record)
    if (transform !== undefined) grants[permission] = transform
  }
  return grants
}

function replay({ status, headers, body }: AnswerRecord, limits: ResponseLimits): Outcome {
  const answer = { status, ...(headers && { headers }), isReplayed: true } as const
  if (body === undefined) return { ...answer, result: undefined }
  const json = new EncodedJson(undefined, body)
  limits.reserve(json.bytes)
  return { ...answer, result: limits.wantsEncoded && headers === undefined ? json : json.toJSON() }
}

export class IdempotentAnswer implements SubjectCollector {
  isStored = false
  readonly #definition: AnyOperation
  readonly #id: string
  readonly #stale: AnswerRecord | undefined
  readonly #earlier: AuditEntry[] = []
  readonly #replayed: AnswerSubject[] = []

  /** @param stale a stored answer that cannot be replayed, because one of its records no longer exists */
  constructor(definition: AnyOperation, id: string, stale: AnswerRecord | undefined) {
    this.#definition = definition
    this.#id = id
    this.#stale = stale
  }

  addRecorded(recorded: readonly AuditEntry[]): void {
    this.#earlier.push(...recorded)
  }

  addSubjects(subjects: readonly AnswerSubject[]): void {
    this.#replayed.push(...subjects)
  }

  /**
   * Does not store an error, or an answer about a deleted record.
   * @throws CofferError `validation` if the answer is too large, or `conflict`
   */
  async store({ store, caller }: Context, recorded: readonly AuditEntry[], outcome: Outcome): Promise<void> {
    const { status, headers, result } = outcome
    if (status >= 400) return
    const found = await this.#findSubjects(store, caller, [...this.#earlier, ...recorded])
    if (found === undefined) return
    const { subjects, cards } = found
    const json = encodeBody(this.#definition.output ?? {}, result, cards)
    if ((json?.bytes ?? 0) > MAX_ANSWER_BYTES || subjects.length > MAX_SUBJECTS)
      throw validationError(
        'The answer is too large to be stored: at most 4 MiB, about 10,000 tokens. Send a smaller request, or omit the idempotency key.',
      )
    const { 'content-type': type, location } = headers ?? {}
    const kept = headers && omitUndefined({ 'content-type': type, location })
    const answer = { id: this.#id, status, headers: kept, body: json?.text, subjects }
    // Another server may have replaced the stale answer with a newer answer, which must stay.
    const stale = this.#stale && JSON.stringify(this.#stale)
    if (stale !== undefined && JSON.stringify(await store.get('answer', caller.tenant, this.#id)) === stale)
      await removeAnswer(store, caller.tenant, this.#id)
    // `encodeBody` removes verification codes from the data of cards, but not from other parts of the answer. If
    // another part contains a verification code, the whole answer expires together with the code.
    const ends = firstEnd(store, json?.text ?? '', cards)
    const expires = Math.min(store.now + KEPT_MS, ends)
    await insertAnswer(store, caller.tenant, answer, expires)
  }

  /**
   * Returns undefined if a recorded entity or the calling application no longer exists. `cards`: the recorded cards
   * whose verification codes the vault will delete.
   */
  async #findSubjects(store: StoreWriter, caller: Caller, recorded: readonly AuditEntry[]) {
    const found = new Map<string, AnswerSubject>()
    const { type: kind, id } = caller.actor
    if (kind === 'application') found.set(`${kind}/${id}`, { kind, id })
    for (const { kind, id } of this.#replayed) found.set(`${kind}/${id}`, { kind, id })
    for (const { type, id, as, event } of recorded) {
      const kind = event === undefined ? SUBJECT_KINDS[type] : undefined
      if (as?.operation === 'delete') found.delete(`${kind}/${id}`)
      else if (kind !== undefined) found.set(`${kind}/${id}`, { kind, id })
    }
    const cards: TokenRecord[] = []
    for (const subject of found.values()) {
      const record = await store.get(subject.kind, caller.tenant, subject.id)
      if (record === undefined) return undefined
      if ('containers' in record && endsCode(record)) cards.push(record)
      subject.granted = grantsOn(caller, this.#definition, record)
    }
    return { subjects: [...found.values()], cards }
  }
}

/**
 * Removes secrets that are shown only once, the verification codes of `cards`, and keys of runs. Reactor code can
 * return the key of its run.
 */
function encodeBody(output: Schema, result: unknown, cards: readonly TokenRecord[]): EncodedJson | undefined {
  const json = encodeWithoutCodes(output, result, cards)
  return json && new EncodedJson(undefined, withoutRunKeys(json.text))
}

function encodeWithoutCodes(
  output: Schema,
  result: unknown,
  cards: readonly TokenRecord[],
): EncodedJson | undefined {
  if (result === undefined) return undefined
  const json = result instanceof EncodedJson ? result : new EncodedJson(result)
  if (cards.length === 0 && !showsOnce(output)) return json
  const body = withoutCodes(json.toJSON(), cards)
  return new EncodedJson(showsOnce(output) ? withoutShownOnce(output, body) : body)
}

/**
 * The row of an answer indexes at most {@link SUBJECTS_OF_ROW} records. Further rows index the other records.
 * @throws CofferError `conflict`
 */
async function insertAnswer(
  store: StoreWriter,
  tenant: number,
  answer: AnswerRecord,
  expires: number,
): Promise<void> {
  const { id, status, subjects } = answer
  const options = { expires }
  await store.insert('answer', tenant, answer, options)
  for (const [at, part] of partsOf(answer).entries()) {
    const some = subjects.slice((at + 1) * SUBJECTS_OF_ROW, (at + 2) * SUBJECTS_OF_ROW)
    await store.insert('answer', tenant, { id: part, part_of: id, status, subjects: some }, options)
  }
}

function partsOf({ id, subjects }: AnswerRecord): string[] {
  const length = Math.max(0, Math.ceil(subjects.length / SUBJECTS_OF_ROW) - 1)
  return Array.from({ length }, (_, at) => `${id}/${at + 1}`)
}

async function removeAnswer(store: StoreWriter, tenant: number, id: string): Promise<void> {
  const answer = await store.get('answer', tenant, id)
  if (answer === undefined) return
  await store.remove('answer', tenant, id)
  for (const part of partsOf(answer)) await removeAnswer(store, tenant, part)
}

export async function removeAnswersAbout(store: StoreWriter, tenant: number, kind: Kind, value: string) {
  const query = { where: { field: kind, value }, page: 1, size: READ_AT_ONCE }
  const most = kind === 'application' ? MAX_OF_APPLICATION : Number.POSITIVE_INFINITY
  for (let removed = 0; removed < most; removed += READ_AT_ONCE) {
    const { records } = await store.find('answer', tenant, query)
    if (records.length === 0) return
    for (const { id, part_of } of records) {
      await removeAnswer(store, tenant, id)
      if (part_of !== undefined) await removeAnswer(store, tenant, part_of)
    }
  }
}

export async function removeAnswersOfDeleted(
  store: StoreWriter,
  tenant: number,
  recorded: readonly AuditEntry[],
): Promise<void> {
  for (const { type, id, as } of recorded) {
    const kind = SUBJECT_KINDS[type]
    if (as?.operation === 'delete' && kind !== undefined) await removeAnswersAbout(store, tenant, kind, id)
  }
}
