/** The engine of ephemeral vaults keeps every engine's promises. */
import t from 'tap'
import { engineSuite, localSuite } from './engine-suite.js'
import { createMemoryEngine } from './engines.js'
import { createClock } from './powers.js'

const open = async () => {
  const clock = createClock()
  return { engine: createMemoryEngine(clock), clock }
}
engineSuite(t, open)
localSuite(t, open)
