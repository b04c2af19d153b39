/** A value of a command, from an argument, a file, standard input or a prompt. */
import type { CommandContext } from '../context/context.js'
import { printWarning } from '../output/output.js'
import { isSource, readAnswer } from './input.js'

/**
 * The value in `given` (see {@link InputReader.readValue}); without it, prompts for the value, or reads standard input
 * if prompts are not possible. `name` is the name of the value in messages.
 */
export async function readGivenValue(
  { terminal, input }: Pick<CommandContext, 'terminal' | 'input'>,
  given: string | undefined,
  name: string,
  { message = name, isSecret = false }: { message?: string; isSecret?: boolean } = {},
): Promise<string> {
  if (given === undefined && terminal.mayPrompt) {
    const { ask } = await import('./prompt.js')
    return readAnswer(input, await ask(terminal, { message, sensitive: isSecret }), name)
  }
  if (isSecret && given !== undefined && !isSource(given))
    await printWarning(
      terminal,
      `Other processes can see the arguments of a command. Give ${name} as @FILE, or on standard input.`,
    )
  return input.readValue(given ?? '-', name)
}
