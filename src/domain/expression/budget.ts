/** Limits the work of all expressions of one request: counted, not timed, so that the outcome is always the same. */
import { CofferError } from '../../errors.js'
import { Turns } from '../turns.js'

/** Steps of about 10 ns, so that the expressions of a request take about 50 ms. */
const MOST_STEPS = 5_000_000
/** Outputs (`{{ … }}`) in the texts of one request, and their characters. */
const MOST_OUTPUTS = 5_000
const MOST_CHARACTERS = 256 * 1024
const STEPS = `The expressions of one request may take ${formatCount(MOST_STEPS)} steps.`
const OUTPUTS = `One request may have ${formatCount(MOST_OUTPUTS)} expressions of ${MOST_CHARACTERS / 1024} KiB in all.`
/** Steps of an array member and of an object member, apart from their values. */
const ITEM_STEPS = 4
const MEMBER_STEPS = 40
/** Characters that native code reads, or writes, in one step. */
const READ_IN_A_STEP = 8
const WRITTEN_IN_A_STEP = 4

/** One budget for each request. */
export class Budget {
  readonly #turns: Turns
  #left: number

  constructor(turns = new Turns(), steps = MOST_STEPS) {
    this.#turns = turns
    this.#left = steps
  }

  /** @throws CofferError `too_much_work` once the budget is exceeded. */
  use(steps: number): void {
    if (!(steps > 0)) return
    this.#left -= steps
    this.#turns.use(steps)
    if (this.#left < 0) throw tooMuchWork(STEPS)
  }

  /** Charges for reading all of a JSON value. */
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

  /** Charges for a generated text, and returns it. */
  write(text: string): string {
    this.use(text.length / WRITTEN_IN_A_STEP)
    return text
  }

  /** Whether {@link pause} is due; a loop asks this first, because awaiting costs more than most expressions. */
  get isTurnOver(): boolean {
    return this.#turns.isOver
  }

  /** Lets other requests have their turn. */
  pause(): Promise<void> {
    return this.#turns.next()
  }
}

/**
 * Counts the outputs in texts before any is compiled.
 * @throws CofferError `too_much_work` for more outputs or characters than one request may have
 */
export function checkOutputs(texts: Iterable<string>): void {
  let count = 0
  let characters = 0
  for (const text of texts)
    for (let at = text.indexOf('{{'); at >= 0; at = text.indexOf('{{', at + 2)) {
      const end = text.indexOf('}}', at)
      characters += (end < 0 ? text.length : end) - at
      checkCount(++count)
      if (characters > MOST_CHARACTERS) throw tooMuchWork(OUTPUTS)
    }
}

/** @throws CofferError `too_much_work` for more outputs than may be in one request */
export function checkCount(outputs: number): void {
  if (outputs > MOST_OUTPUTS) throw tooMuchWork(OUTPUTS)
}

function tooMuchWork(limit: string): CofferError {
  return new CofferError('too_much_work', `${limit} Use fewer or shorter ones, or less data.`)
}

/** The approximate number of characters of a JSON value. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + ITEM_STEPS
  if (value === null || typeof value !== 'object') return ITEM_STEPS
  let size = 4 * ITEM_STEPS
  if (Array.isArray(value)) for (const item of value) size += sizeOf(item)
  else for (const name in value) size += name.length + sizeOf((value as Record<string, unknown>)[name])
  return size
}

/** With commas. `Intl` would take every command 12 ms, because this is called when the module is loaded. */
function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}
