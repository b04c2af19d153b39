/** The records of stored answers. An answer about many tokens has further records, as a row has few index fields. */
import type { AnswerRecord, AnswerSubject } from '../../domain/records/answer-record.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'
import type { AuditEntry } from '../operation.js'

const KEPT_MS = 24 * 60 * 60 * 1000
/** A row has at most 255 index fields. */
const SUBJECTS_OF_ONE = 200
/** Records read at once, because one may be large. */
const READ_AT_ONCE = 20
/**
 * The most answers that are removed with an application, in one unit of work. Its other answers expire: its id is not used
 * again, so nobody gets them.
 */
const MOST_OF_APPLICATION = 10_000

/** Kinds of what a stored answer goes with, by type of entity. */
export const SUBJECT_KINDS: Readonly<Record<string, AnswerSubject['kind']>> = {
  token: 'token',
  card: 'token',
  bank: 'token',
  reactor: 'reactor',
  application: 'application',
}

/** @throws CofferError `conflict` if an answer has the id */
export async function insertAnswer(
  store: StoreWriter,
  tenant: number,
  answer: Omit<AnswerRecord, 'parts' | 'part_of'>,
): Promise<void> {
  const { id, status, subjects } = answer
  const options = { expires: store.now + KEPT_MS }
  const parts = Math.max(0, Math.ceil(subjects.length / SUBJECTS_OF_ONE) - 1)
  const at = (part: number) => subjects.slice(part * SUBJECTS_OF_ONE, (part + 1) * SUBJECTS_OF_ONE)
  const first = parts === 0 ? answer : { ...answer, subjects: at(0), parts }
  await store.insert('answer', tenant, first, options)
  for (let part = 1; part <= parts; part++) {
    const record = { id: partId(id, part), part_of: id, status, subjects: at(part) }
    await store.insert('answer', tenant, record, options)
  }
}

function partId(id: string, part: number): string {
  return `${id}/${part}`
}

/** Returns what an answer is about; undefined if a part of it is missing. */
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
export async function removeAnswersAbout(
  store: StoreWriter,
  tenant: number,
  { kind, id: value }: Pick<AnswerSubject, 'kind' | 'id'>,
): Promise<void> {
  const query = { where: { field: kind, value }, page: 1, size: READ_AT_ONCE }
  const most = kind === 'application' ? MOST_OF_APPLICATION : Number.POSITIVE_INFINITY
  for (let removed = 0; removed < most; removed += READ_AT_ONCE) {
    const { records } = await store.find('answer', tenant, query)
    if (records.length === 0) return
    for (const { id, part_of } of records) {
      await removeAnswer(store, tenant, id)
      if (part_of !== undefined) await removeAnswer(store, tenant, part_of)
    }
  }
}

/** Removes the stored answers about each of `recorded` that was deleted. */
export async function removeAnswersOfDeleted(
  store: StoreWriter,
  tenant: number,
  recorded: readonly AuditEntry[],
): Promise<void> {
  for (const { type, id, as } of recorded) {
    const kind = SUBJECT_KINDS[type]
    if (as?.operation === 'delete' && kind !== undefined)
      await removeAnswersAbout(store, tenant, { kind, id })
  }
}
