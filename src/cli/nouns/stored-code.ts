import { invalidCode } from '../../domain/reactor/code-fault.js'
import { toProblem } from '../../errors.js'
import type { CommandContext } from '../context.js'
import { printWarning } from '../output/output.js'
import type { Hooks } from '../task.js'

/** Warns if the code cannot run, and stores the code anyway. The check does not run the code. */
export const storeCode: Hooks = {
  run: async (task, usual) => {
    const { context, input } = task
    if (typeof input.code === 'string') await warnOfCode(context, input.code)
    await usual?.(task)
  },
}

async function warnOfCode({ terminal }: CommandContext, code: string): Promise<void> {
  const { compileCode } = await import('../../vault/app.js')
  try {
    const faults = await compileCode(code)
    if (faults.length > 0)
      await printWarning(terminal, `This code cannot run: ${invalidCode(faults).message}`)
  } catch (error) {
    await printWarning(terminal, `This code was not checked: ${toProblem(error, '', 'owner').detail}`)
  }
}
