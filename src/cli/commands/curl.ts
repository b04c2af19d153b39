import { formatTarget } from '../../client/format-request.js'
import { readServerUrl } from '../../client/socket-fetch.js'
import { usage } from '../../errors.js'
import { isControl } from '../../framework/declaration.js'
import type { RoutedOperation } from '../../framework/registry.js'
import { headerNames } from '../../http/headers.js'
import { DEFAULT_PORT, DEFAULT_PREFIX } from '../../http/server.js'
import type { OperationLine } from '../context.js'
import { gatherInputs } from '../input/gather.js'
import { displayLines } from '../output/display.js'
import { printNotice } from '../output/output.js'
import { isTerminal, write } from '../output/terminal.js'

const BODY_FILE = 'FILE'

export async function printCurl(line: OperationLine): Promise<void> {
  const { context, definition, args, options } = line
  const { config, terminal } = context
  const { endpoint, positionals, http } = definition as RoutedOperation
  const { types: [contentType] = ['application/json'], form } = http?.body ?? {}
  const { prefix = DEFAULT_PREFIX, url = `http://localhost:${DEFAULT_PORT}`, insecure, ca } = config
  if (args.length > positionals.length) throw usage('--curl takes one id at a time.')
  const named = Object.fromEntries(positionals.map((name, at) => [name, args[at]]))
  // The printed call contains no body, so this command does not read a body.
  const { inputs } = endpoint.takesBody ? { inputs: [named] } : await gatherInputs(context, line)
  const target = formatTarget(definition as RoutedOperation, inputs[0] ?? {})
  const { apiKey, controlKey, idempotencyKey } = headerNames(prefix)
  const [keyHeader, variable] = isControl(definition)
    ? [controlKey, 'COFFER_CONTROL_KEY']
    : [apiKey, 'COFFER_API_KEY']
  const method = endpoint.method === 'GET' ? '' : `-X ${endpoint.method} `
  const lines = [
    `curl ${method}${quote(readServerUrl(url, { insecure }) + target)}`,
    ca && `--cacert ${quote(ca)}`,
    `-H "${keyHeader.toUpperCase()}: $${variable}"`,
    options.idempotencyKey && `-H ${quote(`${idempotencyKey.toUpperCase()}: ${options.idempotencyKey}`)}`,
    endpoint.takesBody && form === undefined && `-H 'Content-Type: ${contentType}' \\\n  --data-binary @-`,
    form && `-F '${form.file}=@${BODY_FILE}' \\\n  -F '${form.json}={}'`,
  ].filter((line) => typeof line === 'string')
  const show = isTerminal(terminal.stdout) ? displayLines : String
  await write(terminal.stdout, `${show(lines.join(' \\\n  '))}\n`)
  const rest = 'The printed call does not contain the body. curl reads the body as JSON from standard input.'
  if (form !== undefined) await printNotice(terminal, `Replace ${BODY_FILE} with the name of the file.`)
  else if (endpoint.takesBody) await printNotice(terminal, rest)
}

function quote(text: string): string {
  if (/[\n\r]/.test(text)) throw usage('--curl cannot print a value that has a line break.')
  return `'${text.replaceAll("'", "'\\''")}'`
}
