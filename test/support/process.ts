/** Runs programs, and the real `coffer` in a throw-away home, as processes. It knows nothing of what is inside. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

export const PROGRAM = fileURLToPath(new URL('../../../bin/coffer.js', import.meta.url))

/**
 * Starts a program as people start it: without the options for Node that tap puts into the environment of every child,
 * with which a Node process takes twice as long to start. Such a child counts for no coverage.
 */
export const startProgram = ((file: string, words: readonly string[], options: object) =>
  spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', file, ...words], options)) as typeof spawn

export function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
}

/** The path of a shell for which `coffer` is the program; makes a folder for it in `place`. */
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

/** A home with a vault in it, gone when the test ends; without a test the caller removes it. */
export async function createMachine(t?: Test) {
  const place = mkdtempSync(join(tmpdir(), 'coffer-machine-'))
  const env = { PATH: process.env.PATH ?? '', HOME: place, TMPDIR: place, NO_COLOR: '1' }
  const options = { cwd: place, env }
  /** Starts `coffer` and leaves it to the caller. */
  const start = (words: readonly string[], nodeFlags: readonly string[] = []): ChildProcess =>
    startProgram(process.execPath, [...nodeFlags, PROGRAM, ...words], options)
  /** Runs `coffer` with these words, standard input closed after `stdin`. */
  const coffer = (words: readonly string[], stdin = ''): Promise<Ended> => {
    const child = start(words)
    // Who refuses its words does not read on.
    child.stdin?.on('error', () => {})
    child.stdin?.end(stdin)
    return waitFor(child)
  }
  /** Runs a line of bash, in which `coffer` is the program. */
  const bash = (line: string): Promise<Ended> => {
    const words = ['--norc', '-c', `coffer() { '${process.execPath}' '${PROGRAM}' "$@"; }; ${line}`]
    return waitFor(startProgram('bash', words, options))
  }
  const remove = () => rmSync(place, { recursive: true, force: true })
  t?.teardown(remove)
  const { code, stderr } = await coffer(['init'])
  if (code !== 0) throw new Error(`coffer init failed: ${stderr}`)
  return { place, env, start, coffer, bash, remove }
}

/** Resolves when the process has ended and everything it wrote was read; `printed` is what it has written so far. */
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
