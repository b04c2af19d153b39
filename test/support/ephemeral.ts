/**
 * Opens vaults for tests. `COFFER_TEST_ENGINE` names the engine of these vaults: `memory` (the default), or `postgres`,
 * with a separate schema for each vault.
 */
import { createKeyring } from '../../src/crypto/keyring.js'
import type { Clock, EngineKeys } from '../../src/crypto/ports.js'
import { createRandom } from '../../src/crypto/random.js'
import { loadSodium } from '../../src/crypto/sodium.js'
import type { Engine } from '../../src/storage/engine.js'
import { MemoryEngine } from '../../src/storage/engines/memory-engine.js'
import { type App, createApp, createFirstTenant } from '../../src/vault/app.js'

export async function createTestEngine(options: { keys: EngineKeys; clock: Clock }): Promise<Engine> {
  const name = process.env.COFFER_TEST_ENGINE ?? 'memory'
  if (name === 'memory') return new MemoryEngine(options.clock)
  if (name === 'postgres') return (await import('../storage/postgres-server.js')).openTestStore(options)
  throw new Error(`COFFER_TEST_ENGINE is ${name}, not memory or postgres`)
}

export async function openEphemeral(options: { tenantName: string; clock?: Clock }): Promise<App> {
  const { tenantName, clock = Date.now } = options
  const primitives = await loadSodium()
  const random = createRandom()
  const keyring = createKeyring(primitives, random, random.bytes(32))
  const engine = await createTestEngine({ keys: keyring.engine, clock })
  const app = createApp({ engine, keyring, random, header: undefined, primitives })
  await createFirstTenant(app, tenantName)
  return app
}
