/** Runs the built `coffer` in a process of its own; it needs `npm run build`. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createRouter } from '../../src/http/router.js'
import { registry } from '../../src/operations/all.js'
import { type Ended, PROGRAM, startProgram, waitFor } from '../support/process.js'
import { createContract, documentOf } from './contract.js'

export interface Announcement {
  url: string
  prefix: string
  tenant_id: string
  owner_id: string
  applications: Partial<Record<'management' | 'private' | 'public', { id: string; key?: string }>>
  page_url?: string
}

/** A directory with nothing in it but what the commands of one test put there. */
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

/** A command that ends by itself. */
export function runCommand(place: Workplace, words: readonly string[]): Promise<Ended> {
  return startCommand(place, words).ended
}

/** A command that may be ended before. */
export function startCommand(
  { directory, env }: Workplace,
  words: readonly string[],
): { child: ChildProcess; ended: Promise<Ended> } {
  const child = startProgram(process.execPath, [PROGRAM, ...words], {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return { child, ended: waitFor(child) }
}

export interface ServerProcess {
  child: ChildProcess
  announcement: Announcement
  /** What it has printed so far. */
  printed: { stdout: string; stderr: string }
  /** Resolves when it has ended. */
  ended: Promise<Ended>
}

/** `coffer serve` on any free port; `errorsTo` is a descriptor for its standard error. */
export async function startProcess(
  { directory, env }: Workplace,
  words: readonly string[] = [],
  { errorsTo = 'pipe' }: { errorsTo?: 'pipe' | number } = {},
): Promise<ServerProcess> {
  const line = [PROGRAM, 'serve', '--port', '0', '--output', 'json', ...words]
  const child = startProgram(process.execPath, line, {
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

/** {@link startProcess} in a place of its own, until the test ends. */
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
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was answered.
  json: any
}

const router = createRouter(registry)
const contract = createContract(documentOf(registry))

/** @throws Error when the OpenAPI document does not allow the answer */
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

/** One request with JSON both ways. */
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
