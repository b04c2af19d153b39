/** Runs the built `coffer` in a separate process. These functions need the output of `npm run build`. */

import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createRouter } from '../../src/http/router.js'
import { registry } from '../../src/operations/all.js'
import { type Ended, PROGRAM, waitFor } from '../support/process.js'
import { createContract, documentOf } from './contract.js'

export interface Announcement {
  url: string
  prefix: string
  tenant_id: string
  owner_id: string
  applications: Partial<Record<'management' | 'private' | 'public', { id: string; key?: string }>>
  page_url?: string
  control?: { key?: string }
}

/** The directory and the environment in which the commands of one test run. */
export interface Workplace {
  directory: string
  env: Record<string, string>
  remove(): void
}

export function createWorkplace(): Workplace {
  const directory = mkdtempSync(join(tmpdir(), 'coffer-serve-'))
  return {
    directory,
    env: { HOME: directory, XDG_CONFIG_HOME: join(directory, 'config'), PATH: process.env.PATH ?? '' },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** Runs a command that ends by itself. */
export function runCommand(place: Workplace, words: readonly string[]): Promise<Ended> {
  return startCommand(place, words).ended
}

/** Starts a command that may run forever. The test ends the command. */
export function startCommand(
  { directory, env }: Workplace,
  words: readonly string[],
): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [PROGRAM, ...words], {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return { child, ended: waitFor(child) }
}

export interface ServerProcess {
  child: ChildProcess
  announcement: Announcement
  /** The text that the server has printed until now. */
  printed: { stdout: string; stderr: string }
  /** Resolves when the process of the server has ended. */
  ended: Promise<Ended>
}

/**
 * Starts `coffer serve` on a free port. `errorsTo` is a file descriptor that receives the standard error of the server.
 */
export async function startProcess(
  { directory, env }: Workplace,
  words: readonly string[] = [],
  { errorsTo = 'pipe' }: { errorsTo?: 'pipe' | number } = {},
): Promise<ServerProcess> {
  const line = [PROGRAM, 'serve', '--port', '0', '--output', 'json', ...words]
  const child = spawn(process.execPath, line, {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', errorsTo],
  })
  const printed = { stdout: '', stderr: '' }
  const ended = waitFor(child, printed)
  await Promise.race([once(child.stdout!, 'data'), ended])
  const first = printed.stdout.split('\n')[0] ?? ''
  if (first === '') throw new Error(`the server did not start: ${(await ended).stderr}`)
  return { child, announcement: JSON.parse(first) as Announcement, printed, ended }
}

/** Starts `coffer serve`, by default in a new directory, and stops the server when the test ends. */
export async function serveFor(t: Test, words: readonly string[], place = createWorkplace()) {
  const server = await startProcess(place, words)
  t.teardown(async () => {
    server.child.kill('SIGTERM')
    await server.ended
    place.remove()
  })
  return server
}

export interface Reply {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests read members of any response.
  json: any
}

const router = createRouter(registry)
const contract = createContract(documentOf(registry))

/** @throws Error if the response does not match the OpenAPI document of Coffer */
function checkContract(method: string, path: string, { status, headers }: Response, body: string): void {
  if (path === '/healthz') return
  const match = router.match(method, path)
  const answer = { status, headers: Object.fromEntries(headers), body }
  const breach =
    'allow' in match
      ? contract.findProblemBreach(answer)
      : contract.findBreach(method, match.operation.endpoint.path, answer)
  if (breach !== undefined) throw new Error(`${method} ${path} breaks the document: ${breach}\n${body}`)
}

/** Sends one request with JSON, and parses the response as JSON. */
export async function request(
  { url }: Announcement,
  key: string | undefined,
  line: string,
  body?: unknown,
): Promise<Reply> {
  const [method = 'GET', path = '/'] = line.split(' ')
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { ...(key === undefined ? {} : { 'SVC-API-KEY': key }), 'Content-Type': type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  checkContract(method, new URL(response.url).pathname, response, text)
  return {
    status: response.status,
    headers: response.headers,
    json: text === '' ? undefined : JSON.parse(text),
  }
}
