import type { Explanation } from '../../framework/caller/explain.js'
import type { AnyOperation } from '../../framework/operation.js'
import type { CommandContext } from '../context.js'
import { printForRun, printNotice } from '../output/output.js'
import { findTenantChoice } from '../target/credentials.js'

/** `key`: undefined for the owner. `application`: instead of it. @throws CofferError `not_found` for an unknown one */
export async function explainOperation(
  context: CommandContext,
  { name: operation }: AnyOperation,
  input: Record<string, unknown>,
  { key, application, reveal }: Record<'key' | 'application', string | undefined> & { reveal: boolean },
): Promise<void> {
  const tenant = await findTenantChoice(context)
  const as = application !== undefined || key === undefined ? { reveal, tenant } : { key }
  const { result } = await context.reachVault((vault) =>
    vault.ask({ operation, input, as, explain: { reveal, application } }),
  )
  const explanation = result as Explanation
  await printForRun(context, explanation)
  const isPlaintext = explanation.decisions.some(
    ({ permission, transform, decided_by }) =>
      permission === 'token:read' && transform === 'reveal' && decided_by !== 'owner',
  )
  const hidden = 'The caller would see the data in the clear; it is masked here. Show it with --reveal.'
  if (!reveal && isPlaintext) await printNotice(context.terminal, hidden)
  await printNotice(context.terminal, 'The operation was not performed.')
}
