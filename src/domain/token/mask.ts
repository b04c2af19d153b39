/** Masks: any JSON value. Its strings are expressions; property names, numbers, booleans and null are copied. */
import { type PropertyErrors, validationError } from '../../errors.js'
import type { Budget } from '../expression/budget.js'
import type { Expression, Expressions } from '../expression/expression.js'
import { replaceTexts } from '../json/find-texts.js'
import { MAX_JSON_DEPTH } from '../json/json.js'
import { collect, collectLater } from '../property-errors.js'

/** The maximum number of values in a mask, including arrays and objects. */
const MAX_MASK_VALUES = 2000

/** Paths of errors begin with `mask`. @throws CofferError `validation` for a mask that is too large or too deep */
export async function compileMask(
  mask: unknown,
  expressions: Expressions,
  errors: PropertyErrors,
  budget: Budget,
) {
  const texts: [text: string, path: string][] = []
  const compiled = new Map<string, Expression>()
  let values = 0
  findTexts(mask, 'mask', 0)
  for (const [text, at] of texts) {
    if (budget.isTurnOver) await budget.pause()
    const expression =
      expressions.known(text, 'mask') ??
      (await collectLater(errors, at, () => expressions.compile(text, 'mask', budget)))
    if (expression !== undefined) compiled.set(text, expression)
  }
  return {
    /** The mask rendered over `data`; errors go to `errors`. */
    async render(data: unknown): Promise<unknown> {
      const rendered: unknown[] = []
      for (const [text, at] of texts) {
        if (!text.includes('{{')) continue
        if (budget.isTurnOver) await budget.pause()
        rendered.push(collect(errors, at, () => compiled.get(text)?.render({ data }, budget)))
      }
      return replaceTexts(mask, rendered.values())
    },
  }

  /** Counts all values and collects the strings. */
  function findTexts(value: unknown, at: string, depth: number): void {
    values++
    if (values > MAX_MASK_VALUES || depth > MAX_JSON_DEPTH)
      throw validationError(`a mask has at most ${MAX_MASK_VALUES} values, ${MAX_JSON_DEPTH} levels deep`)
    if (typeof value === 'string') texts.push([value, at])
    else for (const [inner, below] of membersOf(value, at)) findTexts(inner, below, depth + 1)
  }
}

function membersOf(value: unknown, path: string): [value: unknown, path: string][] {
  if (Array.isArray(value)) return value.map((item, index) => [item, `${path}[${index}]`])
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).map(([name, member]) => [member, `${path}.${name}`])
}
