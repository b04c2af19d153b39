/** Engines without the barrier above them: each log entry is a row that the test has drafted. */

import type { Clock } from '../../src/crypto/ports.js'
import type { Draft, Engine, LogEntry, LogSealer } from '../../src/storage/engine.js'
import * as file from '../../src/storage/engines/file-engine.js'
import { MemoryEngine } from '../../src/storage/engines/memory-engine.js'
import { digest } from './powers.js'

export type { FileEngine } from '../../src/storage/engines/file-engine.js'

export interface DraftedEntry extends LogEntry {
  draft: Draft
}

/** The row as an entry of a log; a record becomes one of the kind and key of logs. */
export function asLog(draft: Draft): DraftedEntry {
  const { tenant, kind } = draft
  const keys = digest(`key/${tenant}/logs`, 8)
  return { tenant, bytes: 100, time: 0, draft: kind === 3 ? { ...draft, kind: 255, keys } : draft }
}

const kept = new Map<string, readonly LogEntry[]>()

const sealer: LogSealer = {
  seal: async (writer, entries) => {
    for (const { draft } of entries as DraftedEntry[]) await writer.put(draft)
  },
  sealPending: (_reader, { id }, entries) => {
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

/** Makes rows of the log entries of each unit at once, by saving the state of the engine. */
export function sealAtOnce(engine: MemoryEngine): MemoryEngine {
  const write = engine.write.bind(engine)
  engine.write = async (work) => {
    const result = await write(work)
    await engine.save()
    return result
  }
  return engine
}
