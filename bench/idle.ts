/** Waits for an idle machine, because the compaction or checkpoint of one server must not slow the next server down. */
import { cpus } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'

const LOOK_MS = 200
/** The machine counts as idle if at most this part of its cores is busy. */
const MAX_BUSY = 0.1
const MAX_LOOKS = 25

/**
 * Waits until the machine is idle, but at most 5 s. If the machine is still busy after 5 s, the next measurement starts
 * anyway.
 */
export async function awaitIdle(): Promise<void> {
  for (let look = 0; look < MAX_LOOKS; look++) {
    const before = readTimes()
    await wait(LOOK_MS)
    const after = readTimes()
    if (1 - (after.idle - before.idle) / (after.all - before.all) < MAX_BUSY) return
  }
}

function readTimes(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times)
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.flatMap((each) => Object.values(each))) }
}
