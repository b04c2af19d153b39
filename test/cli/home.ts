/** A throw-away home for tests of the command line: a directory, its environment, and the program run in it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { main } from '../../src/cli/main.js'
import { printProblem } from '../../src/cli/output/output.js'
import type { Problem } from '../../src/errors.js'
import { type Outcome, type Run, runProcess } from './fake-process.js'
import { createTerminal } from './fake-terminal.js'

export interface Home {
  /** The directory commands run in; a vault is in `.coffer` below it. */
  place: string
  env: Record<string, string>
  /**
   * Runs `coffer` with these words. A failure that is JSON only because the output is a pipe is text, as on a terminal,
   * unless `isRaw`. A line is split at spaces.
   */
  run(line: string | readonly string[], options?: Omit<Run, 'words'> & { isRaw?: boolean }): Promise<Outcome>
  /** The same, for what must succeed: its standard output as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for
  json(line: string | readonly string[], options?: Omit<Run, 'words'>): Promise<any>
  /** Writes a file into the home and returns its path. */
  write(name: string, content: string | Uint8Array, mode?: number): string
}

async function spellErrors({ words, env }: Run, stderr: string): Promise<string> {
  const isAsked = words.some((word) => /^(-o|--output)/.test(word)) || env?.COFFER_OUTPUT !== undefined
  const lines = stderr.trimEnd().split('\n')
  const last = lines.at(-1) ?? ''
  if (isAsked || !last.startsWith('{"type":"urn:coffer:problem:')) return stderr
  const terminal = createTerminal()
  await printProblem(terminal, JSON.parse(last) as Problem, 'table')
  return [...lines.slice(0, -1), terminal.stderr.text].join('\n')
}

/** An empty home, gone when the test ends. */
export function createHome(t: Test): Home {
  const place = mkdtempSync(join(tmpdir(), 'coffer-home-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  const env = { HOME: place, XDG_CONFIG_HOME: join(place, 'config'), NO_COLOR: '1' }
  const run: Home['run'] = async (line, options = {}) => {
    const words = typeof line === 'string' ? line.split(' ') : line
    const run = { ...options, words, cwd: options.cwd ?? place, env: { ...env, ...options.env } }
    const outcome = await runProcess(main, run)
    return options.isRaw === true ? outcome : { ...outcome, stderr: await spellErrors(run, outcome.stderr) }
  }
  return {
    place,
    env,
    run,
    json: async (line, options) => {
      const { code, stdout, stderr } = await run(line, options)
      if (code !== 0) throw new Error(`coffer ${line} ended with ${code}: ${stderr}`)
      return stdout === '' ? undefined : JSON.parse(stdout)
    },
    write: (name, content, mode = 0o600) => {
      const path = join(place, name)
      writeFileSync(path, content, { mode })
      return path
    },
  }
}

/** A home with a vault that opens with its key file. */
export async function createVaultHome(t: Test): Promise<Home> {
  const home = createHome(t)
  await home.json(['init'])
  return home
}
