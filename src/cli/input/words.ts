/** The positional arguments of a command: those that are required and missing are asked for. */
import { type CofferError, usage } from '../../errors.js'
import type { Terms, Words } from '../context/task.js'
import type { Terminal } from '../output/terminal.js'

const REQUIRED = /^<(.*?)(?:\.\.\.)?>$/

/** `command`: its name. @throws CofferError `usage` for the first that is missing */
export function requireWords(command: string, terms: Terms, words: Words): void {
  for (const [at, [term]] of terms.entries()) {
    const name = REQUIRED.exec(term)?.[1]
    if (name !== undefined && words[at] === undefined) throw missing(command, name)
  }
}

/** Asks for an argument of a command without an operation. @throws CofferError `usage` where nobody can be asked */
export async function askWord(terminal: Terminal, command: string, name: string): Promise<string> {
  if (!terminal.mayPrompt) throw missing(command, name)
  const { ask } = await import('./prompt.js')
  return ask(terminal, { message: name, validate: (answer) => answer !== '' || 'A value is required.' })
}

function missing(command: string, name: string): CofferError {
  return usage(`Missing required argument '${name}'. See: coffer ${command} --help`)
}

/** `ask`: the value of an argument by its name, which has underscores instead of hyphens, as properties have. */
export async function completeWords(
  terms: Terms,
  words: Words,
  ask: (name: string, description: string) => Promise<string>,
): Promise<Words> {
  const complete = [...words]
  for (const [at, [term, description]] of terms.entries()) {
    const name = REQUIRED.exec(term)?.[1]
    if (name !== undefined) complete[at] ??= await ask(name.replaceAll('-', '_'), description)
  }
  return complete
}
