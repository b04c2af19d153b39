import type { Explanation } from '../../framework/caller/explain.js'
import { printForRun } from '../output/output.js'
import { findTenantChoice } from '../target/credentials.js'
import type { Task } from '../task.js'

/** Explains the operation for an application, or else for the caller. @throws CofferError `not_found` */
export async function explainTask(task: Task, application: string | undefined): Promise<void> {
  const { context, definition, input, key, options } = task
  const { name: operation } = definition
  const reveal = options.reveal === true
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
  if (!reveal && isPlaintext) await task.notice(hidden)
  await task.notice('The operation was not performed.')
}
