/** `coffer mcp`: the operations of an application as the tools of an agent, over standard input and output. */
import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
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
import { isObject } from '../../../domain/json/json.js'
import { CofferError, toProblem, usage } from '../../../errors.js'
import { type OperationInput, resultOf } from '../../../framework/operation.js'
import type { RegisteredOperation } from '../../../framework/registry.js'
import type { ApplicationView } from '../../../operations/application/application-record.js'
import { VERSION } from '../../../version.js'
import type { Options } from '../../context.js'
import type { TerminalCommand } from '../../task.js'
import { PROMPTS, RESOURCES, writePrompt } from './prompts.js'
import { SharedVault } from './shared-vault.js'
import { describeTool, isOffered, toolName } from './tools.js'

const MOST_TEXT = 4000
/** JSON-RPC: invalid parameters. */
const NO_SUCH = -32602
const CREATE_ONE = 'Create one: coffer app create --agent NAME'
const NO_KEY = `coffer mcp acts as an application, never as the owner: it needs COFFER_API_KEY or a profile with a key. ${CREATE_ONE}`
const REVEALS = `A rule of this application reveals data. ${CREATE_ONE}. Or accept it with --allow-reveal.`
const INSTRUCTIONS =
  'A vault of sensitive values. You store, find, link and use them by the ids of their tokens. To use a value, write {{ token id }} ' +
  'in a proxy_call or reactor_react, for a property {{ token id | json: "$.number" }}; look at it with dry_run first. Answers are ' +
  'masked, and what comes back from a call is without the values: do not try to get them.'

/** @throws CofferError `usage`; `unauthenticated` without a key, `forbidden` for one that reveals */
export const serveMcp: TerminalCommand['run'] = async (context, _, options) => {
  const { terminal, input, signal, config } = context
  const { apiKey: key, apiKeyStdin, noReveal } = config
  if (options.allowReveal === true && noReveal)
    throw usage('No-reveal mode and --allow-reveal exclude each other.')
  if (apiKeyStdin)
    throw usage('Standard input has the messages of the agent. Set COFFER_API_KEY, or use a profile.')
  if (key === undefined) throw new CofferError('unauthenticated', NO_KEY)
  const vault = new SharedVault(context)
  let agent: Promise<Agent> | undefined
  const open = () => (agent ??= openAgent(vault, key, config.url !== undefined, options))
  const stdin = input.claimStdin('coffer mcp')
  context.handlesSignals()
  await new Promise<void>((resolve, reject) => {
    // Greeted first: opening the vault takes longer than the client needs to be answered.
    const begin = () => setImmediate(() => open().catch(reject))
    for (const event of ['end', 'close', 'error'])
      stdin.once(event, () => open().then(() => resolve(), reject))
    signal.addEventListener('abort', () => resolve(), { once: true })
    const transport = new StdioServerTransport(stdin, terminal.stdout)
    serveStdio(
      () => {
        begin()
        return createServer(open)
      },
      { transport },
    )
  })
  await vault.settle()
}

/** Reads whose key it is. @throws CofferError */
async function openAgent(
  vault: SharedVault,
  key: string,
  isRemote: boolean,
  options: Options,
): Promise<Agent> {
  const isNoReveal = options.allowReveal !== true
  const whoami = { operation: 'app whoami', input: {}, as: { key }, noReveal: isNoReveal }
  const application = (await vault.ask(whoami)).result as ApplicationView
  if (isNoReveal && application.rules?.some(({ transform }) => transform === 'reveal'))
    throw new CofferError('forbidden', REVEALS)
  const { registry } = await import('../../../operations/all.js')
  const nouns = (options.tools as string | undefined)?.split(',').map((noun) => noun.trim())
  const unknown = nouns?.find((noun) => !registry.nouns.some(({ name }) => name === noun))
  if (unknown !== undefined) throw usage(`--tools takes nouns such as token,proxy; there is no "${unknown}".`)
  const wanted = { application, nouns, isReadOnly: options.readOnly === true, isNoReveal, isRemote }
  const tools = registry.operations.filter((each) => isOffered(each, wanted))
  return new Agent(vault, { key, tools, isNoReveal, confirms: options.confirm === true })
}

