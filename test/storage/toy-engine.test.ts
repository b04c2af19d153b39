/** An engine that takes its time keeps every engine's promises, and every operation works over it. */
import t from 'tap'
import { compareDoors } from '../parity/compare.js'
import { openPerformDoor } from '../parity/doors.js'
import { openHttpDoor } from '../parity/http-door.js'
import { engineSuite } from './engine-suite.js'
import { attached } from './engines.js'
import { createClock } from './powers.js'
import { createToyEngine } from './toy-engine.js'

t.test('keeps the promises of an engine', async (t) =>
  engineSuite(t, async () => {
    const clock = createClock()
    return { engine: attached(createToyEngine({ clock })), clock }
  }),
)

process.env.COFFER_TEST_ENGINE = 'toy'
compareDoors([openPerformDoor, openHttpDoor])
