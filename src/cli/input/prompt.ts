/** Prompts on standard error: standard output has the result alone. inquirer is imported here only, on first use. */
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
  /** How to give the answer if prompts are not possible, such as `--type`; default: the message. */
  missing?: string
  /** `search`: one of the choices, which typing narrows, or the text that was typed. */
  type?: 'input' | 'confirm' | 'select' | 'checkbox' | 'search'
  choices?: readonly Choice[]
  /** Displays a star per character while typing, and eight stars afterwards. */
  sensitive?: boolean
  /** Whether the answer is right is known only later, so the prompt does not end with a tick. */
  isUnchecked?: boolean
  /** Returns true, or an error message that does not contain the answer. The answer of checkboxes is a list. */
  // biome-ignore lint/suspicious/noExplicitAny: the type of the question decides
  validate?(answer: any): true | string | Promise<true | string>
}

const CONCEALED = { type: 'password', mask: '*', toggleMask: false } as const
const conceal = (text: string) => (text === '' ? '' : '********')
/** Events after which a prompt would never be answered; Ctrl-D pauses the input. */
const INPUT_OVER = ['pause', 'end', 'close']
/** The errors of inquirer on Ctrl-C and when aborted. */
const OVER = ['ExitPromptError', 'AbortPromptError', 'CancelPromptError']

/** @throws CofferError `usage` if prompts are not possible, `interrupted` on Ctrl-C and Ctrl-D */
export async function ask(terminal: Terminal, question: Question): Promise<string> {
  const { message, missing = message, type = 'input', validate = () => true } = question
  if (!terminal.mayPrompt) throw usage(`${missing} is missing, and prompts are not possible here.`)
  const choices = question.choices?.map((choice) => ({ ...choice, name: display(choice.name) })) ?? []
  const details = {
    ...{ name: 'answer', type, message: display(message), choices, loop: false, default: undefined },
    // Somebody who types a name to find it would choose all with its letter a.
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

/** Yes or no; an empty answer is no. @throws CofferError `interrupted` on no, and like {@link ask} */
export async function confirm(terminal: Terminal, message: string): Promise<void> {
  if ((await ask(terminal, { message, missing: '--yes', type: 'confirm' })) !== 'true')
    throw new CofferError('interrupted', 'Nothing was changed.')
}

/** A person at a terminal ends no-reveal mode; no flag answers for them. */
export function confirmReveal(terminal: Terminal): Promise<void> {
  if (!terminal.mayPrompt) throw noRevealError('to end it without a terminal. Its owner ends it on one')
  return confirm(terminal, 'Commands will show data and new keys again. Go on?')
}

/** A new secret, typed twice; asks again if the two differ. @throws CofferError like {@link ask} */
export async function askTwice(terminal: Terminal, question: Question): Promise<string> {
  const { message, missing = message } = question
  for (let hint = ''; ; hint = 'The two differ. ') {
    const first = await ask(terminal, { ...question, message: hint + message, missing, sensitive: true })
    const second = await ask(terminal, { message: 'The same again', missing, sensitive: true })
    if (first === second) return first
  }
}

/** Standard error for inquirer, which ends its output after each prompt; removes colours if they are disabled. */
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
