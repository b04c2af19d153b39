/** `coffer help`: prints the help of a command or a topic, or all commands as JSON. */
import { omitUndefined } from '../../../domain/omit-undefined.js'
import type { RegisteredOperation, Registry } from '../../../framework/registry.js'
import { toJsonSchema } from '../../../framework/schema.js'
import { ALL_SETTINGS } from '../../../global-flags.js'
import { VERSION } from '../../../version.js'
import type { CommandContext, CommandFacts, OptionFacts } from '../../context.js'
import { TOPIC_NAMES } from '../../help-layout.js'
import { listFlags } from '../../input/options.js'
import { foldHelp, joinLines, toJson } from '../../output/display.js'
import { DEFAULT_COLUMNS, write } from '../../output/terminal.js'
import type { Options } from '../../task.js'
import { describeTopic } from './help-topics.js'

/** @throws CofferError `usage` for an unknown command or topic */
export async function printHelp(context: CommandContext, words: readonly string[], { json }: Options) {
  const { stdout } = context.terminal
  if (json === true) {
    const path = words.join(' ')
    if (path !== '') context.describeCommand(words)
    await write(stdout, `${toJson(describeTree(context, path), stdout.isTTY ? 2 : 0)}\n`)
    return
  }
  const topic = words.length === 1 ? describeTopic(words[0]!) : undefined
  const columns = stdout.columns ?? DEFAULT_COLUMNS
  await write(
    stdout,
    topic === undefined ? context.describeCommand(words) : `${foldHelp(joinLines(topic), columns)}\n`,
  )
}

/** The commands that begin with `path`, and what holds for all. */
function describeTree({ listCommands, registry }: CommandContext, path: string): object {
  const [program, ...commands] = listCommands()
  const wanted = commands.filter(({ words }) =>
    `${words.join(' ')} `.startsWith(path === '' ? '' : `${path} `),
  )
  const globals = program!.options.map((option) => {
    const { variable } = ALL_SETTINGS.find(({ word }) => option.names.includes(word)) ?? {}
    return { ...describeFlag(option), ...omitUndefined({ variable }) }
  })
  return {
    version: VERSION,
    global_flags: globals,
    topics: TOPIC_NAMES,
    commands: wanted.map((facts) => describeOne(facts, registry)),
  }
}

function describeOne(
  { words, summary, arguments: given, options, ...facts }: CommandFacts,
  registry: Registry,
): object {
  const name = words.join(' ')
  const operation = registry.find(name)
  const { details, examples = [] } = operation ?? facts
  return {
    words,
    summary,
    ...omitUndefined({ details }),
    arguments: given,
    flags: options.map((option) => ({ ...describeFlag(option), ...describeType(operation, option) })),
    examples,
    ...(operation === undefined ? {} : describeOperation(operation)),
  }
}

function describeFlag({ names, hasValue, description, choices }: OptionFacts): object {
  const type = hasValue ? 'string' : 'boolean'
  return { names, type, description, ...omitUndefined({ values: choices }) }
}

/** The type of a flag of the operation's input, as JSON Schema. */
function describeType(operation: RegisteredOperation | undefined, { names }: OptionFacts): object {
  const flags = operation === undefined ? [] : listFlags(operation)
  const flag = flags.find(({ name }) => names.includes(name) || names.includes(name.replace('--', '--no-')))
  if (flag === undefined) return {}
  const { isRequired, shape, schema } = flag
  const { type = 'any', ...rest } = toJsonSchema(schema)
  return { ...rest, type, required: isRequired, repeatable: shape === 'list' || shape === 'map' }
}

function describeOperation(operation: RegisteredOperation): object {
  const { permissions, needsOnePermission, audience, endpoint, output } = operation
  return {
    permissions,
    needs_one_permission: needsOnePermission === true,
    audience: audience ?? 'everybody',
    ...(endpoint === undefined ? {} : { http: `${endpoint.method} ${endpoint.path}` }),
    ...(output === undefined ? {} : { output: toJsonSchema(omitComponent(output)) }),
  }
}

/** A component is described in place, because there is no document to refer to. */
function omitComponent<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema, (name, value) => (name === 'component' ? undefined : value))) as T
}
