/** `coffer demo`: runs commands on a temporary vault and prints each with its output. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import type { Environment } from '../../config.js'
import { CofferError, interrupted } from '../../errors.js'
import type { CommandContext } from '../context/context.js'
import { type OutputStream, write } from '../output/terminal.js'

/** A test number published by the card networks. */
const CARD_NUMBER = '4242424242424242'

interface Step {
  say: string
  /** The arguments of coffer. */
  words: readonly string[]
  stdin?: string
  exit?: number
}

const CARD = `{"id":"card-1","type":"card","data":{"number":"${CARD_NUMBER}","expiration_month":12,"expiration_year":2030},"metadata":{"customer":"42"}}`

const STEPS: readonly Step[] = [
  { say: 'Create a vault: an encrypted directory and a key file.', words: ['init'] },
  {
    say: 'Store a card. The answer is a token with masked data.',
    words: ['token', 'create'],
    stdin: CARD,
  },
  {
    say: 'Store any JSON. The mask defines what is displayed.',
    words: ['token', 'create', '--id', 'ada', '--type', 'token', '--file', '-'],
    stdin: `{"data":{"name":"Ada Lovelace","iban":"GB33BUKB20201555555555"},"mask":{"name":"{{ data.name }}","iban":"{{ data.iban | reveal_last: 4 }}"}}`,
  },
  { say: 'List all tokens, newest first.', words: ['token', 'list'] },
  {
    say: 'Display the data in the clear with --reveal.',
    words: ['token', 'get', 'card-1', '--reveal', '--fields', 'id,data'],
  },
  {
    say: 'Update a token. Changes are merged.',
    words: ['token', 'update', 'card-1', '--metadata', 'plan=gold', '--fields', 'id,metadata,modified_at'],
  },
  {
    say: 'An invalid card number is refused, and nothing is written.',
    words: ['token', 'create', '--type', 'card', '--file', '-'],
    stdin: '{"data":{"number":"4242424242424243"}}',
    exit: 2,
  },
  { say: 'Delete a token.', words: ['token', 'delete', 'card-1', '--yes'] },
]

/** @throws CofferError `interrupted` between two steps, `internal` for an unexpected exit code */
export async function runDemo(context: CommandContext): Promise<void> {
  const { stdout } = context.terminal
  // Otherwise an interrupt would end the process before the vault and its key are deleted.
  context.stopsItself()
  // Creates a directory that only its owner can access.
  const place = await mkdtemp(join(tmpdir(), 'coffer-demo-'))
  try {
    await write(
      stdout,
      `Coffer stores tokens in an encrypted vault. This one is in ${place} and is deleted when the demo ends.\n`,
    )
    for (const step of STEPS) {
      if (context.signal.aborted) throw interrupted()
      await showStep(context, place, step)
    }
    await showFiles(stdout, place)
  } finally {
    await rm(place, { recursive: true, force: true })
  }
  await write(stdout, '\nCreate your own:  coffer init    All commands:  coffer --help\n')
}

async function showStep(context: CommandContext, place: string, { say, words, stdin, exit = 0 }: Step) {
  const { stdout } = context.terminal
  const line = ['coffer', ...words.filter((word, at) => word !== '-' && words[at + 1] !== '-')].join(' ')
  const pipe = stdin === undefined ? '' : `echo '${stdin}' | `
  await write(stdout, `\n# ${say}\n$ ${pipe}${line}\n`)
  const code = await runIn(context, place, words, stdin ?? '')
  if (code !== exit)
    throw new CofferError('internal', `The demo's "${line}" ended with ${code}, not ${exit}.`)
}

/** Runs coffer in this process, with the temporary vault in its environment. */
function runIn(context: CommandContext, place: string, words: readonly string[], text: string) {
  const { stdout, stderr } = context.terminal
  const { NO_COLOR, FORCE_COLOR, TERM, HOME } = context.env
  const env: Environment = {
    ...{ NO_COLOR, FORCE_COLOR, TERM, HOME },
    COFFER_VAULT: join(place, '.coffer'),
    XDG_CONFIG_HOME: join(place, 'config'),
    COFFER_OUTPUT: 'table',
    COFFER_COLOR: context.config.color,
  }
  return context.runProcess({
    argv: ['node', 'coffer', ...words],
    env,
    stdin: Readable.from([text]),
    stdout,
    stderr: context.terminal.stderr.isTTY ? stderr : mergeInto(stdout),
    pid: context.pid,
    version: context.nodeVersion,
    cwd: () => place,
    on: () => undefined,
    off: () => undefined,
  })
}

/** When output is redirected, standard error is merged into it in order. */
function mergeInto(stdout: OutputStream): OutputStream {
  const stream = new PassThrough()
  stream.on('data', (chunk: Buffer) => stdout.write(chunk))
  return stream
}

/** Shows that the files of the vault do not contain the data. */
async function showFiles(stdout: OutputStream, place: string): Promise<void> {
  const vault = join(place, '.coffer')
  const entries = await readdir(vault, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const contents = await Promise.all(files.map((file) => readFile(file)))
  const isFound = contents.some((bytes) => bytes.includes(CARD_NUMBER) || bytes.includes('Lovelace'))
  const bytes = contents.reduce((sum, content) => sum + content.length, 0)
  const verdict = isFound
    ? 'appear in them in the clear, which is a bug: please report it'
    : 'appear in none of them'
  await write(
    stdout,
    `\n# The vault has ${files.length} files with ${bytes} bytes. The card number and the name ${verdict}.\n`,
  )
}
