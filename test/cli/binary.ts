/** Runs the real program, as a process of its own, in a throw-away home. It knows nothing of what is inside. */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProgram } from '../start-program.js'

export const PROGRAM = fileURLToPath(new URL('../../../bin/coffer.js', import.meta.url))

export function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface Machine {
  place: string
  env: Record<string, string>
  /** Runs `coffer` with these words, standard input closed after `stdin`. */
  coffer(words: readonly string[], stdin?: string): Promise<Ended>
  /** Runs a line of bash, in which `coffer` is the program. */
  bash(line: string): Promise<Ended>
  /** Starts `coffer` and leaves it to the caller. */
  start(words: readonly string[], nodeFlags?: readonly string[]): ChildProcess
  remove(): void
}

/** A home with a vault in it; the caller removes it. */
export async function createMachine(): Promise<Machine> {
  const place = mkdtempSync(join(tmpdir(), 'coffer-machine-'))
  const env = { PATH: process.env.PATH ?? '', HOME: place, TMPDIR: place, NO_COLOR: '1' }
  const start: Machine['start'] = (words, nodeFlags = []) =>
    startProgram(process.execPath, [...nodeFlags, PROGRAM, ...words], { cwd: place, env })
  const machine: Machine = {
    place,
    env,
    start,
    coffer: (words, stdin = '') => {
      const child = start(words)
      // Who refuses its words does not read on.
      child.stdin?.on('error', () => {})
      child.stdin?.end(stdin)
      return waitFor(child)
    },
    bash: (line) =>
      waitFor(
        startProgram(
          'bash',
          ['--norc', '-c', `coffer() { '${process.execPath}' '${PROGRAM}' "$@"; }; ${line}`],
          {
            cwd: place,
            env,
          },
        ),
      ),
    remove: () => rmSync(place, { recursive: true, force: true }),
  }
  const { code, stderr } = await machine.coffer(['init'])
  if (code !== 0) throw new Error(`coffer init failed: ${stderr}`)
  return machine
}

/** Resolves when the process has ended and everything it wrote was read. */
export function waitFor(child: ChildProcess): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}

/** The line that everybody types first. */
export const ECHO_LINE = `echo '{"type":"card","data":{"number":"4242424242424242"}}' | coffer token create --output json`
