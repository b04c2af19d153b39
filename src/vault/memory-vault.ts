import type { Keyring } from '../crypto/keyring.js'
import type { Clock, RecordKeys } from '../crypto/ports.js'
import { API_KEY } from '../domain/access/application.js'
import type { ApplicationRecord } from '../domain/records/records.js'
import { randomKey } from '../domain/text/base58.js'
import { revokeKeys } from '../operations/application/application-record.js'
import { renewLinks } from '../operations/invite/mail.js'
import { LOG_ROWS } from '../storage/engine.js'
import type { MemoryEngine, MemoryState } from '../storage/engines/memory-engine.js'
import { readAll, type StoreWriter } from '../storage/store.js'
import { type App, createApp } from './app.js'

export type { MemoryState } from '../storage/engines/memory-engine.js'

type Parts = Omit<Parameters<typeof createApp>[0], 'header' | 'lock' | 'engine'> & { engine: MemoryEngine }

export class MemoryVault {
  readonly app: App
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.app = createApp({ ...parts, header: undefined })
    this.#parts = parts
  }

  save(): Promise<MemoryState> {
    return this.#parts.engine.save()
  }

  restore(state: MemoryState): Promise<void> {
    // Before the change, because the engine queues later requests behind it.
    this.app.generation++
    return this.#parts.engine.restore(state)
  }

  /** A vault with the data of `state`, whose tenants, API keys and links are its own. `keys`: by the ids of applications. */
  async fork(state: MemoryState, clock: Clock) {
    const renamed = new Map<string, string>()
    const engine = this.#parts.engine.fork(state, clock, (kind) => kind !== LOG_ROWS)
    const keyring = withRenames(this.#parts.keyring, renamed)
    const memory = new MemoryVault({ ...this.#parts, engine, keyring, base: this.app })
    const keys = await memory.app.store.write((writer) => reissueIds(memory.app, writer, renamed))
    return { memory, keys }
  }
}

/** A keyring that several vaults share, and whose opened records have the new ids of tenants. */
function withRenames(keyring: Keyring, renamed: ReadonlyMap<string, string>): Keyring {
  const rename = <K extends RecordKeys>(keys: K): K => ({ ...keys, renamed })
  return {
    ...keyring,
    vault: rename(keyring.vault),
    openTenant: (raw) => rename(keyring.openTenant(raw)),
    wipe: () => {},
  }
}

/** Gives every tenant another id, every application another key, and every invitation another link. */
async function reissueIds(app: App, store: StoreWriter, renamed: Map<string, string>) {
  const keys: Record<string, string> = {}
  const tenants = await readAll(store, 'tenant', 0)
  for (const tenant of tenants) {
    const id = app.createUuid()
    renamed.set(tenant.id, id)
    await store.replace('tenant', 0, { ...tenant, id })
    await renewLinks(app, store, tenant.number)
    for (const application of await readAll(store, 'application', tenant.number)) {
      await revokeKeys(store, application.keys)
      const key = randomKey(app.random, API_KEY)
      keys[application.id] = key
      const hash = await app.hashSecret(key, store)
      const { created_by, created_at } = application
      const entry = { id: app.createUuid(), hash, created_by, created_at }
      const record: ApplicationRecord = { ...application, tenant_id: id, keys: [entry] }
      const held = { id: hash, tenant: tenant.number, application_id: application.id }
      await store.insert('api_key', 0, held, { fresh: true })
      await store.replace('application', tenant.number, record)
    }
  }
  return keys
}
