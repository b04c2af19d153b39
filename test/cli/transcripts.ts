/**
 * Transcripts of command lines that are derived from the tree of commands: each command alone, and with each of its own
 * flags. Each runs piped, on a wide and on a narrow terminal, with and without colours, on a copy of one vault; those of
 * the control plane on a server of a test. A command that goes on is interrupted.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { main } from '../../src/cli/main.js'
import { openTestVault } from '../../src/index.js'
import { type Outcome, type Run, runProcess, withoutStyle } from './fake-process.js'

interface FlagFacts {
  names: string[]
  type: unknown
  enum?: string[]
  values?: string[]
}

interface Facts {
  words: string[]
  arguments: { name: string; required: boolean }[]
  flags: FlagFacts[]
  permissions?: string[]
}

interface Tree {
  commands: Facts[]
  global_flags: FlagFacts[]
}

interface Line {
  words: string[]
  /** It is about a global flag, and runs piped alone. */
  isGlobal?: boolean
}

/** It ends only with the process, and has tests of its own. */
const ENDLESS = '--follow'
/** They need a server, a store or a version; each has tests of its own. */
const NEEDS_OTHERS = ['--url', '--store', '--version']
/** A command, or a flag, that runs until it is interrupted, and what it has printed when it waits for that. */
const UNTIL: Readonly<Record<string, string>> = { serve: '://', unlock: 'until', '--watch': '' }
/** Their exit code tells of the machine, not of the command. */
const OF_MACHINE = ['doctor']

/** What the files of the home have, and what an argument or a flag is given, by its name. */
const FILES = {
  'body.json': '{}',
  'code.js': 'module.exports = async () => ({ raw: {} })',
  'rows.ndjson': '',
  'seed.json': '{"tokens":[]}',
  'rule.json': '{}',
}
const VALUES: Readonly<Record<string, string>> = {
  '--allow-host': 'vault.local',
  '--allow-net': 'api.example.com:443',
  '--args': 'name=Ada',
  '--at': '2030-01-01T00:00:00Z',
  '--by': '1h',
  '--ca': 'ca.pem',
  '--code': '@code.js',
  '--configuration': '{"name":"KEY","type":"string"}',
  '--container': '/pci/high/',
  '--data': 'some text',
  '--destination-url': 'https://api.example.com/',
  '--email': 'new@example.com',
  '--expires-at': '72h',
  '--fields': 'id',
  '--file': 'body.json',
  '--for': '1m',
  '--host': '127.0.0.1',
  '--key-file': 'missing.key',
  '--log': 'json',
  '--metadata': 'customer=42',
  '--modules': '.',
  '--name': 'another',
  '--port': '0',
  '--payload': '{"a":1}',
  '--output': 'ndjson',
  '--passphrase-command': 'echo secret',
  '--passphrase-fd': '99',
  '--passphrase-file': 'body.json',
  '--prefix': 'bt',
  '--profile': 'narrow',
  '--rate-limit': '100/s',
  '--permission': 'token:create',
  '--results': 'results.ndjson',
  '--resume': 'position',
  '--rule': '{"priority":1,"container":"/","transform":"mask","permissions":["token:read"]}',
  '--runtime': '{"timeout":5}',
  '--seed': 'seed.json',
  '--store-password-fd': '99',
  '--store-password-file': 'body.json',
  '--tenant': 'default',
  '--vault': '.',
  app: 'starter private',
  child_id: 'ada',
  file: 'rows.ndjson',
  formula: 'greet',
  id: 'card-1',
  name: 'another',
  parent_id: 'card-1',
  path: 'body.json',
  proxy: 'payments',
  reactor: 'greet',
  shell: 'bash',
  target: 'payments',
  tenant: 'demo',
}
const FILE_OF_SEED = 'seed.json'
/** Optional arguments; without one, standard input is read. */
const READ_ELSEWHERE = ['file', 'link', 'value']
/** What a command needs besides, to do something. */
const NEEDED: Readonly<Record<string, Record<string, string | undefined>>> = {
  'token create': { '--type': 'token', '--data': 'some text' },
  'token create-child': { '--type': 'token', '--data': 'some text' },
  'app create': { '--name': 'another', '--type': 'private', '--permission': 'token:read' },
  'formula create': { '--name': 'another', '--type': 'private', '--code': '@code.js' },
  'reactor create': { '--name': 'another', '--code': '@code.js' },
  'proxy create': { '--name': 'another', '--destination-url': 'https://api.example.com/' },
  'invite create': { '--email': 'new@example.com' },
  init: { '--vault': 'another' },
  'vault init': { '--vault': 'another' },
  serve: { '--port': '0' },
  unlock: { '--foreground': undefined },
  'control clock set': { '--mode': 'fixed' },
  'control clock advance': { '--by': '1h' },
  'control fault set': { '--rule': '{"status":503}' },
}

