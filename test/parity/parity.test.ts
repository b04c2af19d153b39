import t, { type Test } from 'tap'
import { type Answer, type Case, checkAnswer, fillIn, normalize, readCases } from './cases.js'
import { type Door, type MovableClock, openCommandDoor, openPerformDoor, openServedDoor } from './doors.js'
import { openHttpDoor } from './http-door.js'

t.setTimeout(240_000)

const START = Date.parse('2030-01-15T12:00:00Z')
const DOORS: ((clock: MovableClock) => Promise<Door>)[] = [
  openPerformDoor,
  openHttpDoor,
  openCommandDoor,
  openServedDoor,
]

for (const each of readCases()) {
  t.test(each.title, async (t) => {
    const replays: { name: string; answers: unknown }[] = []
    for (const open of DOORS) {
      const clock = { now: START }
      const door = await open(clock)
      if (each.except?.some((name) => door.name.startsWith(name))) {
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

async function replay(t: Test, door: Door, clock: MovableClock, { steps }: Case): Promise<unknown> {
  const saved = new Map<string, unknown>()
  const answers: Answer[] = []
  for (const [index, step] of steps.entries()) {
    clock.now += step.waitMs ?? 0
    const key = step.as === undefined || step.as === 'owner' ? undefined : String(saved.get(step.as))
    const answer = await door.ask({
      operation: step.operation,
      input: fillIn(step.input ?? {}, saved) as Record<string, unknown>,
      reveal: step.reveal === true,
      ...(key === undefined ? {} : { key }),
    })
    const mismatch = checkAnswer(answer, fillIn(step.expect, saved) as Case['steps'][number]['expect'])
    if (mismatch !== undefined) t.fail(`${door.name}, step ${index + 1} (${step.operation}): ${mismatch}`)
    for (const [name, field] of Object.entries(step.save ?? {})) {
      saved.set(name, (answer.body as Record<string, unknown> | undefined)?.[field])
    }
    answers.push(answer)
  }
  t.equal(answers.length, steps.length, `${door.name} answered every step`)
  return normalize(answers, saved)
}
