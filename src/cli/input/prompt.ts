/**
 * Prompts are printed to standard error, because standard output is for results. Only this file imports inquirer, at
 * the first prompt.
 */
import { Writable } from 'node:stream'
import { CofferError, interrupted, noRevealError, usage } from '../../errors.js'
import { display, displayLines } from '../output/display.js'
import { type Terminal, write } from '../output/terminal.js'

export interface Choice {
  value: string
  name: string
  description?: string
}

export interface Question {
  message: string
  /**
   * The name of the missing value in the error if prompts are impossible, for example `--type`. The default
   * is the message.
   */
  missing?: string
  /** `search`: typed text filters the choices, and the answer is a choice or the typed text. */
  type?: 'input' | 'confirm' | 'select' | 'checkbox' | 'search'
  choices?: readonly Choice[]
  /** Shows a star for each typed character, and eight stars after the answer. */
  sensitive?: boolean
  /** After the answer, the prompt shows no tick, because the answer is validated only later. */
  isUnchecked?: boolean
  /** Returns true, or an error message that does not contain the answer. The answer of checkboxes is a list. */
  // biome-ignore lint/suspicious/noExplicitAny: the type of the question decides
  validate?(answer: any): true | string | Promise<true | string>
}

const CONCEALED = { type: 'password', mask: '*', toggleMask: false } as const
const conceal = (text: string) => (text === '' ? '' : '********')
/** After one of these events, nobody can answer a prompt. Ctrl-D pauses the input. */
const INPUT_OVER = ['pause', 'end', 'close']
const OVER = ['ExitPromptError', 'AbortPromptError', 'CancelPromptError']

/** @throws CofferError `usage` if prompts are impossible, `interrupted` on Ctrl-C and Ctrl-D */
export async function ask(terminal: Terminal, question: Question): Promise<string> {
  const { message, missing = message, type = 'input', validate = () => true } = question
  if (!terminal.mayPrompt) throw usage(`${missing} is missing, and prompts are not possible here.`)
  const choices = question.choices?.map((choice) => ({ ...choice, name: display(choice.name) })) ?? []
  const details = {
    ...{ name: 'answer', type, message: display(message), choices, loop: false, default: undefined },
    // These shortcuts are letters, so typing a name would trigger them.
    shortcuts: { all: null, invert: null },
    source: (typed = '') => searchChoices(choices, typed),
    validate: async (answer: unknown) => {
      const values = Array.isArray(answer) ? answer.map(({ value }: Choice) => value) : answer
      const verdict = await validate(values)
      return verdict === true || displayLines(verdict)
    },
    ...(type === 'confirm' && { default: false }),
    ...(question.sensitive && CONCEALED),
    theme: {
      ...(question.sensitive && { style: { answer: conceal } }),
      ...(question.isUnchecked && { prefix: { done: '?' } }),
    },
  }
  const { default: inquirer } = await import('inquirer')
  const { stdin } = terminal
  const ended = new AbortController()
  const stop = () => ended.abort()
  for (const event of INPUT_OVER) stdin.on(event, stop)
  try {
    const output = createScreen(terminal, stop)
    const prompt = inquirer.createPromptModule({ input: stdin, output, signal: ended.signal })
    const { answer } = await prompt<{ answer: unknown }>([details as never])
    return String(answer)
  } catch (error) {
    if (error instanceof Error && OVER.includes(error.name)) throw interrupted({ cause: error })
    throw new CofferError('internal', 'The prompt failed.', { cause: error })
  } finally {
    for (const event of INPUT_OVER) stdin.off(event, stop)
  }
}

function searchChoices(choices: readonly Choice[], typed: string): Choice[] {
  const found = choices.filter(({ name, value }) => name.includes(typed) || value.startsWith(typed))
  const isOther = typed !== '' && !found.some(({ name }) => name === typed)
  return isOther ? [...found, { value: typed, name: display(typed) }] : found
}

/** An empty answer means no. @throws CofferError `interrupted` for no, and the errors of {@link ask} */
export async function confirm(terminal: Terminal, message: string): Promise<void> {
  if ((await ask(terminal, { message, missing: '--yes', type: 'confirm' })) !== 'true')
    throw new CofferError('interrupted', 'Nothing was changed.')
}

/** Only a person at a terminal can end no-reveal mode. No flag answers this question. */
export function confirmReveal(terminal: Terminal): Promise<void> {
  if (!terminal.mayPrompt)
    throw noRevealError(
      'to end this mode without a terminal. The owner of the vault can end this mode on a terminal',
    )
  return confirm(terminal, 'Commands will show data and new keys again. Continue?')
}

/** @throws CofferError the errors of {@link ask} */
export async function askTwice(terminal: Terminal, question: Question): Promise<string> {
  const { message, missing = message } = question
  for (let hint = ''; ; hint = 'The two differ. ') {
    const first = await ask(terminal, { ...question, message: hint + message, missing, sensitive: true })
    const second = await ask(terminal, { message: 'The same again', missing, sensitive: true })
    if (first === second) return first
  }
}

/** Returns a new stream, because inquirer ends its stream after each prompt. */
function createScreen({ stderr, colour }: Terminal, stop: () => void): Writable {
  const screen = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      const text = String(chunk)
      write(stderr, colour.stderr ? text : text.replace(/\u001b\[[\d;]*m/g, '')).catch(stop)
      done()
    },
  })
  return Object.assign(screen, { isTTY: true, columns: stderr.columns })
}
