/** The records of kept answers. One about many tokens has further records, as a row has few index fields. */
import type { AnswerRecord, AnswerSubject } from '../domain/answer-record.js'
import type { Transform } from '../domain/permissions.js'
import type { TokenRecord } from '../domain/records.js'
import type { StoreReader, StoreWriter } from '../storage/store.js'

const KEPT_MS = 24 * 60 * 60 * 1000
/** The status of an answer that is not given again. */
export const GONE = 410
/** A row has at most 255 index fields. */
const SUBJECTS_OF_ONE = 200
/** Records read at once, because one may be large. */
const READ_AT_ONCE = 20
/**
 * The most answers that are removed with an application, in one unit of work. Its other answers are given to nobody any
 * more, because its id is not used again, and expire.
 */
const MOST_OF_APPLICATION = 10_000

/** Contract: `makeRoom` was called for the id. */
export async function insertAnswer(
  store: StoreWriter,
  tenant: number,
  answer: Omit<AnswerRecord, 'parts' | 'part_of'>,
  expires = store.now + KEPT_MS,
): Promise<void> {
  const { subjects } = answer
  const parts = Math.max(0, Math.ceil(subjects.length / SUBJECTS_OF_ONE) - 1)
  const at = (part: number) => subjects.slice(part * SUBJECTS_OF_ONE, (part + 1) * SUBJECTS_OF_ONE)
  const first = parts === 0 ? answer : { ...answer, subjects: at(0), parts }
  await store.insert('answer', tenant, first, { expires, fresh: true })
  for (let part = 1; part <= parts; part++) {
    const record = {
      id: partId(answer.id, part),
      part_of: answer.id,
      status: answer.status,
      subjects: at(part),
    }
    await store.insert('answer', tenant, record, { expires })
  }
}

/** The answer to the creation of `token`, as long as the token itself is kept as that. */
export function answerOf(
  token: TokenRecord,
  now: number,
  show: (token: TokenRecord, transform: Transform) => unknown,
): AnswerRecord | undefined {
  const { id, answer_granted: granted, created_at } = token
  const transform = granted?.['token:create']
  if (transform === undefined || now >= Date.parse(created_at) + KEPT_MS) return undefined
  const body = JSON.stringify(show(token, transform))
  return { id, status: 201, body, subjects: [{ kind: 'token', id, granted }] }
}

/** Writes out the answer that `token` is kept as, if it is one. Contract: before the token is changed. */
export async function writeOutAnswer(
  store: StoreWriter,
  tenant: number,
  token: TokenRecord,
  show: (token: TokenRecord, transform: Transform) => unknown,
): Promise<void> {
  const answer = answerOf(token, store.now, show)
  // Where the clock was set back, a later answer may be there.
  if (answer === undefined || (await store.get('answer', tenant, answer.id)) !== undefined) return
  await store.makeRoom('answer', tenant, answer.id)
  await insertAnswer(store, tenant, answer, Date.parse(token.created_at) + KEPT_MS)
}

/** Notes for a while that a removed token has had the id of an answer, so that the same key gives it to no other token. */
export async function endAnswer(store: StoreWriter, tenant: number, { id, answer_granted }: TokenRecord) {
  if (answer_granted === undefined) return
  const kept = await store.get('answer', tenant, id)
  if (kept?.subjects.some((subject) => subject.id === id)) await removeAnswer(store, tenant, id)
  else if (kept !== undefined) return
  await store.makeRoom('answer', tenant, id)
  await insertAnswer(store, tenant, { id, status: GONE, subjects: [] })
}

function partId(id: string, part: number): string {
  return `${id}/${part}`
}

/** What an answer is about; undefined if a part of it is missing. */
export async function readSubjects(
  reader: StoreReader,
  tenant: number,
  { id, subjects, parts = 0 }: AnswerRecord,
): Promise<AnswerSubject[] | undefined> {
  const all = [...subjects]
  for (let part = 1; part <= parts; part++) {
    const record = await reader.get('answer', tenant, partId(id, part))
    if (record === undefined) return undefined
    all.push(...record.subjects)
  }
  return all
}

export async function removeAnswer(store: StoreWriter, tenant: number, id: string): Promise<void> {
  const answer = await store.get('answer', tenant, id)
  if (answer === undefined) return
  await store.remove('answer', tenant, id)
  for (let part = 1; part <= (answer.parts ?? 0); part++) await removeAnswer(store, tenant, partId(id, part))
}

/** Removes the answers about something that is being deleted. */
export async function dropAnswers(
  store: StoreWriter,
  tenant: number,
  { kind, id: value }: Pick<AnswerSubject, 'kind' | 'id'>,
): Promise<void> {
  const query = { where: { field: kind, value }, page: 1, size: READ_AT_ONCE }
  const most = kind === 'application' ? MOST_OF_APPLICATION : Number.POSITIVE_INFINITY
  for (let dropped = 0; dropped < most; dropped += READ_AT_ONCE) {
    const { records } = await store.find('answer', tenant, query)
    if (records.length === 0) return
    for (const { id, part_of } of records) {
      await removeAnswer(store, tenant, id)
      if (part_of !== undefined) await removeAnswer(store, tenant, part_of)
    }
  }
}
