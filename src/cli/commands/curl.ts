/** `--curl`: prints the call of curl that a command equals. It holds neither the key nor any data, and is not sent. */
import { readServerUrl } from '../../client/socket-fetch.js'
import { spellTarget } from '../../client/spell-request.js'
import { usage } from '../../errors.js'
import type { RegisteredOperation, RoutedOperation } from '../../framework/registry.js'
import { nameHeaders } from '../../http/headers.js'
import { DEFAULT_PORT, DEFAULT_PREFIX } from '../../http/sockets.js'
import type { CommandContext } from '../context.js'
import { gatherInputs } from '../input/gather.js'
import { listFlags } from '../input/options.js'
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
  const { endpoint, positionals } = definition as RoutedOperation
  const { prefix = DEFAULT_PREFIX, url = `http://localhost:${DEFAULT_PORT}`, insecure, ca } = config
  if (args.length > positionals.length) throw usage('--curl takes one id at a time.')
  const named = Object.fromEntries(positionals.map((name, at) => [name, args[at]]))
  // Does not read the body.
  const { inputs } = endpoint.takesBody
    ? { inputs: [named] }
    : await gatherInputs(context, definition, args, options)
  const [input = {}] = inputs
  const address = readServerUrl(url, { insecure }) + spellTarget(definition as RoutedOperation, input)
  const { apiKey, idempotencyKey } = nameHeaders(prefix)
  const repeatKey = typeof options.idempotencyKey === 'string' ? options.idempotencyKey : undefined
  const lines = [
    `curl ${endpoint.method === 'GET' ? '' : `-X ${endpoint.method} `}${quote(address)}`,
    ...(ca === undefined ? [] : [`--cacert ${quote(ca)}`]),
    `-H "${apiKey.toUpperCase()}: $COFFER_API_KEY"`,
    ...(repeatKey === undefined ? [] : [`-H ${quote(`${idempotencyKey.toUpperCase()}: ${repeatKey}`)}`]),
    ...(endpoint.takesBody
      ? [`-H 'Content-Type: ${definition.contentType ?? 'application/json'}'`, '--data-binary @-']
      : []),
  ]
  const text = lines.join(' \\\n  ')
  const shown = isTerminal(terminal.stdout) ? text.split('\n').map(display).join('\n') : text
  await write(terminal.stdout, `${shown}\n`)
  if (endpoint.takesBody) await printNotice(terminal, describeBody(definition, args, options))
}

/** Names what is in the body, and never a value, because some are secret. */
function describeBody(definition: RegisteredOperation, args: Args, options: Options): string {
  const { wholeBody, sentBody, endpoint, positionals } = definition as RoutedOperation
  const from = 'The body is not part of the call: curl reads it from standard input, as JSON'
  if (wholeBody !== undefined || sentBody !== undefined) return `${from}.`
  const flags = listFlags(definition).filter(({ property }) => Object.hasOwn(endpoint.body, property))
  const isGiven = (name: string) => args[positionals.indexOf(name)] !== undefined
  const given = flags.filter(
    ({ isRequired, key, property }) => isRequired || options[key] !== undefined || isGiven(property),
  )
  const names = given.map(({ property }) => `"${property}": …`)
  return `${from}${names.length === 0 ? '' : ` such as {${names.join(', ')}}`}.`
}

/** A word as every shell reads it. */
function quote(text: string): string {
  if (/[\n\r]/.test(text)) throw usage('A line break cannot be part of this call.')
  return `'${text.replaceAll("'", "'\\''")}'`
}
