/**
 * Questions to the person at the terminal. inquirer lives here alone and loads with the first question; everything is
 * drawn on standard error, so that standard output stays the result's. Nothing here knows what an answer is for.
 */
import { Writable } from 'node:stream'
import { CofferError } from '../../errors.js'
import { display, displayLines } from '../output/display.js'
import { type Terminal, write } from '../output/terminal.js'

/** true, or what is wrong with the answer and what would be right; never the answer itself. */
export type Check = (answer: string) => true | string | Promise<true | string>

/** `missing` names what to give instead where nobody can be asked, such as `--type`; left out, the message does. */
export interface Question {
  message: string
  missing?: string
  default?: string
  /** Shows a star for each character while it is typed and a fixed number of them afterwards. */
  sensitive?: boolean
  validate?: Check
}

/**
 * Asks for one line of text; an empty answer takes the default.
 * @throws CofferError `usage` when nobody can be asked, `interrupted` on Ctrl-C and Ctrl-D.
 */
export async function ask(terminal: Terminal, question: Question): Promise<string> {
  const { message, missing = message, sensitive = false, validate = () => true } = question
  const asked = {
    message: display(message),
    validate: async (answer: string) => {
      const verdict = await validate(answer)
      return verdict === true ? true : displayLines(verdict)
    },
  }
  const answer = sensitive
    ? await prompt(terminal, missing, { ...asked, type: 'password', ...CONCEALED })
    : await prompt(terminal, missing, { ...asked, type: 'input', default: question.default })
  return String(answer)
}

/** Nothing shows the text, and once answered eight stars stand for it, whatever its length. */
const CONCEALED = { mask: '*', toggleMask: false, theme: { style: { answer: () => '********' } } }

/**
 * Yes or no; an empty answer is `default` (no), and anything else than yes or no is asked again.
 * @throws CofferError like {@link ask}
 */
export async function confirm(
  terminal: Terminal,
  question: { message: string; missing?: string; default?: boolean },
): Promise<boolean> {
  const { message, missing = '--yes', default: assumed = false } = question
  const answer = await prompt(terminal, missing, {
    type: 'confirm',
    message: display(message),
    default: assumed,
  })
  return answer === true
}

/** `name` is shown instead of the value, `description` while it is the one pointed at. */
export interface Choice {
  value: string
  name?: string
  description?: string
}

/**
 * One of several: its value.
 * @throws CofferError like {@link ask}
 */
export async function select(
  terminal: Terminal,
  question: { message: string; missing?: string; choices: readonly (string | Choice)[]; default?: string },
): Promise<string> {
  const { message, missing = message, choices, default: assumed } = question
  const answer = await prompt(terminal, missing, {
    type: 'select',
    message: display(message),
    choices: choices.map((choice) => toShown(typeof choice === 'string' ? { value: choice } : choice)),
    default: assumed,
    loop: false,
  })
  return String(answer)
}

function toShown({ value, name = value, description }: Choice): object {
  const shown = { value, name: display(name), short: display(name) }
  return description === undefined ? shown : { ...shown, description: display(description) }
}

/**
 * A new secret, typed twice; asks again from the start when the two differ.
 * @throws CofferError like {@link ask}
 */
export async function askTwice(
  terminal: Terminal,
  question: { message: string; again: string; missing?: string; validate?: Check },
): Promise<string> {
  const { message, again, missing = message, validate = () => true } = question
  for (let hint = ''; ; hint = 'The two differ. ') {
    const first = await ask(terminal, { message: hint + message, missing, sensitive: true, validate })
    const second = await ask(terminal, { message: again, missing, sensitive: true })
    if (first === second) return first
  }
}

type InquirerQuestion = Record<string, unknown> & {
  type: 'input' | 'password' | 'confirm' | 'select'
  message: string
}

async function prompt(terminal: Terminal, missing: string, question: InquirerQuestion): Promise<unknown> {
  if (!terminal.mayPrompt) {
    throw new CofferError('usage', `${missing} is missing, and nobody can be asked for it here.`)
  }
  const { default: inquirer } = await import('inquirer')
  const { stdin } = terminal
  const ended = new AbortController()
  const stop = () => ended.abort()
  // Ctrl-D closes the line editor, which pauses its input and else would leave the question unanswered for ever.
  for (const event of INPUT_OVER) stdin.on(event, stop)
  try {
    const output = createScreen(terminal, stop)
    const askThis = inquirer.createPromptModule({ input: stdin, output, signal: ended.signal })
    const { answer } = await askThis<{ answer: unknown }>([{ ...question, name: 'answer' }])
    return answer
  } catch (error) {
    const isOver = error instanceof Error && OVER.includes(error.name)
    if (isOver) throw new CofferError('interrupted', 'Interrupted.', { cause: error })
    throw new CofferError('internal', 'The question could not be asked.', { cause: error })
  } finally {
    for (const event of INPUT_OVER) stdin.off(event, stop)
  }
}

const INPUT_OVER = ['pause', 'end', 'close']
/** What inquirer throws on Ctrl-C, and when told to stop. */
const OVER = ['ExitPromptError', 'AbortPromptError', 'CancelPromptError']

/** Standard error as inquirer sees it: it may be ended with each question, and has colours only where they are wanted. */
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
