/** An engine that takes its time keeps every engine's promises, and every operation works over it. */
import t from 'tap'
import { readCases } from '../parity/cases.js'
import { startDestination } from '../parity/destination.js'
import { openPerformDoor } from '../parity/doors.js'
import { openHttpDoor } from '../parity/http-door.js'
import { replay, START } from '../parity/replay.js'
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

t.test('every recorded operation answers over it as over any other', async (t) => {
  process.env.COFFER_TEST_ENGINE = 'toy'
  const { url: stub, close } = await startDestination()
  t.teardown(close)
  for (const each of readCases()) {
    await t.test(each.title, async (t) => {
      const answers: unknown[] = []
      for (const open of [openPerformDoor, openHttpDoor]) {
        const clock = { now: START }
        const door = await open(clock)
        if (!each.except?.some((name) => door.name.startsWith(name)))
          answers.push(await replay(t, door, clock, each, { stub }))
        await door.close()
      }
      t.same(answers.at(-1), answers[0])
    })
  }
})
