/** Runs programs, and the real `coffer` in a temporary home, as processes. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

export const PROGRAM = fileURLToPath(new URL('../../../bin/coffer.js', import.meta.url))

export function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
}

/** Makes a folder in `place` with the program `coffer`. Returns a PATH that contains this folder. */
export function createPath(place: string): string {
  const bin = join(place, '.bin')
  mkdirSync(bin)
  symlinkSync(PROGRAM, join(bin, 'coffer'))
  return [bin, dirname(process.execPath), process.env.PATH].join(':')
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/**
 * Creates a home with a vault. If a test is given, the home is removed when the test ends. If no test is given, the
 * caller must remove the home.
 */
export async function createMachine(t?: Test) {
  const place = mkdtempSync(join(tmpdir(), 'coffer-machine-'))
  const env = { PATH: process.env.PATH ?? '', HOME: place, TMPDIR: place, NO_COLOR: '1' }
  const options = { cwd: place, env }
  /** Starts `coffer`. The caller must end the process or wait until the process ends. */
  const start = (words: readonly string[], nodeFlags: readonly string[] = []): ChildProcess =>
    spawn(process.execPath, [...nodeFlags, PROGRAM, ...words], options)
  /** Runs `coffer` with these words, sends `stdin` to its standard input, and then closes the input. */
  const coffer = (words: readonly string[], stdin = ''): Promise<Ended> => {
    const child = start(words)
    // A program that refuses its arguments does not read its input, so the write to its input can fail.
    child.stdin?.on('error', () => {})
    child.stdin?.end(stdin)
    return waitFor(child)
  }
  /** Runs a line of bash, in which `coffer` is the program. */
  const bash = (line: string): Promise<Ended> => {
    const words = ['--norc', '-c', `coffer() { '${process.execPath}' '${PROGRAM}' "$@"; }; ${line}`]
    return waitFor(spawn('bash', words, options))
  }
  const remove = () => rmSync(place, { recursive: true, force: true })
  t?.teardown(remove)
  const { code, stderr } = await coffer(['init'])
  if (code !== 0) throw new Error(`coffer init failed: ${stderr}`)
  return { place, env, start, coffer, bash, remove }
}

/**
 * Resolves when the process has ended and all of its output was read. `printed` collects the output while the process
 * runs.
 */
export function waitFor(child: ChildProcess, printed = { stdout: '', stderr: '' }): Promise<Ended> {
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text
    })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, ...printed }))
  })
}
