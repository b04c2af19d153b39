/** Replays every fixture case through several interfaces, each with a separate vault, and compares the answers. */
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { readCases } from '../../src/cli/commands/conform/read-cases.js'
import { type Answer, type Case, fillIn, readPath } from '../../src/client/conform/cases.js'
import { checkAnswer } from '../../src/client/conform/check-answer.js'
import { startDestination } from './destination.js'
import type { Interface, MovableClock } from './interfaces.js'
import { normalize } from './normalize.js'

const MAX_ASKED = 400
const ASKED_EVERY_MS = 25
/** At the start of every case, the clock of the vault shows this time. */
const START = Date.parse('2030-01-15T12:00:00Z')

/**
 * With `every`, the function replays only each n-th case. With `COFFER_TEST_CASES=tokens`, the function replays only
 * the cases of the file tokens.json.
 */
export function compareInterfaces(
  interfaces: readonly ((clock: MovableClock) => Promise<Interface>)[],
  { every = 1 } = {},
): void {
  // With `npm run test:soak`, the tests use slower engines and therefore get more time.
  t.setTimeout(process.env.COFFER_TEST_LONG === '1' ? 7_200_000 : 500_000)
  const isWanted = ({ title }: Case, index: number) =>
    index % every === 0 && title.startsWith(process.env.COFFER_TEST_CASES ?? '')
  const starting = startDestination()
  t.teardown(async () => (await starting).close())
  for (const each of readCases().filter(isWanted)) {
    t.test(each.title, async (t) => {
      const { url } = await starting
      const replayBy = async (open: (typeof interfaces)[0]) => {
        const clock = { now: START }
        const target = await open(clock)
        try {
          if (each.except?.includes(target.name)) return []
          return [{ name: target.name, answers: await replay(t, target, clock, each, url) }]
        } finally {
          await target.close()
        }
      }
      const [first, ...others] = (await Promise.all(interfaces.map(replayBy))).flat()
      for (const other of others)
        t.same(other.answers, first!.answers, `${other.name} gives the same answers as ${first!.name}`)
    })
  }
}

/**
 * Replays a case through one interface and checks every answer. The function returns all answers after {@link
 * normalize}.
 */
async function replay(t: Test, target: Interface, clock: MovableClock, { steps }: Case, stub: string) {
  const saved = new Map<string, unknown>([['stub', stub]])
  const answers: Answer[] = []
  for (const [index, step] of steps.entries()) {
    clock.now += step.waitMs ?? 0
    const { operation, idempotencyKey, as = 'owner' } = step
    const input = fillIn(step.input ?? {}, saved) as Record<string, unknown>
    const key = as === 'owner' ? {} : { key: String(saved.get(as)) }
    const asked = {
      operation,
      input,
      reveal: step.reveal === true,
      ...key,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    }
    let answer = await target.ask(asked)
    for (let at = 0; step.untilFound === true && answer.status === 404 && at < MAX_ASKED; at++) {
      await setTimeout(ASKED_EVERY_MS)
      answer = await target.ask(asked)
    }
    const mismatch = checkAnswer(answer, fillIn(step.expect, saved) as typeof step.expect)
    if (mismatch !== undefined) t.fail(`${target.name}, step ${index + 1} (${operation}): ${mismatch}`)
    for (const [name, path] of Object.entries(step.save ?? {})) saved.set(name, readPath(answer.body, path))
    answers.push(answer)
  }
  t.equal(answers.length, steps.length, `${target.name} answered every step`)
  return normalize(answers, saved)
}
