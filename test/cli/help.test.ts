/** Help: a terminal never breaks a word of help, and every help page that a text names exists. */
import t from 'tap'
import { main } from '../../src/cli/main.js'
import { measureWidth } from '../../src/cli/output/display.js'
import { registry } from '../../src/operations/all.js'
import { runProcess } from './fake-process.js'

const TOPICS = ['flags', 'access-rules', 'search', 'expressions', 'test-cards', 'exit-codes', 'environment']
const TERMINAL_COMMANDS = ['init', 'serve', 'mcp', 'doctor', 'completion', 'scan', 'profile']
/** A terminal so wide that no line of help is wrapped. */
const UNWRAPPED = 400
/**
 * Matches a command, JSON, a rule or an expression. People paste these lines, so each line must stay on one line of the
 * terminal.
 */
const PASTED = /^ *(\$ |\{|id=|container=)/

const nouns = [...new Set(registry.operations.map(({ noun }) => noun))]
const verbs = registry.operations
  .filter(({ cli }) => cli?.isInternal !== true && cli?.form === undefined)
  .map(({ name }) => [...name.split(' '), '--help'])
const screens = [
  [],
  ['help'],
  ...[...nouns, ...TERMINAL_COMMANDS].map((name) => [name, '--help']),
  ...TOPICS.map((topic) => ['help', topic]),
]

async function print(words: readonly string[], columns: number): Promise<string> {
  const env = { HOME: '/nowhere', NO_COLOR: '1' }
  const { code, stdout, stderr } = await runProcess(main, { words, cwd: '/', env, columns })
  if (code !== 0) throw new Error(`coffer ${words.join(' ')} ended with ${code}: ${stderr}`)
  return stdout
}

const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== '')

/** Returns the lines that have several words and are too long for the terminal. */
function findLong(text: string, columns: number): string[] {
  const isLong = (line: string) => measureWidth(line) > columns
  return text.split('\n').filter((line) => isLong(line) && !PASTED.test(line) && wordsOf(line).length > 1)
}

for (const columns of [40, 60, 80])
  t.test(`no word of help is broken at ${columns} columns`, async (t) => {
    // The help of a verb contains paths of HTTP requests, and these paths need more than 40 columns.
    const all = columns < 60 ? screens : [...screens, ...verbs]
    for (const words of all) {
      const about = `coffer ${words.join(' ')}`
      const text = await print(words, columns)
      t.same(findLong(text, columns), [], about)
      const whole = new Set(wordsOf((await print(words, UNWRAPPED)).replaceAll('|', ' ')))
      const broken = wordsOf(text.replaceAll('|', ' ')).filter((word) => !whole.has(word))
      t.same(broken, [], `${about}: words`)
    }
  })

t.test('help refers only to help and commands that exist', async (t) => {
  const { stdout } = await runProcess(main, {
    words: ['help', '--json'],
    cwd: '/',
    env: { HOME: '/nowhere' },
  })
  const described = JSON.parse(stdout) as { commands: { words: string[] }[] }
  const commands = new Set(described.commands.map(({ words }) => words.join(' ')))
  const referred = new Set<string>()
  for (const words of [...screens, ...verbs]) {
    const text = (await print(words, UNWRAPPED)).replaceAll('|', '\ncoffer help ')
    for (const [, topic] of text.matchAll(/coffer help ([a-z-]+)/g)) referred.add(topic!)
    for (const [, command] of text.matchAll(/[Ss]ee:? coffer ((?!help)[a-z-]+(?: [a-z][a-z-]*)?)/g))
      t.ok(commands.has(command!), `coffer ${words.join(' ')} refers to ${command}`)
  }
  t.ok(
    TOPICS.every((topic) => referred.has(topic)),
    'another help refers to every topic',
  )
  for (const topic of referred) t.not(await print(['help', topic], 80), '', topic)
})