/** Command lines, each with the flag that it is about: its own, or a global one. */
export function listLines({ commands, global_flags }: Tree): Line[] {
  const isGroup = ({ words }: Facts) =>
    commands.some((other) => other.words.join(' ').startsWith(`${words.join(' ')} `))
  const single = commands.filter((facts) => !isGroup(facts))
  const globals = global_flags.filter(({ names }) => !NEEDS_OTHERS.includes(names.at(-1)!))
  return [
    ...single.flatMap((facts) => linesOf(facts).map((words) => ({ words }))),
    ...single
      .flatMap((facts) => linesOf({ ...facts, flags: globals }).slice(1))
      .map((words) => ({ words, isGlobal: true })),
  ]
}

function linesOf({ words, arguments: given, flags }: Facts): string[][] {
  const [noun = ''] = words
  const name = words.join(' ')
  const values = given
    .filter(({ name, required }) => required || READ_ELSEWHERE.includes(name))
    .map((each) => {
      const word = each.name.replaceAll('-', '_')
      return (
        (word === 'id' || word === 'application_id' ? VALUES[noun] : undefined) ??
        (noun === 'seed' ? FILE_OF_SEED : VALUES[word]) ??
        'mail.from'
      )
    })
  const line = (more: Record<string, string | undefined>) => [
    ...words,
    ...values,
    ...Object.entries({ ...NEEDED[name], ...more }).flatMap(([flag, value]) =>
      value === undefined ? [flag] : [flag, value],
    ),
    '--yes',
    '--no-input',
  ]
  const own = flags.filter(({ names }) => names.at(-1) !== ENDLESS)
  return [line({}), ...own.map((flag) => line({ [flag.names.at(-1)!]: chooseValue(flag, name) }))]
}

function chooseValue({ names, type, enum: choices, values }: FlagFacts, command: string): string | undefined {
  const flag = names.at(-1)!
  if ([type].flat().includes('boolean')) return undefined
  if (flag === '--configuration' && command.startsWith('reactor')) return 'KEY=value'
  const chosen = choices?.find((each) => ['private', 'token'].includes(each)) ?? choices?.[0] ?? values?.[0]
  return VALUES[flag] ?? chosen ?? '1'
}

function run(cwd: string, words: readonly string[], options: Partial<Run> = {}): Promise<Outcome> {
  const env = { HOME: cwd, XDG_CONFIG_HOME: join(cwd, 'config'), ...options.env }
  const interruptAt = UNTIL[words.find((word) => word in UNTIL) ?? '']
  return runProcess(main, {
    words,
    cwd,
    ...options,
    env,
    ...(interruptAt === undefined ? {} : { interruptAt }),
  })
}

/** The home that each line runs in a copy of. */
export async function makeVault(place: string, options: Partial<Run> = {}): Promise<void> {
  mkdirSync(place)
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(place, name), text)
  for (const words of [
    ['init', '--starter-apps'],
    ['token', 'create', '--id', 'card-1', '--type', 'card', '--data', '{"number":"4242424242424242"}'],
    [
      'token',
      'create',
      '--id',
      'ada',
      '--type',
      'token',
      '--data',
      'Ada',
      '--mask',
      '{{ data | reveal_last: 1 }}',
    ],
    ['formula', 'create', '--name', 'greet', '--type', 'private', '--code', '@code.js'],
    ['reactor', 'create', '--name', 'greet', '--code', '@code.js'],
    ['proxy', 'create', '--name', 'payments', '--destination-url', 'https://api.example.com/'],
  ])
    if ((await run(place, [...words, '--quiet'], options)).code !== 0)
      throw new Error(`${words.join(' ')} failed`)
}

/** Runs a line in a copy of the home, or on a server of its own. */
export async function runIn(made: string, words: readonly string[], options: Partial<Run>): Promise<Outcome> {
  const cwd = `${made}-copy`
  cpSync(made, cwd, { recursive: true })
  const server = words[0] === 'control' ? await openTestVault() : undefined
  const remote = server && {
    fetch: server.fetch.bind(server),
    env: { COFFER_URL: 'http://localhost:4010', COFFER_API_KEY: server.control.key! },
  }
  try {
    return await run(cwd, words, { ...options, ...remote })
  } finally {
    await server?.stop()
    rmSync(cwd, { recursive: true })
  }
}

