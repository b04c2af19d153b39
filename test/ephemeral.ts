/**
 * Vaults in memory for tests, over the engine that `COFFER_TEST_ENGINE` names: `memory` (the default), or `toy`, which
 * answers as one over a network would.
 */
import { createKeyring } from '../src/crypto/keyring.js'
import type { Clock } from '../src/crypto/ports.js'
import { createRandom } from '../src/crypto/random.js'
import { loadSodium } from '../src/crypto/sodium.js'
import { type App, createApp, createFirstTenant } from '../src/vault/app.js'
import { openEphemeral as openInMemory } from '../src/vault/open.js'
import { createToyEngine } from './storage/toy-engine.js'

export async function openEphemeral(options: { tenantName: string; clock?: Clock }): Promise<App> {
  const name = process.env.COFFER_TEST_ENGINE ?? 'memory'
  if (name === 'memory') return openInMemory(options)
  if (name !== 'toy') throw new Error(`COFFER_TEST_ENGINE is ${name}, not memory or toy`)
  const { tenantName, clock = Date.now } = options
  const primitives = await loadSodium()
  const random = createRandom()
  const keyring = createKeyring(primitives, random, random.bytes(32))
  const engine = createToyEngine({ keys: keyring.engine, clock })
  const app = createApp({ engine, keyring, random, header: undefined, primitives })
  await createFirstTenant(app, tenantName)
  return app
}
