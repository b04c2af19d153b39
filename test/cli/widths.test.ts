/** The first screen and all help on terminals of several widths: the terminal never breaks a word. */
import t from 'tap'
import { main } from '../../src/cli/main.js'
import { measureWidth } from '../../src/cli/output/display.js'
import { registry } from '../../src/operations/all.js'
import { runProcess } from './fake-process.js'

const TOPICS = ['flags', 'access-rules', 'search', 'expressions', 'exit-codes', 'environment']
const TERMINAL_COMMANDS = ['init', 'serve', 'mcp', 'doctor', 'completion', 'scan', 'profile']
/** Wide enough that no line is wrapped. */
const UNWRAPPED = 400
/** A command, JSON, a rule or an expression: people paste it as one line. */
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

/** Lines that the terminal would break, and that are more than one word. */
function findLong(text: string, columns: number): string[] {
  const isLong = (line: string) => measureWidth(line) > columns
  return text.split('\n').filter((line) => isLong(line) && !PASTED.test(line) && wordsOf(line).length > 1)
}

for (const columns of [40, 60, 80])
  t.test(`no word is broken at ${columns} columns`, async (t) => {
    // Help of a verb names paths of HTTP requests, which need more than 40 columns.
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
