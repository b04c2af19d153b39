/** Hides the values of headers and bodies in the fault rules of the page, because these values may be keys or data. */
import { canonicalJson, isObject } from '../domain/json/json.js'
import { conflict } from '../errors.js'
import type { OperationInput } from '../framework/context.js'
import type { FaultRule } from '../framework/ports/control.js'
import type { Performed } from './page-management.js'
import type { Place } from './place.js'

export const FAULTS: Performed = {
  'control fault list': { give: (rules) => hideMatches(rules as object[]) },
  'control fault set': { take: keepMatches, give: (rules) => hideMatches(rules as object[]) },
}

/**
 * Matches the text that replaces a hidden value. The text contains the number of the rule, so that two rules differ
 * even if only their hidden values differ.
 */
const HIDDEN = /^\(hidden, rule \d+\)$/

function hideMatches<R extends object>(rules: readonly R[]): R[] {
  return rules.map((rule, at) => {
    const hide = (matched: unknown) =>
      isObject(matched)
        ? Object.fromEntries(Object.keys(matched).map((name) => [name, `(hidden, rule ${at + 1})`]))
        : matched
    const { headers, body } = rule as { headers?: unknown; body?: unknown }
    return {
      ...rule,
      ...(headers !== undefined && { headers: hide(headers) }),
      ...(body !== undefined && { body: hide(body) }),
    }
  })
}

/**
 * The page sends all rules back without their hidden values. Restores these values from the stored rules.
 * @throws CofferError `conflict` if the rules have changed since the page read them
 */
function keepMatches(input: OperationInput, { control }: Place): OperationInput {
  const { rules } = input as { rules?: unknown }
  if (!Array.isArray(rules)) return input
  const stored: FaultRule[] = control.faults.rules.map(({ matched: _, applied: __, ...rule }) => rule)
  const shown = hideMatches(stored).map((rule) => canonicalJson(rule))
  const restored = rules.map((rule: unknown) => {
    if (!isObject(rule)) return rule
    const values = [rule.headers, rule.body].flatMap((each) => (isObject(each) ? Object.values(each) : []))
    if (!values.some((value) => HIDDEN.test(String(value)))) return rule
    const found = stored[shown.indexOf(canonicalJson(rule))]
    if (found === undefined) throw conflict('The faults have changed in the meantime. Look at them again.')
    return found
  })
  return { ...input, rules: restored }
}
