/** A vault of format 1 on a disk in memory or a real one, and what it holds. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EngineKeys, RandomSource } from '../../src/crypto/ports.js'
import { createRandom } from '../../src/crypto/random.js'
import { createSealedStore } from '../../src/storage/barrier/sealed-store.js'
import { type FileEngine, openFileEngine } from '../../src/storage/engines/file-engine.js'
import type { Files } from '../../src/storage/files.js'
import type { Store } from '../../src/storage/store.js'
import type { Header } from '../../src/storage/vault-file.js'
import { openKeyring, toSecret } from '../../src/vault/unlock.js'
import { FakeFiles } from './fake-files.js'
import { FROZEN_VAULTS, KEY_FILE, READING_TIME, VAULT } from './frozen.js'
import { logRecord } from './log-vault.js'

const SOURCE = join(FROZEN_VAULTS, '1')
export const DIRECTORY = '/home/vault'

/** The frozen vault of format 1 on a disk in memory. */
export function loadOld(): FakeFiles {
  const files = new FakeFiles()
  for (const path of ['/home', DIRECTORY, `${DIRECTORY}/segments`]) files.makeDirectory(path)
  for (const entry of readdirSync(join(SOURCE, VAULT), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    files.plant(`${DIRECTORY}/${path.slice(join(SOURCE, VAULT).length + 1)}`, readFileSync(path))
  }
  return files
}

export interface OpenedOld {
  engine: FileEngine
  store: Store
  header: Header
  notices: string[]
}

function unlock(place: { files: Files; directory: string; random: RandomSource }) {
  const secret = toSecret({ kind: 'key-file', text: readFileSync(join(SOURCE, KEY_FILE), 'utf8') })
  return openKeyring({ ...place, role: 'command' }, secret)
}

export async function keysOf(files: Files): Promise<EngineKeys> {
  return (await unlock({ files, directory: DIRECTORY, random: createRandom() })).keyring.engine
}

export async function openOld(files: Files, directory = DIRECTORY): Promise<OpenedOld> {
  const random = createRandom()
  const place = { files, directory, random }
  const { header, upgraded, keyring } = await unlock(place)
  const notices: string[] = []
  const engine = await openFileEngine({
    ...place,
    header,
    upgraded,
    keys: keyring.engine,
    clock: () => READING_TIME,
    notice: (text) => void notices.push(text),
    role: 'command',
  })
  return { engine, store: createSealedStore(engine, keyring), header, notices }
}

/** Everything of both tenants that counts, as text; throws where a log is not whole. */
export async function tell({ store }: Pick<OpenedOld, 'store'>): Promise<string> {
  const lines: unknown[] = []
  for (const tenant of [1, 2]) {
    const all = { page: 1, size: 100 }
    await store.read(async (reader) => {
      for (const kind of ['token', 'application', 'association', 'invitation'] as const)
        lines.push((await reader.find(kind, tenant, all)).records)
      const { records, total } = await reader.find('log', tenant, all)
      lines.push(total, records)
      const where = { field: 'entity', value: 'card-1' }
      lines.push((await reader.find('log', tenant, { ...all, where })).total)
    })
    const check = await store.verifyLogs(tenant)
    if (check.brokenAt !== undefined) throw new Error(`the log of tenant ${tenant} is broken`)
  }
  // Their members may be in another order in a block.
  return JSON.stringify(lines, (_, value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))
      : value,
  )
}

export function write({ store }: Pick<OpenedOld, 'store'>, entity: string): Promise<void> {
  return store.write(async (writer) => writer.log(1, logRecord(entity, READING_TIME)))
}
