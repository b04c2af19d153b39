/** Prompts on standard error: standard output has the result alone. inquirer is imported here only, on first use. */
import { Writable } from 'node:stream'
import { CofferError, interrupted, usage } from '../../errors.js'
import { display, displayLines } from '../output/display.js'
import { type Terminal, write } from '../output/terminal.js'

/** Returns true, or an error message that does not contain the answer. */
export type Check = (answer: string) => true | string | Promise<true | string>

/** `missing` is what to give when prompts are not possible, such as `--type`; default: the message. */
interface Asked {
  message: string
  missing?: string
}

export interface Question extends Asked {
  /** Displays a star per character while typing, and eight stars afterwards. */
  sensitive?: boolean
  validate?: Check
}

/** One line of text. @throws CofferError `usage` if prompts are not possible, `interrupted` on Ctrl-C and Ctrl-D */
export async function ask(terminal: Terminal, question: Question): Promise<string> {
  const { message, missing = message, sensitive = false, validate = () => true } = question
  const asked = {
    message: display(message),
    validate: async (answer: string) => {
      const verdict = await validate(answer)
      return verdict === true ? true : displayLines(verdict)
    },
  }
  const look = sensitive ? CONCEALED : ({ type: 'input' } as const)
  return String(await prompt(terminal, missing, { ...asked, ...look }))
}

const CONCEALED = {
  type: 'password',
  mask: '*',
  toggleMask: false,
  theme: { style: { answer: (text: string) => (text === '' ? '' : '********') } },
} as const

/** Yes or no; an empty answer is no. @throws CofferError like {@link ask} */
export async function confirm(terminal: Terminal, { message, missing = '--yes' }: Asked): Promise<boolean> {
  const question = { type: 'confirm', message: display(message), default: false } as const
  return (await prompt(terminal, missing, question)) === true
}

/** One of several choices. @throws CofferError like {@link ask} */
export async function select(
  terminal: Terminal,
  { message, missing, choices }: { message: string; missing: string; choices: readonly string[] },
): Promise<string> {
  const question = { type: 'select', message: display(message), choices, loop: false } as const
  return String(await prompt(terminal, missing, question))
}

export interface Choice {
  value: string
  name: string
  description?: string
}

/** `validate` returns true, or why the value is refused. */
interface ChoiceQuestion<V> {
  message: string
  missing: string
  choices: readonly Choice[]
  validate(value: V): Promise<true | string>
}

/** Any number of choices. @throws CofferError like {@link ask} */
export async function checkbox(
  terminal: Terminal,
  { message, missing, choices, validate }: ChoiceQuestion<string[]>,
): Promise<void> {
  const question = {
    type: 'checkbox',
    message: display(message),
    choices,
    loop: false,
    // Somebody who types a name to find it would choose all with its letter a.
    shortcuts: { all: null, invert: null },
    validate: (chosen: readonly Choice[]) => validate(chosen.map(({ value }) => value)),
  } as const
  await prompt(terminal, missing, question)
}

/** One of several choices that typing narrows, or what was typed. @throws CofferError like {@link ask} */
export async function search(
  terminal: Terminal,
  { message, missing, choices, validate }: ChoiceQuestion<string>,
): Promise<void> {
  const shown = choices.map(({ value, name, description }) => ({
    value,
    name: display(name),
    ...(description === undefined ? {} : { description: display(description) }),
  }))
  const source = (typed = '') => {
    const found = shown.filter(({ name, value }) => name.includes(typed) || value.startsWith(typed))
    const isOther = typed !== '' && !found.some(({ name }) => name === typed)
    return isOther ? [...found, { value: typed, name: display(typed) }] : found
  }
  await prompt(terminal, missing, { type: 'search', message: display(message), source, validate })
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

type InquirerQuestion = Record<string, unknown> & {
  type: 'input' | 'password' | 'confirm' | 'select' | 'checkbox' | 'search'
  message: string
}

async function prompt(terminal: Terminal, missing: string, question: InquirerQuestion): Promise<unknown> {
  if (!terminal.mayPrompt) throw usage(`${missing} is missing, and prompts are not possible here.`)
  const { default: inquirer } = await import('inquirer')
  const { stdin } = terminal
  const ended = new AbortController()
  const stop = () => ended.abort()
  // Ctrl-D pauses the input, after which the prompt would never be answered.
  for (const event of INPUT_OVER) stdin.on(event, stop)
  try {
    const output = createScreen(terminal, stop)
    const askThis = inquirer.createPromptModule({ input: stdin, output, signal: ended.signal })
    const { answer } = await askThis<{ answer: unknown }>([{ ...question, name: 'answer' }])
    return answer
  } catch (error) {
    if (error instanceof Error && OVER.includes(error.name)) throw interrupted({ cause: error })
    throw new CofferError('internal', 'The prompt failed.', { cause: error })
  } finally {
    for (const event of INPUT_OVER) stdin.off(event, stop)
  }
}

const INPUT_OVER = ['pause', 'end', 'close']
/** The errors of inquirer on Ctrl-C and when aborted. */
const OVER = ['ExitPromptError', 'AbortPromptError', 'CancelPromptError']

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
