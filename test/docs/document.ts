/**
 * Runs the snippets of a Markdown document as a reader of the document would: all `sh` blocks in order in one shell on
 * a terminal, in a new home, and all `js` blocks as one module after them. A `text` block after an `sh` block is the
 * expected output. An HTML comment, directly before a block or alone, controls the test: `<!-- sh … -->` has commands
 * that run without being shown, and `<!-- js … -->` has code for the module. The comment `<!-- vitest -->` marks the
 * block as a file of tests, and `<!-- vitest setup -->` marks it as a file for `globalSetup`. The comment `<!-- not
 * run: REASON -->` says that the commands of the block are only parsed.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createPath, type Ended, waitFor } from '../support/process.js'

export interface Block {
  language: string
  code: string
  /** The line of the document at which the block begins, counted from 1. */
  line: number
  /** The direction before the block: `vitest`, `vitest setup`, or `not run: REASON`. */
  directive?: string
  isHidden: boolean
  /** The text block that follows this block. The text block is the expected output of the commands. */
  output?: string
}

export const ROOT = new URL('../../../', import.meta.url).pathname
/** The port that the documents show. The test replaces this port by a free port. */
const SHOWN_PORT = '4010'
const BLOCK =
  /^<!-- (?<hidden>sh|js)\n(?<commands>.*?)^-->$|(?:^<!-- (?<directive>vitest(?: setup)?|not run: [^\n]+) -->\n+)?^```(?<language>\w+)\n(?<code>.*?)^```$/gms
const MARK = '\u001e'
/** Patterns of output that differs in each run. The test replaces the matches of each pattern in this order. */
const CHANGING = [
  /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
  /[\da-f]{32}/g,
  /\/\S*(?=\/\.coffer|\/\.config|\/shop$)/gm,
  /\b(key|ctl)_[1-9A-HJ-NP-Za-km-z]{22}\b/g,
  /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?/g,
  /#login=\S+/g,
  /\b\d+ (s|min|h) ago/g,
  // This pattern must be the last, because parts of longer ids match it too.
  /(?<=^\s*)[\da-f]{8}(?= {2})/gm,
]
const ANY_LINES = '…'

export const readDocument = (name: string) => readFileSync(`${ROOT}${name}`, 'utf8')

export function parseBlocks(text: string): Block[] {
  const blocks: Block[] = []
  for (const { groups = {}, index } of text.matchAll(BLOCK)) {
    const { hidden, commands, directive, language, code } = groups
    const line = text.slice(0, index).split('\n').length
    const last = blocks.at(-1)
    if (language === 'text' && last?.language === 'sh' && !last.isHidden) last.output = code!
    else
      blocks.push({
        language: hidden ?? language!,
        code: commands ?? code!,
        line,
        isHidden: hidden !== undefined,
        ...(directive === undefined ? {} : { directive }),
      })
  }
  return blocks
}

/** Returns the lines without blank lines. The function also replaces everything that differs in each run. */
export function settle(text: string): string[] {
  const same = CHANGING.reduce((left, pattern) => left.replace(pattern, '#'), text)
  return same.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trimEnd()]))
}

/** Returns whether `printed` matches `shown`. A line `…` in `shown` means any number of lines. */
export function isShown(shown: string, printed: string): boolean {
  const quote = (line: string) => line.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const lines = settle(shown).map((line) => (line.trim() === ANY_LINES ? '(.*\\n)*' : `${quote(line)}\\n`))
  return new RegExp(`^${lines.join('')}$`).test(`${settle(printed).join('\n')}\n`)
}

export interface Printed {
  block: Block
  /** The output. The text has escape sequences if the terminal has colours. */
  text: string
  code: number
}

/** Returns a port that is free now. */
export async function findPort(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return String(port)
}

/** Splits a block into its commands. Each command becomes a separate block. */
export function splitCommands({ code, output: _, ...block }: Block): Block[] {
  return code.split(/(?<!\\)\n/).flatMap((line) => (line === '' ? [] : [{ ...block, code: `${line}\n` }]))
}

/**
 * Returns the script of a block. If the only command of the block starts a server, the server runs in the background
 * during the next blocks.
 */
function toScript(code: string): string {
  const line = code.trim()
  if (!/^coffer serve\b[^\n]*$/.test(line) || line.endsWith('&')) return code
  return `${line} > server.txt 2>&1 &
for _ in $(seq 100); do grep -q 'Ctrl-C\\|^{' server.txt && break; sleep 0.1; done; cat server.txt
`
}

/**
 * Runs shell blocks on a terminal of 110 columns. `place` is an empty directory of the caller. Servers that the blocks
 * start keep running until `after` has ended.
 */
export async function runShell(
  blocks: readonly Block[],
  { place, port, term = 'dumb' }: { place: string; port: string; term?: string },
  after: () => Promise<void> = async () => {},
): Promise<Printed[]> {
  const home = join(place, 'shop')
  mkdirSync(home)
  // Adds the port to the command of a server, unless the command already has a port.
  const start = `coffer() { [ "$1" = serve ] && shift && set -- serve --port ${port} "$@"; command coffer "$@"; }\n`
  const parts = blocks.map(
    ({ code }) => `${toScript(code.replaceAll(SHOWN_PORT, port))}printf '${MARK}%s${MARK}' $?\n`,
  )
  const done = join(place, '.done')
  const end = `touch ${done}.shell; while [ ! -e ${done} ]; do sleep 0.1; done; trap '' TERM; kill 0; wait\n`
  writeFileSync(join(place, '.script'), [start, ...parts, end].join(''))
  const line = `stty cols 110 -onlcr; exec bash --norc ${join(place, '.script')}`
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    cwd: home,
    env: { PATH: createPath(place), HOME: place, TMPDIR: place, TERM: term, LC_ALL: 'C.UTF-8' },
  })
  const ended = waitFor(child)
  const finish = async () => {
    while (!existsSync(`${done}.shell`)) await setTimeout(50)
    await after().finally(() => writeFileSync(done, ''))
  }
  const [{ stdout }] = await Promise.all([ended, finish()])
  const marked = stdout.split(MARK)
  return blocks.map((block, at) => ({
    block,
    text: marked[2 * at]!.replaceAll(port, SHOWN_PORT),
    code: Number(marked[2 * at + 1]),
  }))
}

/** Runs the `js` blocks as one module. The module imports this package as `coffer`. */
export async function runModule(blocks: readonly Block[], port: string): Promise<Ended> {
  const code = blocks.map((block) => block.code.replaceAll(SHOWN_PORT, port)).join('\n')
  return waitFor(spawn(process.execPath, ['--input-type=module', '-e', code], { cwd: ROOT }))
}
