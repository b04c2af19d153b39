/**
 * Masks: any JSON whose strings are expressions. Names are not expressions; numbers, booleans and null stay as they
 * are. It does not know who sees a masked value.
 */
import { CofferError, type PropertyErrors } from '../errors.js'
import { Budget, sizeOf } from './budget.js'
import type { Expressions } from './expression.js'
import { MAX_JSON_DEPTH } from './json.js'
import { collect, refuseErrors } from './property-errors.js'

/** Most values in a mask, arrays and objects included. */
export const MAX_MASK_VALUES = 2000

/** A checked mask. */
export interface Mask {
  /**
   * The mask over `data`; all its expressions share one budget.
   * @throws CofferError `validation` with every expression that failed.
   */
  render(data: unknown, budget?: Budget): Promise<unknown>
}

type Render = (data: unknown, errors: PropertyErrors, budget: Budget) => Promise<unknown>

interface Compiling {
  expressions: Expressions
  errors: PropertyErrors
  values: number
}

/**
 * Checks a mask. Complaints are under paths that start with `path`, such as `mask.number`.
 * @throws CofferError `validation` with every expression that is refused, or for a mask that is too large or deep.
 */
export async function compileMask(mask: unknown, expressions: Expressions, path = 'mask'): Promise<Mask> {
  const compiling: Compiling = { expressions, errors: {}, values: 0 }
  const render = await compileValue(compiling, mask, path, 0)
  refuseErrors(compiling.errors)
  return {
    async render(data, budget = new Budget(sizeOf(data))) {
      const errors: PropertyErrors = {}
      const masked = await render(data, errors, budget)
      refuseErrors(errors)
      return masked
    },
  }
}

async function compileValue(
  compiling: Compiling,
  value: unknown,
  path: string,
  depth: number,
): Promise<Render> {
  compiling.values++
  if (compiling.values > MAX_MASK_VALUES || depth > MAX_JSON_DEPTH) {
    throw new CofferError(
      'validation',
      `a mask has at most ${MAX_MASK_VALUES} values, ${MAX_JSON_DEPTH} levels deep`,
    )
  }
  if (typeof value === 'string') return compileText(compiling, value, path)
  if (value === null || typeof value !== 'object') return async () => value
  if (Array.isArray(value)) return compileArray(compiling, value, path, depth)
  return compileObject(compiling, value as Record<string, unknown>, path, depth)
}

async function compileText({ expressions, errors }: Compiling, text: string, path: string): Promise<Render> {
  const expression = await collect(errors, path, () => expressions.compile(text, 'mask'))
  return async (data, complaints, budget) =>
    collect(complaints, path, () => expression?.render({ data }, budget))
}

async function compileArray(
  compiling: Compiling,
  items: unknown[],
  path: string,
  depth: number,
): Promise<Render> {
  const renders: Render[] = []
  for (const [index, item] of items.entries()) {
    renders.push(await compileValue(compiling, item, `${path}[${index}]`, depth + 1))
  }
  return async (data, errors, budget) => {
    const masked: unknown[] = []
    for (const render of renders) masked.push(await render(data, errors, budget))
    return masked
  }
}

async function compileObject(
  compiling: Compiling,
  members: Record<string, unknown>,
  path: string,
  depth: number,
): Promise<Render> {
  const renders: [name: string, render: Render][] = []
  for (const [name, member] of Object.entries(members)) {
    renders.push([name, await compileValue(compiling, member, `${path}.${name}`, depth + 1)])
  }
  return async (data, errors, budget) => {
    const masked: [name: string, value: unknown][] = []
    for (const [name, render] of renders) masked.push([name, await render(data, errors, budget)])
    return Object.fromEntries(masked)
  }
}
