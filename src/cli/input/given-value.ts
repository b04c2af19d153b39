/** A value of a command, from an argument, a file, standard input or a prompt. */
import { printWarning } from '../output/output.js'
import type { Terminal } from '../output/terminal.js'
import { type InputReader, isSource, readAnswer } from './input.js'

/**
 * The value in `given` (see {@link InputReader.readValue}); without it, prompts for the value, or reads standard input
 * if prompts are not possible. `name` is the name of the value in messages.
 */
export async function readGivenValue(
  { terminal, input }: { terminal: Terminal; input: InputReader },
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
