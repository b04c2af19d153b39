/** Goes through one door, step by step, as a case says. */
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { type Answer, type Case, checkAnswer, fillIn, normalize, readPath } from './cases.js'
import type { Door, MovableClock } from './doors.js'

const MOST_ASKED = 400
const ASKED_EVERY_MS = 25

/** When every case begins. */
export const START = Date.parse('2030-01-15T12:00:00Z')

/** Begins with what is `given` under names. Checks every answer, and gives them all as {@link normalize} does. */
export async function replay(
  t: Test,
  door: Door,
  clock: MovableClock,
  { steps }: Case,
  given: Readonly<Record<string, unknown>> = {},
): Promise<unknown> {
  const saved = new Map<string, unknown>(Object.entries(given))
  const answers: Answer[] = []
  for (const [index, step] of steps.entries()) {
    clock.now += step.waitMs ?? 0
    const key = step.as === undefined || step.as === 'owner' ? undefined : String(saved.get(step.as))
    const request = {
      operation: step.operation,
      input: fillIn(step.input ?? {}, saved) as Record<string, unknown>,
      reveal: step.reveal === true,
      ...(key === undefined ? {} : { key }),
      ...(step.idempotencyKey === undefined ? {} : { idempotencyKey: step.idempotencyKey }),
    }
    let answer = await door.ask(request)
    for (let at = 0; step.untilFound === true && answer.status === 404 && at < MOST_ASKED; at++) {
      await setTimeout(ASKED_EVERY_MS)
      answer = await door.ask(request)
    }
    const mismatch = checkAnswer(answer, fillIn(step.expect, saved) as Case['steps'][number]['expect'])
    if (mismatch !== undefined) t.fail(`${door.name}, step ${index + 1} (${step.operation}): ${mismatch}`)
    for (const [name, path] of Object.entries(step.save ?? {})) saved.set(name, readPath(answer.body, path))
    answers.push(answer)
  }
  t.equal(answers.length, steps.length, `${door.name} answered every step`)
  return normalize(answers, saved)
}
