/** `--explain`: what an operation on tokens would answer to somebody, and which rule decides. It does nothing else. */
import type { ExplainedDecision, Explanation } from '../../framework/explain.js'
import type { AnyOperation } from '../../framework/operation.js'
import type { CommandContext } from '../context/context.js'
import { findTenantChoice } from '../context/tenant-choice.js'
import { display, indent, layOutJson } from '../output/display.js'
import { chooseFormat, printNotice, printResult } from '../output/output.js'
import { write } from '../output/terminal.js'

const DEFAULT_COLUMNS = 80
/** Where a transform means something; elsewhere a rule grants, and that is all. */
const SHOWS_DATA: readonly string[] = ['token:read', 'token:create', 'token:update']

export interface ExplainOptions {
  /** The key to act with; absent for the owner. */
  key: string | undefined
  /** The id of the application in whose place one looks; it goes before the key. */
  application: string | undefined
  reveal: boolean
}

/** @throws CofferError `not_found` for an unknown application */
export async function explainOperation(
  context: CommandContext,
  { name }: AnyOperation,
  asked: Record<string, unknown>,
  { key, application, reveal }: ExplainOptions,
): Promise<void> {
  const { terminal, config } = context
  const tenant = await findTenantChoice(context)
  const as =
    application !== undefined || key === undefined
      ? { reveal, ...(tenant === undefined ? {} : { tenant }) }
      : { key }
  const explain = { reveal, ...(application === undefined ? {} : { application }) }
  const { result } = await context.reachVault((vault) =>
    vault.ask({ operation: name, input: asked, as, explain }),
  )
  const explanation = result as Explanation
  const format = chooseFormat(terminal, config.output)
  if (format !== 'table' || config.fields !== undefined)
    await printResult(terminal, explanation, { format, fields: config.fields })
  else await write(terminal.stdout, drawExplanation(explanation, terminal.stdout.columns ?? DEFAULT_COLUMNS))
  const isHidden = !reveal && explanation.decisions.some(isShownInTheClear)
  if (isHidden)
    await printNotice(terminal, 'They see data in the clear, which is masked here. Show it with --reveal.')
  await printNotice(terminal, 'Nothing was done: this is what would be answered.')
}

function isShownInTheClear({ permission, transform, decided_by }: ExplainedDecision): boolean {
  return permission === 'token:read' && transform === 'reveal' && decided_by !== 'owner'
}

/** In words, a paragraph for each decision. */
export function drawExplanation(explanation: Explanation, width: number): string {
  const { operation, caller, permissions, decisions, outcome, sees } = explanation
  const who = caller.type === 'user' ? 'the owner of the vault' : `application ${caller.id ?? '(unknown)'}`
  const missing = permissions.filter(({ is_held }) => !is_held).map(({ permission }) => permission)
  const answer = outcome.detail === undefined ? '' : `: ${display(outcome.detail)}`
  const paragraphs = [
    `coffer ${operation} would answer ${outcome.status} to ${who}${answer}`,
    ...(missing.length === 0 ? [] : [`Nowhere granted: ${missing.join(', ')}`]),
    ...decisions.map(describeDecision),
    ...(sees === undefined ? [] : [`They would see:\n${indent(layOutJson(sees, width - 2), 2)}`]),
  ]
  return `${paragraphs.join('\n\n')}\n`
}

function describeDecision({
  permission,
  container,
  decided_by,
  transform,
  passed_over,
}: ExplainedDecision): string {
  const verdict =
    decided_by === undefined
      ? 'refused: nothing grants it'
      : `${SHOWS_DATA.includes(permission) ? transform : 'granted'}, by ${nameDecider(decided_by)}`
  const passed = passed_over.map(({ priority, description, reason }) => {
    const why = reason === 'other container' ? 'covers another container' : 'grants other permissions'
    return `  passed over ${nameRule(priority, description)}: it ${why}`
  })
  return [`${permission} on ${container}: ${verdict}`, ...passed].join('\n')
}

function nameDecider(decider: NonNullable<ExplainedDecision['decided_by']>): string {
  if (decider === 'owner') return 'being the owner'
  if (decider === 'permissions') return 'its plain permissions'
  return nameRule(decider.priority, decider.description)
}

function nameRule(priority: number, description: string | undefined): string {
  return description === undefined ? `rule ${priority}` : `rule ${priority} (${display(description)})`
}
