/** `--explain`: prints what an operation on tokens would answer, and which access rules decide. */
import type { RuleCondition } from '../../domain/access/access.js'
import type { ExplainedDecision } from '../../framework/caller/decisions.js'
import type { Explanation } from '../../framework/caller/explain.js'
import type { AnyOperation } from '../../framework/operation.js'
import type { CommandContext } from '../context.js'
import { display, indent, layOutJson } from '../output/display.js'
import { chooseFormat, printNotice, printResult } from '../output/output.js'
import { DEFAULT_COLUMNS, write } from '../output/terminal.js'
import { findTenantChoice } from '../target/tenant-choice.js'

/** The permissions whose decisions include a transform. */
const SHOWS_DATA: readonly string[] = ['token:read', 'token:create', 'token:update']

/** `key`: undefined for the owner. `application`: instead of it. @throws CofferError `not_found` for an unknown one */
export async function explainOperation(
  context: CommandContext,
  { name }: AnyOperation,
  asked: Record<string, unknown>,
  { key, application, reveal }: Record<'key' | 'application', string | undefined> & { reveal: boolean },
): Promise<void> {
  const { terminal, config } = context
  const tenant = await findTenantChoice(context)
  const as = application !== undefined || key === undefined ? { reveal, tenant } : { key }
  const { result } = await context.reachVault((vault) =>
    vault.ask({ operation: name, input: asked, as, explain: { reveal, application } }),
  )
  const explanation = result as Explanation
  const format = chooseFormat(terminal, config.output)
  if (format !== 'table' || config.fields !== undefined)
    await printResult(terminal, explanation, { format, fields: config.fields })
  else await write(terminal.stdout, drawExplanation(explanation, terminal.stdout.columns ?? DEFAULT_COLUMNS))
  const hidden = 'The caller would see the data in the clear; it is masked here. Show it with --reveal.'
  if (!reveal && explanation.decisions.some(isShownInTheClear)) await printNotice(terminal, hidden)
  await printNotice(terminal, 'The operation was not performed.')
}

function isShownInTheClear({ permission, transform, decided_by }: ExplainedDecision): boolean {
  return permission === 'token:read' && transform === 'reveal' && decided_by !== 'owner'
}

/** Text, with a paragraph for each decision. */
export function drawExplanation(explanation: Explanation, width: number): string {
  const { operation, caller, permissions, decisions, outcome, sees } = explanation
  const who = caller.type === 'user' ? 'the owner of the vault' : `application ${caller.id ?? '(unknown)'}`
  const missing = permissions.filter(({ is_held }) => !is_held).map(({ permission }) => permission)
  const answer = outcome.detail === undefined ? '' : `: ${display(outcome.detail)}`
  const paragraphs = [
    `coffer ${operation} would answer ${outcome.status} to ${who}${answer}`,
    ...(missing.length === 0 ? [] : [`Not granted on any container: ${missing.join(', ')}`]),
    ...decisions.map(describeDecision),
    ...(sees === undefined ? [] : [`The answer:\n${indent(layOutJson(sees, width - 2), 2)}`]),
  ]
  return `${paragraphs.join('\n\n')}\n`
}

function describeDecision(decision: ExplainedDecision): string {
  const { of, permission, container, token, decided_by, transform, passed_over } = decision
  const verdict =
    decided_by === undefined
      ? 'refused: not granted'
      : `${SHOWS_DATA.includes(permission) ? transform : 'granted'}, by ${nameDecider(decided_by, of)}`
  const passed = passed_over.map(({ priority, description, reason, condition }) => {
    const why = condition === undefined ? WHY[reason] : `requires ${describeCondition(condition)}`
    return `  not applied: ${nameRule(priority, description)} ${why}`
  })
  const who = of === undefined ? '' : `${of === 'session' ? 'Session' : 'Its authorizer'}: `
  const where = token === undefined ? container : `${container} of token ${display(token)}`
  return [`${who}${permission} on ${where}: ${verdict}`, ...passed].join('\n')
}

const WHY: Record<ExplainedDecision['passed_over'][number]['reason'], string> = {
  'other container': 'applies to another container',
  'other permissions': 'grants other permissions',
  'condition does not hold': 'has a condition that does not hold',
}

function describeCondition({ attribute, operator, value }: RuleCondition): string {
  const about = attribute === 'id' ? 'a token id' : 'a container'
  return `${about} that ${operator === 'equals' ? 'is' : 'starts with'} ${display(value)}`
}

function nameDecider(decider: NonNullable<ExplainedDecision['decided_by']>, of: ExplainedDecision['of']) {
  if (decider === 'owner') return 'ownership'
  if (decider === 'permissions') return `the permissions of the ${of === 'session' ? of : 'application'}`
  return nameRule(decider.priority, decider.description)
}

function nameRule(priority: number, description: string | undefined): string {
  return description === undefined ? `rule ${priority}` : `rule ${priority} (${display(description)})`
}
