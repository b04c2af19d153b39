/** Runs every example of every help page in a separate folder, with the demo vault of `npm start`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { describeTopic } from '../../src/cli/commands/help/help.js'
import { TERMINAL_COMMANDS } from '../../src/cli/commands/terminal-commands.js'
import { TOPIC_NAMES } from '../../src/cli/context.js'
import { main } from '../../src/cli/main.js'
import { listCommands } from '../../src/cli/program.js'
import { registry } from '../../src/operations/all.js'
import { createPath, PROGRAM, waitFor } from '../support/process.js'
import { runProcess } from './fake-process.js'

t.setTimeout(500_000)

const AT_ONCE = 4
/**
 * The examples of `coffer control` need a server with a control plane. The second test of this file runs these
 * examples.
 */
const NEEDS_CONTROLS = 'control'
const MAX_MS = 20_000

const place = mkdtempSync(join(tmpdir(), 'coffer-examples-'))
t.teardown(() => rmSync(place, { recursive: true, force: true }))
const PATH = createPath(place)

/** Matches a single command that needs no shell. Its arguments are plain words, or texts between apostrophes. */
const ALONE = /^coffer((?: (?:'[^']*'|[^\s'"\\|&;<>$`(){}*?!~#]+))*)$/

/**
 * With this option, a command starts a program. If the command ran in this process, the program would read our input.
 */
const STARTS_PROGRAM = / --run /

/**
 * Runs one line in a new folder with the demo vault. If the line needs no shell, the function runs it in this process.
 */
async function run(line: string, folder: string, more: Record<string, string> = {}) {
  const [, alone] = STARTS_PROGRAM.test(line) ? [] : (ALONE.exec(line) ?? [])
  if (alone !== undefined) {
    const words = (alone.match(/'[^']*'|[^\s']+/g) ?? []).map((word) => word.replaceAll("'", ''))
    return runProcess(main, { words, cwd: folder, env: { PATH, HOME: folder, ...more } })
  }
  const child = spawn('sh', ['-c', line], {
    cwd: folder,
    env: { PATH, HOME: folder, TMPDIR: folder, ...more },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // The negative pid also ends background processes of the line. Background processes would keep the output of the line
  // open.
  const killing = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), MAX_MS)
  return waitFor(child).finally(() => clearTimeout(killing))
}

/** Starts the server of `npm start` in a new folder. */
async function startDemo(folder: string) {
  mkdirSync(folder)
  const words = [PROGRAM, 'serve', '--demo', '--port', '0']
  const server = spawn(process.execPath, words, { cwd: folder, env: { PATH, HOME: folder } })
  const ended = waitFor(server)
  await once(server.stdout!, 'data')
  return { server, ended }
}

t.test('every example of every help page succeeds', async (t) => {
  const demo = join(place, 'demo')
  const { server, ended } = await startDemo(demo)
  server.kill('SIGTERM')
  t.equal((await ended).code, 0)
  const listed = [
    ...registry.operations.filter(({ noun, cli }) => cli?.isInternal !== true && noun !== NEEDS_CONTROLS),
    ...TERMINAL_COMMANDS,
  ]
  const topics = TOPIC_NAMES.flatMap((name) =>
    [...describeTopic(name, listCommands(registry))!.matchAll(/^ {2}\$ (.*)$/gm)].map(([, line]) => line!),
  )
  const lines = [...new Set([...listed.flatMap(({ examples }) => examples), ...topics])]
  t.ok(lines.length > 110, `${lines.length} examples`)
  const left = [...lines.entries()]
  const work = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const [at, line] = next
      const folder = join(place, String(at))
      cpSync(demo, folder, { recursive: true })
      const { code, stdout, stderr } = await run(line, folder)
      t.equal(code, 0, `${line}\n${stdout.slice(0, 300)}${stderr}`)
      t.notMatch(line, /\n/, 'an example is one line')
      // The examples of webhooks name a host that the demo vault is not allowed to call.
      t.notMatch(stderr, /^(warning: (?!Events of this webhook wait)|Ignored:)/m, `${line} prints no warning`)
      rmSync(folder, { recursive: true, force: true })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
})

t.test('every example of the control plane succeeds on the server of `npm start`', async (t) => {
  const folder = join(place, 'control')
  const { server, ended } = await startDemo(folder)
  t.teardown(() => {
    server.kill('SIGTERM')
    return ended
  })
  const operations = registry.operations.filter(({ noun }) => noun === NEEDS_CONTROLS)
  const lines = operations.flatMap(({ examples }) => examples)
  t.ok(lines.length >= 17, `${lines.length} examples`)
  for (const line of lines) {
    const { code, stdout, stderr } = await run(line, folder)
    t.equal(code, 0, `${line}\n${stdout.slice(0, 300)}${stderr}`)
    t.notMatch(stderr, /^(error:|warning: (?!Events of this webhook wait))/m, line)
  }
})
