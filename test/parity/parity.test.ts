import t from 'tap'
import { readCases } from './cases.js'
import { type Door, type MovableClock, openCommandDoor, openPerformDoor, openServedDoor } from './doors.js'
import { openHttpDoor, openUrlDoor } from './http-door.js'
import { replay, START } from './replay.js'

t.setTimeout(240_000)

const DOORS: ((clock: MovableClock) => Promise<Door>)[] = [
  openPerformDoor,
  openHttpDoor,
  openCommandDoor,
  openServedDoor,
  openUrlDoor,
]

for (const each of readCases()) {
  t.test(each.title, async (t) => {
    const replays: { name: string; answers: unknown }[] = []
    for (const open of DOORS) {
      const clock = { now: START }
      const door = await open(clock)
      if (each.except?.some((name) => door.name.split(', ').includes(name))) {
        await door.close()
        continue
      }
      try {
        replays.push({ name: door.name, answers: await replay(t, door, clock, each) })
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