function createServer(open: () => Promise<Agent>): Server {
  const capabilities = { tools: {}, resources: {}, prompts: {} }
  const about = { name: 'coffer', title: 'Coffer', version: VERSION }
  // Answers of a person are read in `confirm`; the validator of the SDK is large.
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
    const { findFixture } = await import('../../../assets.js')
    const text = await readFile(findFixture(`help/${topic.name}.txt`), 'utf8')
    return { contents: [{ uri, mimeType: topic.mimeType, text }] }
  })
  server.setRequestHandler('prompts/list', () => ({ prompts: PROMPTS }))
  server.setRequestHandler('prompts/get', ({ params }) => writePrompt(params.name, params.arguments ?? {}))
  return server
}

interface AgentParts {
  key: string
  tools: readonly RegisteredOperation[]
  isNoReveal: boolean
  confirms: boolean
}

class Agent {
  readonly tools: readonly RegisteredOperation[]
  readonly #vault: SharedVault
  readonly #parts: AgentParts
  /** Binds the consent of a person to the call that they saw. */
  readonly #seal = randomBytes(32)

  constructor(vault: SharedVault, parts: AgentParts) {
    this.tools = parts.tools
    this.#vault = vault
    this.#parts = parts
  }

  /** Errors of the operation are results. @throws ProtocolError for an unknown tool */
  async call(name: string, input: OperationInput, context: ServerContext) {
    const tool = this.tools.find((each) => toolName(each) === name)
    if (tool === undefined) throw new ProtocolError(NO_SUCH, 'There is no tool with this name.')
    try {
      const question = this.#parts.confirms ? await this.#confirm(tool, input, context) : undefined
      return question ?? describeResult(tool, await this.#ask(tool, input))
    } catch (error) {
      return describeFailure(error)
    }
  }

  async #ask({ name: operation }: RegisteredOperation, input: OperationInput): Promise<unknown> {
    const { key, isNoReveal: noReveal } = this.#parts
    const outcome = await this.#vault.ask({ operation, input, as: { key }, noReveal })
    return JSON.parse(JSON.stringify(resultOf(outcome) ?? null)) ?? undefined
  }

  /** Asks the person, unless they have allowed exactly this call. @throws CofferError `interrupted` if they refused */
  async #confirm(tool: RegisteredOperation, input: OperationInput, { mcpReq }: ServerContext) {
    const { relay, destroys, log, name } = tool
    if (
      (relay === undefined && destroys === undefined && log?.operation !== 'react') ||
      input.dry_run === true
    )
      return undefined
    const state = createHash('sha256')
      .update(this.#seal)
      .update(JSON.stringify([name, input]))
      .digest('hex')
    if (mcpReq.inputResponses !== undefined && mcpReq.requestState() === state) {
      if (acceptedContent(mcpReq.inputResponses, 'confirm')?.allow === true) return undefined
      throw new CofferError('interrupted', 'The person did not allow this call. Do not repeat it.')
    }
    // A dry run shows where the call goes, and finds what is wrong with it.
    const shown = relay === undefined ? input : await this.#ask(tool, { ...input, dry_run: true })
    const text = JSON.stringify(shown, undefined, 2)
    const message = `Allow ${name}?\n${cut(text)}`
    const properties = { allow: { type: 'boolean', title: 'Allow' } } as const
    const requestedSchema = { type: 'object' as const, properties, required: ['allow'] }
    const confirm = inputRequired.elicit({ message, requestedSchema })
    return inputRequired({ inputRequests: { confirm }, requestState: state })
  }
}

/** As structured content, and as a short text for clients that show the model nothing else. */
function describeResult({ destroys }: RegisteredOperation, result: unknown): CallToolResult {
  const text = result === undefined ? (destroys === undefined ? 'Done.' : 'Deleted.') : JSON.stringify(result)
  const content = [{ type: 'text' as const, text: cut(text) }]
  if (result === undefined) return { content }
  return { content, structuredContent: isObject(result) ? result : { result } }
}

/** The error as the terminal tells it; of an unexpected one a reference alone. */
function describeFailure(error: unknown): CallToolResult {
  const { detail, errors = {} } = toProblem(error, randomBytes(6).toString('hex'), 'owner')
  const lines = Object.entries(errors).flatMap(([path, texts]) => texts.map((text) => `${path}: ${text}`))
  return {
    isError: true,
    content: [{ type: 'text', text: cut([...new Set([detail, ...lines])].join('\n')) }],
  }
}

function cut(text: string): string {
  return text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}… (cut)` : text
}
