/**
 * Limits the work of a request, in steps of about 10 ns. Time is not measured, so that equal requests have equal
 * outcomes.
 */
import { CofferError } from '../../errors.js'

/** The limit for all expressions of a request: about 50 ms of work. */
const MAX_STEPS = 5_000_000
const STEPS_IN_A_TURN = 1_000_000
export const ITEM_OF_BATCH_STEPS = STEPS_IN_A_TURN / 50
const MAX_OUTPUTS = 5_000
const MAX_CHARACTERS = 256 * 1024
const STEPS = 'The expressions of one request may take at most 5,000,000 steps.'
const OUTPUTS = 'One request may have at most 5,000 expressions, with at most 262,144 characters in total.'
const ITEM_STEPS = 4
const MEMBER_STEPS = 40
const READ_IN_A_STEP = 8
const WRITTEN_IN_A_STEP = 4

/**
 * Divides work into turns of about 10 ms. All requests share the turns. After each turn, the event loop can do other
 * work.
 */
export class Turns {
  #left = STEPS_IN_A_TURN
  #last: Promise<void> = Promise.resolve()

  use(steps: number): boolean {
    this.#left -= steps
    return this.isOver
  }

  /**
   * If this is true, the caller must await {@link next}. A loop checks this first, because awaiting takes longer than
   * most expressions.
   */
  get isOver(): boolean {
    return this.#left < 0
  }

  /**
   * Callers continue in the order of their calls. If the turn has steps left, the next caller continues immediately.
   */
  next(): Promise<void> {
    this.#last = this.#last.then(async () => {
      if (!this.isOver) return
      await new Promise(setImmediate)
      this.#left = STEPS_IN_A_TURN
    })
    return this.#last
  }
}

export class Budget {
  readonly turns: Turns
  #left = MAX_STEPS

  constructor(turns = new Turns()) {
    this.turns = turns
  }

  use(steps: number): void {
    if (!(steps > 0)) return
    this.#left -= steps
    this.turns.use(steps)
    if (this.#left < 0) throw tooMuchWork(STEPS)
  }

  read(value: unknown): void {
    this.use(ITEM_STEPS)
    if (typeof value === 'string') this.use(value.length / READ_IN_A_STEP)
    if (value === null || typeof value !== 'object') return
    if (Array.isArray(value)) for (const item of value) this.read(item)
    else
      for (const name in value) {
        this.use(MEMBER_STEPS + name.length / READ_IN_A_STEP)
        this.read((value as Record<string, unknown>)[name])
      }
  }

  write(text: string): string {
    this.use(text.length / WRITTEN_IN_A_STEP)
    return text
  }
}

/**
 * Counts outputs `{{ … }}` before they are compiled.
 * @throws CofferError `too_much_work`
 */
export function checkOutputs(texts: Iterable<string>): void {
  let count = 0
  let characters = 0
  for (const text of texts)
    for (let at = text.indexOf('{{'); at >= 0; at = text.indexOf('{{', at + 2)) {
      const end = text.indexOf('}}', at)
      characters += (end < 0 ? text.length : end) - at
      checkCount(++count)
      if (characters > MAX_CHARACTERS) throw tooMuchWork(OUTPUTS)
    }
}

export function checkCount(outputs: number): void {
  if (outputs > MAX_OUTPUTS) throw tooMuchWork(OUTPUTS)
}

function tooMuchWork(limit: string): CofferError {
  return new CofferError('too_much_work', `${limit} Use fewer or shorter expressions, or less data.`)
}

/** The approximate size in memory, in characters. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + ITEM_STEPS
  if (value === null || typeof value !== 'object') return ITEM_STEPS
  let size = 4 * ITEM_STEPS
  if (Array.isArray(value)) for (const item of value) size += sizeOf(item)
  else for (const name in value) size += name.length + sizeOf((value as Record<string, unknown>)[name])
  return size
}