/** Runs lines, each in every way, and resolves to what must not be. */
export async function transcribe(
  pick: (at: number, words: readonly string[]) => boolean,
): Promise<{ lines: number; faults: string[] }> {
  const place = mkdtempSync(join(tmpdir(), 'coffer-transcripts-'))
  const faults: string[] = []
  const reached = new Set<string>()
  const restore = watchConnections((address) => reached.add(address))
  try {
    const made = join(place, 'made')
    await makeVault(made)
    await run(made, ['profile', 'set', 'narrow', 'quiet', 'true'])
    const tree = JSON.parse((await run(made, ['help', '--json'])).stdout) as Tree
    const lines = listLines(tree).filter(({ words }, at) => pick(at, words))
    for (const { words, isGlobal = false } of lines) {
      const piped: [string, Partial<Run>, string[]] = ['piped', {}, []]
      const ways: [string, Partial<Run>, string[]][] = isGlobal
        ? [piped]
        : [
            piped,
            ['piped, coloured', {}, ['--color', 'always']],
            ['wide', { columns: 120 }, ['--color', 'never']],
            ['narrow', { columns: 40 }, ['--color', 'never']],
            ['narrow, coloured', { columns: 40 }, ['--color', 'always']],
          ]
      const codes = new Set<number>()
      reached.clear()
      for (const [way, options, more] of ways) {
        const outcome = await runIn(made, [...words, ...more], options)
        codes.add(outcome.code)
        const fault = findFault(words, way, outcome)
        if (fault !== undefined)
          faults.push(
            `${words.join(' ')} (${way}): ${fault}\n${outcome.stdout.slice(0, 300)}${outcome.stderr}`,
          )
      }
      if (reached.size > 0 && !SENDS.test(words.join(' ')))
        faults.push(`${words.join(' ')}: connects to ${[...reached].join(', ')}`)
      if (codes.size !== 1 && !OF_MACHINE.includes(words[0]!))
        faults.push(`${words.join(' ')}: exit codes ${[...codes].join(', ')}`)
    }
    return { lines: lines.length, faults }
  } finally {
    restore()
    rmSync(place, { recursive: true, force: true })
  }
}

/** Commands that call others; no other command sends anything anywhere. */
const SENDS = /^proxy call /

/** Tells to what sockets of this process connect, other than to a path. */
function watchConnections(tell: (address: string) => void): () => void {
  const { connect } = Socket.prototype
  Socket.prototype.connect = function (this: Socket, ...given: unknown[]) {
    const [first] = given.flat() as ({ path?: string; host?: string; port?: number } | undefined)[]
    if (first?.path === undefined) tell(`${first?.host}:${first?.port}`)
    return connect.apply(this, given as Parameters<typeof connect>)
  } as typeof connect
  return () => {
    Socket.prototype.connect = connect
  }
}

/** Commands whose output is text of its own. */
const PRINTS_TEXT = /^(token export|version|openapi|profile|serve|demo|help|completion|seed export)|--curl/

function findFault(
  words: readonly string[],
  way: string,
  { code, stdout, stderr }: Outcome,
): string | undefined {
  // Of the disk, such as a file where a directory is needed.
  const isOfDisk = /Choose\s+another\s+path/.test(stderr)
  if (
    (code === 1 && !isOfDisk && !OF_MACHINE.includes(words[0]!)) ||
    stderr.includes('went wrong on our side')
  )
    return `exit ${code}`
  const isTerminal = !way.startsWith('piped')
  if (!way.endsWith('coloured') && /\u001b\[[\d;]*m/.test(stdout + stderr))
    return 'colours where none are wanted'
  if (code === 0 && !isTerminal && stdout !== '' && !PRINTS_TEXT.test(words.join(' ')) && !isJson(stdout))
    return 'no JSON in a pipe'
  if (code !== 0 && !isTerminal && !isJson(stderr.trim().split('\n').at(-1)!))
    return 'no JSON error in a pipe'
  if (code !== 0 && isTerminal && !/error:|warning:/.test(withoutStyle(stderr)))
    return 'no error on the terminal'
  if (/[\0-\x08\x0b-\x1f\x7f]/.test(withoutStyle(stdout))) return 'control characters'
  const isWide = (line: string) =>
    [...line].length > 40 && !/^ |\S {2}|\S{24}|coffer |chmod |\d{4}/.test(line)
  const wide = way.startsWith('narrow') && withoutStyle(stderr).split('\n').find(isWide)
  return wide ? `a wide line: ${wide}` : undefined
}

function isJson(text: string): boolean {
  try {
    for (const line of text.trim().split('\n')) JSON.parse(line)
    return true
  } catch {
    return false
  }
}
