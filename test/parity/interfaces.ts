/**
 * The interfaces of the product, which must give equal answers. Each interface is a function from a step of a case to
 * an answer.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listFlags } from '../../src/cli/input/flags.js'
import { main } from '../../src/cli/main.js'
import type { Answer } from '../../src/client/conform/cases.js'
import { withoutServer } from '../../src/control/own-server.js'
import { CofferError, toProblem } from '../../src/errors.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { resultOf } from '../../src/framework/outcome.js'
import { perform } from '../../src/framework/perform.js'
import type { RegisteredOperation } from '../../src/framework/registry.js'
import { registry } from '../../src/operations/all.js'
import type { App } from '../../src/vault/app.js'
import { type Outcome, runProcess } from '../cli/fake-process.js'
import { openEphemeral } from '../support/ephemeral.js'
import { ALLOWED } from './destination.js'

/** A request for an operation. `key` is the API key of the caller, or undefined for the owner. */
export interface Request {
  operation: string
  input: Record<string, unknown>
  key?: string
  reveal: boolean
  idempotencyKey?: string
}

export interface Interface {
  name: string
  ask(request: Request): Promise<Answer>
  close(): Promise<void>
}

/** The time of the clock in ms since the epoch. The steps of a case can change the time of this clock. */
export interface MovableClock {
  now: number
}

/** Opens the interface that calls `perform` directly, with a vault in memory. */
export async function openPerformInterface(clock: MovableClock): Promise<Interface> {
  const app = await openEphemeral({ tenantName: 'default', clock: () => clock.now })
  app.configureReactors({ allowNet: [ALLOWED] })
  app.attachServer(withoutServer(app))
  return {
    name: 'perform',
    ask: (request) => askPerform(app, request),
    close: () => app.close(),
  }
}

async function askPerform(
  app: App,
  { operation, input, key, reveal, idempotencyKey }: Request,
): Promise<Answer> {
  const definition = findOperation(operation)
  try {
    const caller = key === undefined ? await app.owner({ reveal }) : await authenticate(app, key)
    const outcome = await perform(app, caller, definition, input, 'trace', { idempotencyKey })
    const { status, isReplayed } = outcome
    const result = resultOf(outcome)
    const body = result === undefined ? {} : { body: JSON.parse(JSON.stringify(result)) }
    return { status, ...body, ...(isReplayed && { isReplayed }) }
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    return { status: error.status, body: toProblem(error, 'trace') }
  }
}

/** Opens the interface that runs commands, with a vault in a separate directory. */
export async function openCommandInterface(clock: MovableClock): Promise<Interface> {
  const place = mkdtempSync(join(tmpdir(), 'coffer-parity-'))
  const env = {
    XDG_CONFIG_HOME: join(place, 'config'),
    COFFER_VAULT: join(place, '.coffer'),
    COFFER_OUTPUT: 'json',
    COFFER_ALLOW_NET: ALLOWED,
  }
  const run = (words: string[], stdin = '', more: Record<string, string> = {}) =>
    runProcess(main, { words, stdin, cwd: place, env: { ...env, ...more }, clock: () => clock.now })
  const init = await run(['init', '--name', 'default'])
  if (init.code !== 0) throw new Error(`coffer init failed: ${init.stderr}`)
  return {
    name: 'command line',
    ask: async ({ operation, input, key, reveal, idempotencyKey }) => {
      const definition = findOperation(operation)
      // Only commands that read have the flag --reveal. The answer to a write is always masked.
      const mayReveal = definition.plaintext !== 'never' && definition.log?.operation === 'read'
      const flags = [...(reveal && mayReveal ? ['--reveal'] : []), '--yes', ...formatKey(idempotencyKey)]
      const { words, stdin } = formatCommand(definition, input, flags)
      const outcome = await run(words, stdin, key === undefined ? {} : { COFFER_API_KEY: key })
      return readOutcome(outcome)
    },
    close: async () => rmSync(place, { recursive: true, force: true }),
  }
}

/**
 * Returns the command for `input`: path parameters become words, query parameters become flags, and the body is sent on
 * standard input.
 */
function formatCommand(
  definition: RegisteredOperation,
  input: Record<string, unknown>,
  more: readonly string[],
): { words: string[]; stdin: string } {
  // A property that can be either a word or a part of the body is sent in the body, because a body can express any
  // value.
  const inPath = definition.endpoint?.takesBody ? definition.endpoint?.parameters : undefined
  const parameters = inPath ?? definition.positionals
  const path = parameters.flatMap((name) => (input[name] === undefined ? [] : [String(input[name])]))
  const { command, flag } = definition.cli?.form ?? { command: definition.name, flag: undefined }
  // The flag that selects a form of a command can set a property to the value of the flag. If the body already contains
  // this property, the flag is written without a value.
  const isBare = flag !== undefined && (definition.endpoint?.takesBody || input.start === undefined)
  const name = [...command.split(' '), ...(isBare ? [`--${flag}`] : [])]
  const words = [...name, ...more, ...path.flatMap((word) => (word.startsWith('-') ? ['--', word] : [word]))]
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !parameters.includes(name)))
  if (definition.endpoint?.takesBody) {
    const wholeBody = definition.http?.body?.whole
    return { words, stdin: JSON.stringify(wholeBody === undefined ? rest : rest[wholeBody]) }
  }
  const flags = listFlags(definition).flatMap(({ property, name }) => {
    const value = rest[property]
    if (value === undefined) return []
    if (value === true && definition.endpoint === undefined) return [name]
    if (Array.isArray(value))
      return value.flatMap((item) => [name, typeof item === 'object' ? JSON.stringify(item) : String(item)])
    if (typeof value === 'object' && definition.input.properties?.[property]?.type !== 'object')
      return [name, JSON.stringify(value)]
    if (typeof value === 'object')
      return Object.entries(value!).flatMap(([key, item]) => [name, `${key}=${item}`])
    return [name, String(value)]
  })
  return { words: [...name, ...flags, ...words.slice(name.length)], stdin: '' }
}

function formatKey(idempotencyKey: string | undefined): string[] {
  return idempotencyKey === undefined ? [] : [`--idempotency-key=${idempotencyKey}`]
}

function readOutcome({ code, stdout, stderr }: Outcome): Answer {
  const replay = stderr.includes('Nothing was done: this is the answer') ? { isReplayed: true } : {}
  if (code === 0) {
    if (stdout === '') return { status: 'done', ...replay }
    const body = JSON.parse(stdout)
    return { status: body?.res?.statusCode ?? 'done', body, ...replay }
  }
  const line = stderr
    .trim()
    .split('\n')
    .find((text) => text.startsWith('{'))
  if (line === undefined) throw new Error(`no problem on standard error: ${stderr}`)
  const problem = JSON.parse(line) as { status: number }
  return { status: problem.status, body: problem }
}

function findOperation(name: string): RegisteredOperation {
  const definition = registry.find(name)
  if (definition === undefined) throw new Error(`there is no operation "${name}"`)
  return definition
}
