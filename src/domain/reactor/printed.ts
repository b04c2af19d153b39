/** The console output and the errors of code, redacted for callers who may not see plaintext. */
import { sizeOf } from '../expression/budget.js'
import { Secrets, WITHHELD } from '../text/secrets.js'

/** Limits in characters. If the data or the output of a run exceeds its limit, the whole output is withheld. */
const MAX_GIVEN = 16 * 1024
const MAX_PRINTED = 8 * 1024

export interface Printed {
  console: { level: string; text: string }[]
  detail?: string
  errors?: Record<string, string[]>
  stack?: string
}

export const ALL_WITHHELD: Printed = { console: [{ level: 'warn', text: WITHHELD }] }

/** The data of a run: arguments, configuration, and everything that the run read from or wrote to the vault. */
export class GivenData {
  readonly #data: unknown[] = []
  #size = 0

  add(data: unknown): void {
    this.#size += sizeOf(data)
    if (this.#size <= MAX_GIVEN) this.#data.push(data)
    else this.#data.length = 0
  }

  scrub(printed: Printed): Printed | undefined {
    const texts: string[] = []
    mapTexts(printed, (text) => {
      texts.push(text)
      return text
    })
    if (texts.length === 0) return undefined
    if (this.#size > MAX_GIVEN || sizeOf(printed) > MAX_PRINTED) return ALL_WITHHELD
    const secrets = new Secrets()
    for (const each of this.#data) secrets.add(each)
    // All texts are examined together, because code may print a value in pieces.
    const shown = secrets.scrub(texts)
    if (typeof shown === 'string') return ALL_WITHHELD
    let next = 0
    return mapTexts(printed, () => shown[next++]!)
  }
}

/** Applies `change` to each text, always in the same order. */
function mapTexts(printed: Printed, change: (text: string) => string): Printed {
  const { console: lines, detail, errors, stack } = printed
  const changeError = ([name, messages]: [string, string[]]) => [change(name), messages.map(change)] as const
  return {
    console: lines.map(({ level, text }) => ({ level, text: change(text) })),
    ...(detail !== undefined && { detail: change(detail) }),
    ...(errors !== undefined && { errors: Object.fromEntries(Object.entries(errors).map(changeError)) }),
    ...(stack !== undefined && { stack: change(stack) }),
  }
}
