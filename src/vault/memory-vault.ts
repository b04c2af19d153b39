import type { Keyring } from '../crypto/keyring.js'
import type { Clock, RecordKeys } from '../crypto/ports.js'
import { API_KEY } from '../domain/access/application.js'
import type { ApplicationRecord } from '../domain/records/records.js'
import { randomKey } from '../domain/text/base58.js'
import { revokeKeys } from '../operations/application/application-record.js'
import { renewLinks } from '../operations/invite/mail.js'
import { LOG_ROWS } from '../storage/engine.js'
import type { MemoryState as EngineState, MemoryEngine } from '../storage/engines/memory-engine.js'
import { readAll, type StoreWriter } from '../storage/store.js'
import { type App, createApp } from './app.js'

/** `codeTime`: {@link StoreReader.codeTime} when the state was saved. */
export interface MemoryState extends EngineState {
  readonly codeTime: number
}

type Parts = Omit<Parameters<typeof createApp>[0], 'header' | 'lock' | 'engine' | 'codeLag'> & {
  engine: MemoryEngine
  clock: Clock
  clockEnd: Clock | undefined
}

export class MemoryVault {
  readonly app: App
  readonly #parts: Parts
  #codeLag = 0

  constructor(parts: Parts) {
    const codeLag = () => this.#codeLag
    this.app = createApp({ ...parts, header: undefined, codeLag })
    this.#parts = parts
  }

  async save(): Promise<MemoryState> {
    const { engine, clock } = this.#parts
    return { ...(await engine.save()), codeTime: clock() - this.#codeLag }
  }

  /** The clock of card codes continues from the saved time, so that all restores of a state give the same result. */
  async restore(state: MemoryState): Promise<void> {
    // Requests that arrive from now on run after the restore, so these requests belong to the new generation.
    this.app.beginGeneration()
    // The clock changes together with the data. If the clock changed first, expired codes of the current data would be
    // visible again. If the data changed first, codes of the restored data could seem to be expired.
    await this.#parts.engine.restore(state, () => this.#resumeCodes(state))
  }

  #resumeCodes({ codeTime }: MemoryState): void {
    this.#codeLag = this.#parts.clock() - codeTime
  }

  /**
   * Creates a vault with the data of `state`, but with new tenant ids, links and API keys, and with empty logs. `keys`:
   * the new API keys, by the id of the application.
   */
  async fork(state: MemoryState, { now: clock, end: clockEnd }: { now: Clock; end: Clock }) {
    const renamed = new Map<string, string>()
    const engine = this.#parts.engine.fork(state, clock, (kind) => kind !== LOG_ROWS)
    const keyring = withRenames(this.#parts.keyring, renamed)
    const memory = new MemoryVault({ ...this.#parts, engine, keyring, clock, clockEnd, base: this.app })
    memory.#resumeCodes(state)
    const keys = await memory.app.store.write((writer) => reissueIds(memory.app, writer, renamed))
    return { memory, keys }
  }
}

/**
 * Records that are opened with this keyring have the new tenant ids. `wipe` does nothing, because both vaults share the
 * keys.
 */
function withRenames(keyring: Keyring, renamed: ReadonlyMap<string, string>): Keyring {
  const rename = <K extends RecordKeys>(keys: K): K => ({ ...keys, renamed })
  return {
    ...keyring,
    vault: rename(keyring.vault),
    openTenant: (raw) => rename(keyring.openTenant(raw)),
    wipe: () => {},
  }
}

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
