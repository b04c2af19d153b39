/** Numbers that are drawn, so that no process has to ask for the next one. */
import type { RandomSource } from '../../crypto/ports.js'

const BYTES = 6
/** Half of what a row has room for: files, which the vault may be moved to, count on from the highest. */
const HIGHEST_REV = 2 ** 47
/** 2^53 numbers are enough for 10^10 such steps. */
const MOST_STEP = 2 ** 20

/** The `rev` of a version of a row. */
export function drawRev(random: RandomSource): number {
  return drawGeneration(random) % HIGHEST_REV
}

/** How far the counter of changes goes on, so that no other history of the store has the same number. */
export function drawStep(random: RandomSource): number {
  return 1 + (drawGeneration(random) % MOST_STEP)
}

/** The generation of a new vault: a server that had an earlier one open in the same place sees that it is another. */
export function drawGeneration(random: RandomSource): number {
  return random.bytes(BYTES).reduce((number, byte) => number * 256 + byte, 0)
}
