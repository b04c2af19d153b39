/**
 * The library as a program uses it, without a socket: the owner asks by `ask`, an application by `fetch`, or by the typed
 * client of its key.
 */
import { CofferError, toProblem } from '../../src/errors.js'
import { type Client, type Coffer, type OperationName, openTestVault } from '../../src/index.js'
import { registry } from '../../src/operations/all.js'
import type { Answer, Step } from './cases.js'
import { ALLOWED } from './destination.js'
import type { Door, MovableClock, Request } from './doors.js'
import { askHttp, type Send } from './http-door.js'

type AskAs = (vault: Coffer, key: string, request: Request) => Promise<Answer>
type Method = (input: object) => Promise<unknown>

const PLURALS: Record<string, string> = { app: 'applications', invite: 'invitations', proxy: 'proxies' }

/** Applications ask by HTTP, and their answers are held against the OpenAPI document. */
export function openFetchDoor(clock: MovableClock): Promise<Door> {
  const askAs: AskAs = (vault, key, request) => {
    const send: Send = async ({ target, method, headers, body }) => {
      const answer = await vault.fetch(target, { method, headers, ...(body !== '' && { body }) })
      const text = await answer.text()
      return { status: answer.status, headers: Object.fromEntries(answer.headers), body: text }
    }
    return askHttp(send, request, key)
  }
  // A `Request` resolves such a path before anybody sees it.
  const cannot = ({ as = 'owner', idempotencyKey, input = {} }: Step) =>
    (as === 'owner' && idempotencyKey !== undefined) || String(input.path).includes('/../')
  return openLibrary({ name: 'library, HTTP', clock, askAs, cannot })
}

/** Applications ask by `vault.as(key).tokens.create(…)`. */
export function openClientDoor(clock: MovableClock): Promise<Door> {
  const askAs: AskAs = (vault, key, { operation, input }) =>
    settle(async () => {
      const method = findMethod(vault.as(key), operation)
      return method === undefined ? vault.ask(operation as OperationName, input, { key }) : method(input)
    })
  const cannot = ({ idempotencyKey }: Step) => idempotencyKey !== undefined
  return openLibrary({ name: 'library, client', clock, askAs, cannot })
}

/** Undefined for an operation without a route, and for one whose requests have any form. */
function findMethod(client: Client, operation: string): Method | undefined {
  const definition = registry.routed.find(({ name }) => name === operation)
  if (definition === undefined) return undefined
  const { noun, group, verb } = definition
  const path = [PLURALS[noun] ?? `${noun}s`, ...(group === undefined ? [] : [`${group}s`])]
  let place = client as unknown as Record<string, unknown>
  for (const name of path) place = place[name] as Record<string, unknown>
  return place[verb.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())] as Method
}

async function openLibrary({
  name,
  clock,
  askAs,
  cannot,
}: {
  name: string
  clock: MovableClock
  askAs: AskAs
  cannot(step: Step): boolean
}): Promise<Door> {
  const vault = await openTestVault({
    seed: { applications: [] },
    clock: () => clock.now,
    reactors: { allowNet: [ALLOWED] },
  })
  // The cases begin as a new vault on disk does: with strict sessions, and a tenant whose log is empty.
  await vault.ask('config unset', { name: 'sessions.beyond_authorizer' })
  await vault.ask('tenant create', { name: 'default' })
  await vault.ask('tenant delete')
  return {
    name,
    cannot,
    ask: (request) => {
      const { operation, input, key, reveal } = request
      if (key !== undefined) return askAs(vault, key, request)
      return settle(() => vault.ask(operation as OperationName, input, { reveal }))
    },
    close: () => vault.stop(),
  }
}

async function settle(work: () => Promise<unknown>): Promise<Answer> {
  try {
    const result = (await work()) as { res?: { statusCode: number } } | undefined
    return {
      status: result?.res?.statusCode ?? 'done',
      ...(result !== undefined && { body: JSON.parse(JSON.stringify(result)) }),
    }
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    return { status: error.status, body: toProblem(error, 'trace') }
  }
}
