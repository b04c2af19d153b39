/**
 * Checks the output flags before the command does anything. Otherwise the output of a change, such as a new key, could
 * be lost.
 */
import type { Config } from '../../config.js'
import { usage } from '../../errors.js'
import { itemOutput } from '../../framework/page.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { findUnknownName, type Schema, showsOnce } from '../../framework/schema.js'
import { type Format, SETTINGS } from '../../global-flags.js'
import type { ParsedLine } from '../command-tree.js'
import type { CommandContext, Options, Prints } from '../context.js'
import { findPresentation } from '../nouns/all.js'
import type { TerminalCommand } from '../task.js'

interface Printing {
  readonly name: string
  readonly prints: Prints
  /** Whether the command only reads. A command that only reads can be repeated if its output is lost. */
  readonly isReading: boolean
  /** Whether the result has a secret that no other command shows. */
  readonly showsOnce: boolean
}

type Io = Pick<CommandContext, 'registry'> & { readonly config: Pick<Config, 'output' | 'fields'> }

/** @throws CofferError `usage` if the command cannot print the format or the fields */
export function checkOutput({ config, registry }: Io, printing: Printing, options: Options): void {
  const { prints } = printing
  const { output, fields = [] } = config
  // Names of fields in a variable or a profile are not checked, because these fields are for all commands, and this
  // command may lack some of them.
  const asked = options.fields === undefined ? [] : fields
  if (prints !== 'notices' && 'text' in prints) {
    requireOwnFormat(printing.name, prints.text, options)
    requireFields(registry.find(prints.itemsOf ?? '')?.output, asked)
    return
  }
  if (output === 'value' && fields.length !== 1)
    throw usage('--output value prints one field: add --fields NAME.')
  if (prints === 'notices') return
  if (output === 'id') requireIds(printing, prints.result)
  requireFields(prints.result, asked)
  if (printing.showsOnce && options.fields === undefined && config.fields !== undefined)
    requireShownOnce(itemOutput(prints.result), fields)
}

/** Whether the command fails without standard output. A server can run without standard output. */
export function needsStdout(command: ParsedLine['command']): boolean {
  if ('run' in command) return command.prints !== 'notices' && command.name !== 'serve'
  return command.some(({ output }) => output !== undefined)
}

export function printingOfCommand({ name, prints }: Pick<TerminalCommand, 'name' | 'prints'>): Printing {
  return { name, prints, isReading: false, showsOnce: false }
}

export function printingOf(definition: RegisteredOperation, isExplained: boolean): Printing {
  const { name, output, endpoint } = definition
  if (isExplained) return { name, prints: { result: {} }, isReading: true, showsOnce: false }
  const result = findPresentation(definition).result ?? output
  return {
    name,
    prints: result === undefined ? 'notices' : { result },
    isReading: endpoint === undefined || endpoint.method === 'GET',
    showsOnce: result !== undefined && endpoint?.method === 'POST' && showsOnce(result),
  }
}

function requireOwnFormat(name: string, formats: readonly Format[], { output }: Options): void {
  if (output === undefined || output === 'table' || formats.some((each) => each === output)) return
  const others = formats.length === 0 ? '' : ` It can also print: ${formats.join(', ')}.`
  throw usage(`\`coffer ${name}\` prints text, and cannot print --output ${output}.${others}`)
}

function requireIds({ name, isReading }: Printing, result: Schema): void {
  const item = itemOutput(result)
  const isAnyJson = item.type === undefined && item.enum === undefined
  const hasId =
    item.type === 'string' || (item.type === 'object' && Object.hasOwn(item.properties ?? {}, 'id'))
  if (hasId || (isAnyJson && isReading)) return
  throw usage(`The results of coffer ${name} have no id. Choose another --output, such as json.`)
}

/** @throws CofferError `usage` for an unknown field, with the existing fields */
function requireFields(result: Schema | undefined, fields: readonly string[]): void {
  for (const field of result === undefined ? [] : fields) {
    const { level, names } = findUnknownName(itemOutput(result!), field) ?? {}
    if (names === undefined) continue
    const above = field.split('.').slice(0, level).join('.')
    const there = names.length === 0 ? 'no fields' : names.join(', ')
    throw usage(`There is no field "${field}". ${above ? `Below ${above} there` : 'There'} are: ${there}.`)
  }
}

/** Refuses fields of a variable or a profile if these fields leave out a secret that no other command shows. */
function requireShownOnce(item: Schema, fields: readonly string[]): void {
  const properties = (item.type === 'object' && item.properties) || {}
  const secrets = Object.keys(properties).filter((name) => properties[name]!.isShownOnce)
  if (secrets.every((name) => fields.includes(name))) return
  const names = secrets.join(', ')
  throw usage(
    `${SETTINGS.fields.variable} leaves out ${names}, which is shown only once. Say what to print: --fields id,${names}`,
  )
}
