/** Masks: any JSON value. Its strings are expressions; property names, numbers, booleans and null are copied. */
import { type PropertyErrors, validationError } from '../../errors.js'
import { Budget, sizeOf } from '../expression/budget.js'
import type { Expression, Expressions, Scope } from '../expression/expression.js'
import { MAX_JSON_DEPTH } from '../json/json.js'
import { collect, collectLater } from '../property-errors.js'

/** The maximum number of values in a mask, including arrays and objects. */
export const MAX_MASK_VALUES = 2000

/** Adds errors under paths that begin with `path`. @throws CofferError `validation` for a mask that is too large or too deep */
export async function compileMask(
  mask: unknown,
  expressions: Expressions,
  errors: PropertyErrors,
  path = 'mask',
) {
  const texts: Text[] = []
  findTexts({ texts, values: 0 }, mask, path, 0)
  const compiled = new Map<string, Expression>()
  for (const { text, path } of texts) {
    const expression =
      expressions.known(text, 'mask') ??
      (await collectLater(errors, path, () => expressions.compile(text, 'mask')))
    if (expression !== undefined) compiled.set(text, expression)
  }
  return {
    /** The mask rendered over `data`. All its expressions share one budget; errors go to `errors`. */
    render: (data: unknown, budget = new Budget(sizeOf(data))) =>
      renderValue({ compiled, scope: { data }, errors, budget }, mask, path),
  }
}

interface Text {
  text: string
  path: string
}

/** Counts all values and collects the strings. @throws CofferError `validation` for too many values or levels. */
function findTexts(found: { texts: Text[]; values: number }, value: unknown, path: string, depth: number) {
  found.values++
  if (found.values > MAX_MASK_VALUES || depth > MAX_JSON_DEPTH)
    throw validationError(`a mask has at most ${MAX_MASK_VALUES} values, ${MAX_JSON_DEPTH} levels deep`)
  if (typeof value === 'string') found.texts.push({ text: value, path })
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) findTexts(found, item, `${path}[${index}]`, depth + 1)
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) findTexts(found, member, `${path}.${name}`, depth + 1)
  }
}

interface Rendering {
  compiled: ReadonlyMap<string, Expression>
  scope: Scope
  errors: PropertyErrors
  budget: Budget
}

function renderValue(rendering: Rendering, value: unknown, path: string): unknown {
  if (typeof value === 'string') {
    const { compiled, scope, errors, budget } = rendering
    return collect(errors, path, () => compiled.get(value)?.render(scope, budget))
  }
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value))
    return value.map((item, index) => renderValue(rendering, item, `${path}[${index}]`))
  const members = Object.entries(value)
  return Object.fromEntries(
    members.map(([name, member]) => [name, renderValue(rendering, member, `${path}.${name}`)]),
  )
}
