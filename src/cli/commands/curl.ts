import { formatTarget } from '../../client/format-request.js'
import { readServerUrl } from '../../client/socket-fetch.js'
import { usage } from '../../errors.js'
import type { RegisteredOperation, RoutedOperation } from '../../framework/registry.js'
import { nameHeaders } from '../../http/headers.js'
import { DEFAULT_PORT, DEFAULT_PREFIX } from '../../http/server.js'
import type { CommandContext } from '../context.js'
import { gatherInputs } from '../input/gather.js'
import { display } from '../output/display.js'
import { printNotice } from '../output/output.js'
import { isTerminal, write } from '../output/terminal.js'
import type { Args, Options } from '../task.js'

/** @throws CofferError `usage` */
export async function printCurl(
  context: CommandContext,
  definition: RegisteredOperation,
  args: Args,
  options: Options,
): Promise<void> {
  const { config, terminal } = context
  const { endpoint, positionals, contentType = 'application/json' } = definition as RoutedOperation
  const { prefix = DEFAULT_PREFIX, url = `http://localhost:${DEFAULT_PORT}`, insecure, ca } = config
  if (args.length > positionals.length) throw usage('--curl takes one id at a time.')
  const named = Object.fromEntries(positionals.map((name, at) => [name, args[at]]))
  // Does not read the body.
  const { inputs } = endpoint.takesBody
    ? { inputs: [named] }
    : await gatherInputs(context, definition, args, options)
  const target = formatTarget(definition as RoutedOperation, inputs[0] ?? {})
  const { apiKey, idempotencyKey } = nameHeaders(prefix)
  const repeatKey = options.idempotencyKey
  const lines = [
    `curl ${endpoint.method === 'GET' ? '' : `-X ${endpoint.method} `}${quote(readServerUrl(url, { insecure }) + target)}`,
    ...(ca === undefined ? [] : [`--cacert ${quote(ca)}`]),
    `-H "${apiKey.toUpperCase()}: $COFFER_API_KEY"`,
    ...(typeof repeatKey === 'string'
      ? [`-H ${quote(`${idempotencyKey.toUpperCase()}: ${repeatKey}`)}`]
      : []),
    ...(endpoint.takesBody ? [`-H 'Content-Type: ${contentType}'`, '--data-binary @-'] : []),
  ]
  const show = isTerminal(terminal.stdout) ? display : String
  await write(terminal.stdout, `${lines.map(show).join(' \\\n  ')}\n`)
  if (endpoint.takesBody)
    await printNotice(
      terminal,
      'The body is not part of the call: curl reads it from standard input, as JSON.',
    )
}

/** A word as every shell reads it. */
function quote(text: string): string {
  if (/[\n\r]/.test(text)) throw usage('A line break cannot be part of this call.')
  return `'${text.replaceAll("'", "'\\''")}'`
}
