import { toProblem } from '../../errors.js'
import { loadOperation } from '../../operations/load.js'
import type { CommandContext } from '../context.js'
import { printWarning } from '../output/output.js'
import type { Hooks } from '../task.js'

/**
 * Warns about invalid code before it is stored, so that a person can interrupt the command. The code is stored anyway.
 */
export const storeCode: Hooks = {
  run: async (task, usual) => {
    const { context, input } = task
    if (typeof input.code === 'string') await warnOfCode(context, input.code)
    await usual?.(task)
  },
}

async function warnOfCode(context: CommandContext, code: string): Promise<void> {
  const { askOffline } = await import('../target/offline.js')
  const check = await loadOperation('formula check')
  await askOffline(context, check!, { code }).catch((error) =>
    printWarning(context.terminal, `This code cannot run: ${toProblem(error, '', 'owner').detail}`),
  )
}
