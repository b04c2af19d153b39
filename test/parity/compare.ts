/** Replays every recorded case through several doors, each on a vault of its own, and compares their answers. */
import t from 'tap'
import { readCases } from './cases.js'
import { startDestination } from './destination.js'
import type { Door, MovableClock } from './doors.js'
import { replay, START } from './replay.js'

/** `each`: of so many cases one. */
export function compareDoors(
  doors: readonly ((clock: MovableClock) => Promise<Door>)[],
  { each: part = 1 } = {},
): void {
  // In `npm run test:soak`, over engines that take longer, more.
  t.setTimeout(process.env.COFFER_TEST_LONG === '1' ? 7_200_000 : 500_000)
  const starting = startDestination()
  t.teardown(async () => (await starting).close())
  for (const each of readCases().filter((_, index) => index % part === 0)) {
    t.test(each.title, async (t) => {
      const { url: stub } = await starting
      const replays: { name: string; answers: unknown }[] = []
      for (const open of doors) {
        const clock = { now: START }
        const door = await open(clock)
        if (each.except?.includes(door.name)) {
          await door.close()
          continue
        }
        try {
          replays.push({ name: door.name, answers: await replay(t, door, clock, each, { stub }) })
        } finally {
          await door.close()
        }
      }
      const [first, ...others] = replays
      for (const other of others) {
        t.same(other.answers, first!.answers, `${other.name} answers like ${first!.name}`)
      }
    })
  }
}
