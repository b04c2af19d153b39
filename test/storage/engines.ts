/** Engines without encryption, for tests. The tests themselves draft the row of each log entry. */

import type { Clock } from '../../src/crypto/ports.js'
import type { Draft, Engine, LogEntry, LogSealer, Row } from '../../src/storage/engine.js'
import * as file from '../../src/storage/engines/file-engine.js'
import { MemoryEngine } from '../../src/storage/engines/memory-engine.js'
import { digest } from './powers.js'

export type { FileEngine } from '../../src/storage/engines/file-engine.js'

export const KIND = 3
export const LOG_KIND = 255
export const idOf = (name: string, tenant = 1) => digest(`id/${KIND}/${tenant}/${name}`, 16)
export const keyOf = (name: string, tenant = 1) => digest(`key/${tenant}/${name}`, 8)
/** Returns the key that all rows of a kind have. Two kinds of rows never have the same key. */
export const allOf = (kind: number, tenant = 1) => keyOf(kind === KIND ? 'all' : 'logs', tenant)
export const textOf = ({ sealed }: Pick<Row, 'sealed'>) => Buffer.from(sealed).toString()

export interface Wanted {
  name: string
  text?: string
  keys?: readonly string[]
  tenant?: number
  expires?: number
  modified?: number
}

/** Drafts a new row. The row gets the key `all` in addition to its own keys. */
export function draftOf({
  name,
  text = name,
  keys = [],
  tenant = 1,
  expires = 0,
  modified = 0,
}: Wanted): Draft {
  const all = Buffer.concat(['all', ...keys].map((key) => keyOf(key, tenant)))
  const seal = () => Buffer.from(text)
  return { kind: KIND, tenant, id: idOf(name, tenant), modified, expires, keys: all, seal }
}

export interface DraftedEntry extends LogEntry {
  draft: Draft
}

/** Drafts a log entry: a row of another kind, with its own id and keys. */
export function logOf(text: string, tenant = 1, keys: readonly string[] = []): DraftedEntry {
  const own = [allOf(LOG_KIND, tenant), ...keys.map((key) => keyOf(`log ${key}`, tenant))]
  const draft = {
    ...draftOf({ name: `log ${text}`, text, tenant }),
    kind: LOG_KIND,
    keys: Buffer.concat(own),
  }
  return { tenant, bytes: 100, time: 0, draft }
}

const kept = new Map<string, readonly LogEntry[]>()

const sealer: LogSealer = {
  seal: async (writer, entries) => {
    for (const { draft } of entries as DraftedEntry[]) await writer.put(draft)
  },
  sealerOf: () => (id, entries) => {
    kept.set(Buffer.from(id).toString('hex'), entries)
    return id
  },
  openPending: (_reader, { id }) => kept.get(Buffer.from(id).toString('hex')) ?? [],
}

export function attached<E extends Engine>(engine: E): E {
  engine.attach(sealer)
  return engine
}

export async function createFileEngine(options: file.FileEngineOptions): Promise<file.FileEngine> {
  return attached(await file.createFileEngine(options))
}

export async function openFileEngine(options: file.FileEngineOptions): Promise<file.FileEngine> {
  return attached(await file.openFileEngine(options))
}

export const createMemoryEngine = (clock: Clock): Engine => sealAtOnce(attached(new MemoryEngine(clock)))

/** Makes the engine save its state after each unit of work, so that log entries become rows at once. */
export function sealAtOnce(engine: MemoryEngine): MemoryEngine {
  const write = engine.write.bind(engine)
  engine.write = async (work) => {
    const result = await write(work)
    await engine.save()
    return result
  }
  return engine
}
