/**
 * `coffer mcp` offers tools to an agent, over standard input and output. The tools are the operations that an
 * application may perform. Most code is loaded after the agent's greeting, so that the greeting is answered early.
 */
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import {
  acceptedContent,
  type CallToolResult,
  inputRequired,
  type JsonSchemaValidator,
  ProtocolError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { findFault, isObject, MAX_JSON_VALUES, tryJson } from '../../../domain/json/json.js'
import { CofferError, toProblem, usage } from '../../../errors.js'
import type { OperationInput } from '../../../framework/context.js'
import { type Outcome, resultOf } from '../../../framework/outcome.js'
import type { RegisteredOperation } from '../../../framework/registry.js'
import type { ApplicationView } from '../../../operations/application/application-record.js'
import type { OperationRequest, Vault } from '../../../vault/vault.js'
import { VERSION } from '../../../version.js'
import type { CommandContext, Options } from '../../context.js'
import { toJson } from '../../output/display.js'
import { printNotice } from '../../output/output.js'
import { isTerminal } from '../../output/terminal.js'
import type { TerminalCommand } from '../../task.js'
import { PROMPTS, RESOURCES, writePrompt } from './prompts.js'
import { describeTool, isOffered, toolName } from './tools.js'

const MAX_TEXT = 4000
/** Each member of a call is cut after this number of characters, so that a long member cannot hide the others. */
const MAX_MEMBER = 800
const MAX_ASKED = 100
/** In characters. The SDK has the same limit in bytes. */
const MAX_MESSAGE = 10 * 1024 * 1024
/** The error code of JSON-RPC for invalid parameters. */
const NO_SUCH = -32602
const CREATE_APPLICATION = 'Create an application for agents: coffer app create --agent NAME'
const NO_KEY = `coffer mcp acts as an application, never as the owner: it needs COFFER_API_KEY or a profile with a key. ${CREATE_APPLICATION}`
const REVEALS = `A rule of this application reveals data. ${CREATE_APPLICATION}. Or allow this rule with --allow-reveal.`
const INSTRUCTIONS =
  'This server is a vault of sensitive values. You store, find, link and use the values by the ids of their tokens. To use a value, ' +
  'write {{ token id }} in the arguments of proxy_call or reactor_react. To use one property of a value, write ' +
  '{{ token id | json: "$.number" }}. Before a proxy_call, look at the request with dry_run. Unless this server was ' +
  'started with --allow-reveal, answers are masked, and answers of calls do not contain the values. Do not try to get the values.'

/**
 * @throws CofferError `usage`, `unauthenticated` without an API key, `forbidden` if a rule reveals data and
 * `--allow-reveal` is absent
 */
export const serveMcp: TerminalCommand['run'] = async (context, _, options) => {
  const { terminal, input, signal, config } = context
  const { apiKey: key, apiKeyStdin, noReveal } = config
  if (options.allowReveal === true && noReveal)
    throw usage('No-reveal mode and --allow-reveal cannot be combined.')
  if (apiKeyStdin)
    throw usage(
      'The agent sends its messages on standard input, so the key cannot be read there. Set COFFER_API_KEY, or use a profile.',
    )
  if (key === undefined) throw new CofferError('unauthenticated', NO_KEY)
  if (isTerminal(terminal.stdin))
    await printNotice(terminal, 'Waiting for a client of MCP on standard input: see docs/agents.md.')
  const vault = shareVault(context)
  let agent: Promise<Agent> | undefined
  const open = () => (agent ??= openAgent(vault.ask, key, config.url !== undefined, options))
  const stdin = input.claimStdin('coffer mcp').setEncoding('utf8')
  // The transport closes when its input ends, but calls in progress must still be answered. Therefore the transport
  // reads this stream, which ends later than standard input.
  const messages = new PassThrough()
  let rest = ''
  context.handlesSignals()
  await new Promise<void>((resolve, reject) => {
    stdin.on('data', (text) => {
      const lines = `${rest}${text}`.split('\n')
      rest = lines.pop()!
      for (const line of lines) {
        // Refuses texts that the SDK would change. For example, the SDK would read 2^53 + 1 as another number.
        const error = { code: NO_SUCH, message: findFault(line, MAX_JSON_VALUES)?.message }
        const { id } = Object(error.message && tryJson(line))
        if (id === undefined) messages.write(`${line}\n`)
        else terminal.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, error })}\n`)
      }
      if (rest.length > MAX_MESSAGE) {
        stdin.destroy()
        reject(usage(`The agent sent a message of more than ${MAX_MESSAGE} characters.`))
      }
    })
    // The greeting is answered before the vault is opened, because opening the vault can take longer than an agent
    // waits.
    const begin = () => setImmediate().then(open).catch(reject)
    for (const event of ['end', 'close', 'error'])
      stdin.once(event, () => open().then(() => resolve(), reject))
    signal.addEventListener('abort', () => resolve(), { once: true })
    const transport = new StdioServerTransport(messages, terminal.stdout)
    serveStdio(
      () => {
        begin()
        return createServer(open)
      },
      { transport },
    )
  })
  await setImmediate()
  await vault.settle()
  await setImmediate()
  messages.end()
}

/** Keeps the vault open only during calls, so that other commands can use the vault between calls. */
function shareVault(context: CommandContext) {
  let calls = 0
  let opened: Promise<Vault> | undefined
  let closed: Promise<unknown> = Promise.resolve()
  let close: (() => void) | undefined
  const open = async (): Promise<Vault> => {
    await closed
    return new Promise((resolve, reject) => {
      const work = (vault: Vault) =>
        new Promise<void>((end) => {
          close = end
          resolve(vault)
        })
      const reach = async () => {
        const { reachThisVault, withVault } = await import('../../target/vault.js')
        await withVault(context, await reachThisVault(context), work)
      }
      closed = reach().catch(reject)
    })
  }
  return {
    ask: async (request: OperationRequest): Promise<Outcome> => {
      calls++
      try {
        opened ??= open()
        return (await (await opened).ask(request)) as Outcome
      } finally {
        if (--calls === 0) {
          opened = undefined
          close?.()
        }
      }
    },
    settle: () => closed,
  }
}

type Agent = Awaited<ReturnType<typeof openAgent>>

/**
 * @throws CofferError `usage`, `forbidden` if a rule reveals data and `--allow-reveal` is absent, and the errors of
 * `app whoami`
 */
async function openAgent(
  askVault: ReturnType<typeof shareVault>['ask'],
  key: string,
  isRemote: boolean,
  options: Options,
) {
  const isNoReveal = options.allowReveal !== true
  const ask = async (operation: string, input: OperationInput): Promise<unknown> => {
    const outcome = await askVault({ operation, input, as: { key }, noReveal: isNoReveal })
    return JSON.parse(JSON.stringify(resultOf(outcome) ?? null)) ?? undefined
  }
  const application = (await ask('app whoami', {})) as ApplicationView
  if (isNoReveal && application.rules?.some(({ transform }) => transform === 'reveal'))
    throw new CofferError('forbidden', REVEALS)
  const { registry } = await import('../../../operations/all.js')
  const nouns = (options.tools as string | undefined)?.split(',').map((noun) => noun.trim())
  const unknown = nouns?.find((noun) => !registry.nouns.some(({ name }) => name === noun))
  if (unknown !== undefined) throw usage(`--tools takes nouns such as token,proxy; there is no "${unknown}".`)
  const wanted = { application, nouns, isReadOnly: options.readOnly === true, isNoReveal, isRemote }
  const tools = registry.operations.filter((each) => isOffered(each, wanted))
  const confirm = options.confirm === true ? createConfirm(ask) : undefined
  return {
    tools,
    /** Returns an error of the operation as a result. @throws ProtocolError for an unknown tool */
    call: async (name: string, input: OperationInput, context: ServerContext) => {
      const tool = tools.find((each) => toolName(each) === name)
      if (tool === undefined) throw new ProtocolError(NO_SUCH, 'There is no tool with this name.')
      try {
        const question = await confirm?.(tool, input, context)
        return question ?? describeResult(tool, await ask(tool.name, input))
      } catch (error) {
        return await describeFailure(error)
      }
    },
  }
}

function createServer(open: () => Promise<Agent>): Server {
  const capabilities = { tools: {}, resources: {}, prompts: {} }
  const about = { name: 'coffer', title: 'Coffer', version: VERSION }
  // The validator of the SDK is large, so this function replaces it and accepts everything. `confirm` checks the
  // answers of the person.
  const accept = <T>(data: unknown) => ({ valid: true as const, data: data as T, errorMessage: undefined })
  const jsonSchemaValidator = { getValidator: <T>() => accept<T> as JsonSchemaValidator<T> }
  const server = new Server(about, { capabilities, instructions: INSTRUCTIONS, jsonSchemaValidator })
  server.setRequestHandler('tools/list', async () => ({ tools: (await open()).tools.map(describeTool) }))
  server.setRequestHandler('tools/call', async ({ params }, call) =>
    (await open()).call(params.name, params.arguments ?? {}, call),
  )
  server.setRequestHandler('resources/list', () => ({ resources: RESOURCES }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const topic = RESOURCES.find((each) => each.uri === uri)
    if (topic === undefined) throw new ProtocolError(NO_SUCH, 'There is no resource with this address.')
    const { readFile } = await import('node:fs/promises')
    const { findFixture } = await import('../../../assets.js')
    const text = await readFile(findFixture(`help/${topic.name}.txt`), 'utf8')
    return { contents: [{ uri, mimeType: topic.mimeType, text }] }
  })
  server.setRequestHandler('prompts/list', () => ({ prompts: PROMPTS }))
  server.setRequestHandler('prompts/get', ({ params }) => writePrompt(params.name, params.arguments ?? {}))
  return server
}

/**
 * The returned function resolves to a question for the person, or to undefined if the call may run.
 * @throws CofferError `interrupted` if the person refused the call
 */
function createConfirm(ask: (operation: string, input: OperationInput) => Promise<unknown>) {
  // The calls that were shown to the person. An answer is valid only for one of these calls, and only once.
  const asked = new Set<string>()
  return async (tool: RegisteredOperation, input: OperationInput, { mcpReq }: ServerContext) => {
    const { kind, cli, log, name } = tool
    const isRelay = kind === 'relay'
    const isHarmless = !isRelay && cli?.confirmation === undefined && log?.operation !== 'react'
    // Only relays have dry runs. Another operation would ignore the property `dry_run` and change data.
    if (isHarmless || (isRelay && input.dry_run === true)) return undefined
    const call = JSON.stringify([name, input])
    if (mcpReq.inputResponses !== undefined && asked.delete(call)) {
      if (acceptedContent(mcpReq.inputResponses, 'confirm')?.allow === true) return undefined
      throw new CofferError('interrupted', 'The person did not allow this call. Do not repeat the call.')
    }
    // The dry run returns the destination of the call, or fails as the call would.
    const shown = isRelay ? await ask(name, { ...input, dry_run: true }) : input
    const message = `Allow ${name}?\n${describeCall(tool, shown)}`
    const properties = { allow: { type: 'boolean', title: 'Allow' } } as const
    const requestedSchema = { type: 'object' as const, properties, required: ['allow'] }
    if (asked.size >= MAX_ASKED) asked.clear()
    asked.add(call)
    return inputRequired({ inputRequests: { confirm: inputRequired.elicit({ message, requestedSchema }) } })
  }
}

/**
 * Required members come first. Otherwise the agent, which chooses the order, could hide a required member behind long
 * members.
 */
function describeCall({ input }: RegisteredOperation, call: unknown): string {
  if (!isObject(call)) return cut(toJson(call, 2))
  const required: readonly string[] = input?.type === 'object' ? (input.required ?? []) : []
  const first = required.filter((name) => Object.hasOwn(call, name))
  const names = [...new Set([...first, ...Object.keys(call)])]
  return cut(names.map((name) => `${toJson(name)}: ${cut(toJson(call[name], 2), MAX_MEMBER)}`).join('\n'))
}

/** Adds the result as text too, because some clients give only text to the model. */
function describeResult({ cli }: RegisteredOperation, result: unknown): CallToolResult {
  const text =
    result === undefined ? (cli?.confirmation === undefined ? 'Done.' : 'Deleted.') : JSON.stringify(result)
  const content = [{ type: 'text' as const, text: cut(text) }]
  if (result === undefined) return { content }
  return { content, structuredContent: isObject(result) ? result : { result } }
}

/** For an unexpected error, the result contains only a reference. */
async function describeFailure(error: unknown): Promise<CallToolResult> {
  const { randomBytes } = await import('node:crypto')
  const { detail, errors = {} } = toProblem(error, randomBytes(6).toString('hex'), 'owner')
  const lines = Object.entries(errors).flatMap(([path, texts]) => texts.map((text) => `${path}: ${text}`))
  const told = lines[0] !== undefined && detail.startsWith(lines[0]) ? lines : [detail, ...lines]
  return { isError: true, content: [{ type: 'text', text: cut(told.join('\n')) }] }
}

function cut(text: string, most = MAX_TEXT): string {
  return text.length > most ? `${text.slice(0, most)}… (cut)` : text
}
