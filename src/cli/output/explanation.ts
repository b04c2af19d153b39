import type { ExplainedDecision } from '../../framework/caller/decisions.js'
import type { Explanation } from '../../framework/caller/explain.js'
import { countOf } from './display.js'

/** Decisions after this number are only counted, because a request for a list can have very many decisions. */
const MAX_DECISIONS = 20

/** `caller`: the application, as the user typed it for `--explain-as`. */
export function describeExplanation(
  { outcome, decisions, operation }: Explanation,
  caller?: string,
): string[] {
  const refused = decisions.find(({ decided_by }) => decided_by === undefined)
  const lines = [describeOutcome(operation, outcome, refused)]
  lines.push(...decisions.slice(0, MAX_DECISIONS).map((each) => describeDecision(each, caller)))
  const left = decisions.length - MAX_DECISIONS
  if (left > 0) lines.push(`${countOf(left, 'more decision')}. Show all of them with -o json.`)
  return lines
}

function describeOutcome(
  operation: string,
  { status, detail, errors = {} }: Explanation['outcome'],
  refused: ExplainedDecision | undefined,
): string {
  if (status < 400) return `Allowed: ${operation} would be answered with ${status}.`
  if (status === 403 && refused !== undefined)
    return `Refused (403): nothing grants ${refused.permission} on ${placeOf(refused)}.`
  const wrong = Object.entries(errors).map(([name, texts]) => `${name}: ${texts.join(', ')}`)
  return `Refused (${status}): ${wrong.length > 0 ? wrong.join('; ') : detail}`
}

function describeDecision(decision: ExplainedDecision, caller = 'the caller'): string {
  const { of, permission, passed_over } = decision
  const whose = { session: 'the session', authorizer: 'the application that authorized the session' }
  const who = of === undefined ? caller : whose[of]
  const reasons = passed_over.map(({ reason, condition, ...rule }) => {
    const held = condition && `: ${condition.attribute} ${condition.operator} ${condition.value}`
    return `${nameOf(rule)} (${reason}${held ?? ''})`
  })
  const passed = reasons.length === 0 ? '' : ` Passed over: ${reasons.join(', ')}.`
  return `May ${who} do ${permission} on ${placeOf(decision)}? ${describeDecider(decision)}${passed}`
}

function describeDecider({ decided_by, transform }: ExplainedDecision): string {
  if (decided_by === undefined) return 'No: no rule and no permission grants it.'
  const how = `with the transform ${transform}`
  if (decided_by === 'owner') return 'Yes: the owner of the vault may do everything.'
  if (decided_by === 'permissions') return `Yes, ${how}: the permissions of the application grant it.`
  return `Yes, ${how}: ${nameOf(decided_by)} grants it.`
}

function nameOf({ priority, description }: { priority: number; description?: string }): string {
  return `rule ${priority}${description ? ` “${description}”` : ''}`
}

function placeOf({ container, token }: ExplainedDecision): string {
  return token === undefined ? container : `${container} of ${token}`
}
