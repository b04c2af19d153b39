/** The engine of ephemeral vaults keeps every engine's promises. */
import t from 'tap'
import { createMemoryEngine } from '../../src/storage/engines/memory-engine.js'
import { engineSuite, localSuite } from './engine-suite.js'
import { createClock, engineKeys } from './powers.js'

const open = async () => {
  const clock = createClock()
  return { engine: createMemoryEngine({ keys: engineKeys(), clock }), clock }
}
engineSuite(t, open)
localSuite(t, open)
