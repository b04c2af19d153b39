import { describeSeed } from '../../operations/seed/seed-items.js'
import type { CommandContext } from '../context.js'
import { printResult } from '../output/output.js'

export async function printSeedSchema({ terminal }: CommandContext): Promise<void> {
  await printResult(terminal, describeSeed(), { format: 'json' })
}
