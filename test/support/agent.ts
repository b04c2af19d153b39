/** An agent: the official MCP client, connected to `coffer mcp` in a separate process. */
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { PROGRAM } from './process.js'

export interface WebhookEvent {
  isError: boolean
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test knows the result of its call
  data: any
}

export interface AgentOptions {
  cwd: string
  env: Record<string, string>
  words?: readonly string[]
  /**
   * Plays the person who answers the questions of the server. If this function is missing, the client tells the
   * server that it cannot ask a person.
   */
  person?: (message: string) => boolean
}

export async function connectAgent({ cwd, env, words = [], person }: AgentOptions) {
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: person === undefined ? {} : { elicitation: { form: {} } } },
  )
  if (person !== undefined)
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      const allow = person(params.message)
      return { action: 'accept', content: { allow } }
    })
  const args = [PROGRAM, 'mcp', ...words]
  const transport = new StdioClientTransport({ command: process.execPath, args, cwd, env, stderr: 'pipe' })
  let stderr = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  await client.connect(transport)
  const call = async (name: string, input: Record<string, unknown> = {}): Promise<WebhookEvent> => {
    const { isError = false, content, structuredContent } = await client.callTool({ name, arguments: input })
    const text = content.map((each) => (each.type === 'text' ? each.text : JSON.stringify(each))).join('\n')
    return { isError, text, data: structuredContent }
  }
  return { client, call, stderr: () => stderr, close: () => client.close() }
}
