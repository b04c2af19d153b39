/** Builds the input of an operation in steps. Flags override the body, and arguments override both. */
import { resolve } from 'node:path'
import { formatDate, parseDuration } from '../../domain/dates.js'
import { decodeUtf8, isObject, parseJson, tryJson } from '../../domain/json/json.js'
import { collectBytes } from '../../domain/proxy/collect-bytes.js'
import { CofferError, usage } from '../../errors.js'
import type { OperationInput } from '../../framework/context.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import type { Schema } from '../../framework/schema.js'
import type { ArgSpecs, Args, CommandContext, OperationLine } from '../context.js'
import { isTerminal, type Terminal } from '../output/terminal.js'
import { dashError } from './dash.js'
import { type Flag, isTextOf, lacks, listFlags, readFlag, takesMany, takesSeveralBodies } from './flags.js'
import type { Form } from './form.js'
import { type InputReader, isSource, warnOfArguments } from './input.js'
import { createUnknownWarning, type ListNoun, resolveNames } from './names.js'

const NO_OBJECT = 'must contain one JSON object.'
const REQUIRED = /^<(.*?)(?:\.\.\.)?>$/
const MAX_ID_BYTES = 64 * 1024 * 1024

/** `form` is absent if prompts are impossible. If `list` is absent, names are not replaced by ids. */
interface InputIo extends Pick<CommandContext, 'terminal' | 'input' | 'cwd' | 'clock'> {
  readonly form?: Form | undefined
  readonly list?: ListNoun
}

type Line = Pick<OperationLine, 'definition' | 'args' | 'options'>

interface Draft extends Line {
  readonly flags: readonly Flag[]
  /** The values of flags, by property. Sources such as `@file` are already replaced by their content. */
  readonly texts: Readonly<Record<string, boolean | readonly string[]>>
  readonly inputs: readonly OperationInput[]
  /** The name of each input in messages, such as an id or `line 3`. Undefined if there is a single input. */
  readonly names?: readonly string[]
  /**
   * The errors of invalid inputs, by position in `inputs`. The command fails when it reaches the first of these inputs.
   */
  readonly faults?: ReadonlyMap<number, CofferError>
}

type Step = (draft: Draft, io: InputIo) => Draft | Promise<Draft>

/** If a command reads its own input, only the last two steps run. */
const STEPS: readonly Step[] = [readFlags, readBodies, mergeFlags, askMissing, takeIds, findIds]

/**
 * `own`: the input that the command has read itself.
 * @throws CofferError `usage`, with the names of missing and invalid flags
 */
export function gatherInputs(io: InputIo, line: Line, own?: OperationInput): Promise<Draft> {
  const draft: Draft = { ...line, flags: listFlags(line.definition), texts: {}, inputs: [own ?? {}] }
  const steps = own === undefined ? STEPS : STEPS.slice(-2)
  return steps.reduce(async (before, step) => step(await before, io), Promise.resolve(draft))
}

/** Prompts for missing required arguments. @throws CofferError `usage` if prompts are impossible */
export async function completeArgs(
  { terminal, form }: { terminal: Terminal; form?: Form | undefined },
  command: string,
  specs: ArgSpecs,
  args: Args,
): Promise<Args> {
  const complete = [...args]
  for (const [at, [spec, description]] of specs.entries()) {
    const name = REQUIRED.exec(spec)?.[1]
    if (name === undefined || complete[at] !== undefined) continue
    if (!terminal.mayPrompt) throw usage(`Missing required argument '${name}'. See: coffer ${command} --help`)
    const validate = (answer: string) => answer !== '' || 'A value is required.'
    complete[at] = form
      ? // Names of properties have underscores instead of hyphens.
        await form.askArg(name.replaceAll('-', '_'), description)
      : await (await import('./prompt.js')).ask(terminal, { message: name, validate })
  }
  return complete
}

async function readFlags(draft: Draft, { terminal, input }: InputIo): Promise<Draft> {
  const { definition, flags, args, options } = draft
  const texts: Record<string, boolean | readonly string[]> = {}
  const exposed: string[] = []
  for (const flag of flags) {
    const { property, name, key, schema } = flag
    const arg = args[definition.positionals.indexOf(property)]
    const option = options[key] as boolean | readonly string[] | undefined
    if (arg !== undefined && option !== undefined)
      throw usage(`Give ${property} as an argument or as ${name}, not both.`)
    const given = arg === undefined ? option : [arg]
    if (given === undefined) continue
    texts[property] = typeof given === 'boolean' ? given : await readTexts(input, flag, given)
    const isExposed = (text: string) => !isSource(text.slice(sourceOffset(flag, text)))
    if (schema.sensitive && Array.isArray(given) && given.some(isExposed)) exposed.push(name)
  }
  if (exposed.length > 0) await warnOfArguments(terminal, exposed)
  return { ...draft, texts }
}

export async function readTexts(
  input: InputReader,
  flag: Pick<Flag, 'name' | 'shape'>,
  given: readonly string[],
): Promise<string[]> {
  const texts: string[] = []
  for (const text of given) {
    const at = sourceOffset(flag, text)
    texts.push(text.slice(0, at) + (await input.readValue(text.slice(at), flag.name)))
  }
  return texts
}

/** Returns where a source such as `@file` can begin: in `key=value`, after the equals sign. */
function sourceOffset({ shape }: Pick<Flag, 'shape'>, text: string): number {
  return shape === 'map' && !text.trimStart().startsWith('{') ? text.indexOf('=') + 1 : 0
}

/**
 * Without `--file`, reads standard input only if values are missing and standard input is no terminal. Otherwise a read
 * could wait forever.
 */
async function readBodies(draft: Draft, { terminal, input }: InputIo): Promise<Draft> {
  const { definition, flags, options, texts } = draft
  const wholeBody = definition.http?.body?.whole
  if (definition.endpoint?.takesBody !== true || (wholeBody !== undefined && texts[wholeBody] !== undefined))
    return draft
  const file = options.file as string | undefined
  const isTyped = isTerminal(terminal.stdin)
  if (wholeBody !== undefined && (file ?? '-') === '-' && isTyped)
    throw usage('Give the JSON document on standard input or as --file FILE.')
  const isMissing = flags.some((flag) => lacks(texts, flag))
  const isWanted = wholeBody !== undefined || isMissing || Object.keys(texts).length === 0
  if (file === undefined && (!isWanted || isTyped || input.isStdinTaken)) return draft
  const source = file === undefined || file === '-' ? 'standard input' : file
  const text = await input.readFile(file ?? '-', file === undefined ? source : '--file')
  if (wholeBody !== undefined) return { ...draft, inputs: [{ [wholeBody]: parseJson(text, { source }) }] }
  if (file === undefined && text.trim() === '') return draft
  if (file === undefined && !/^\s*[[{]/.test(text) && flags.some(({ property }) => property === 'data'))
    throw new CofferError('validation', `${source} ${NO_OBJECT} To store the text itself, give --data -.`)
  const lines = splitBodies(definition, text)
  const parsed =
    lines === undefined
      ? { inputs: [parseBody(text, source)] }
      : {
          names: lines.map(({ line }) => `line ${line}`),
          ...tryEach(lines, ({ body, line }) => parseBody(body, 'the JSON', line)),
        }
  await createUnknownWarning(terminal, definition)(parsed.inputs)
  return { ...draft, ...parsed }
}

/** Returns the lines if the first two lines look like bodies. Returns undefined if the text is a single body. */
function splitBodies(definition: RegisteredOperation, text: string) {
  const lines = text
    .split('\n')
    .map((body, at) => ({ body, line: at + 1 }))
    .filter(({ body }) => body.trim() !== '')
  if (!takesSeveralBodies(definition) || lines.length < 2) return undefined
  const [first, second] = lines.map(({ body }) => body) as [string, string]
  // An invalid first line counts as a body if it ends like an object and the second line begins like an object.
  const areBodies = isObject(tryJson(first)) || (/\}\s*$/.test(first) && /^\s*\{/.test(second))
  return areBodies ? lines : undefined
}

function parseBody(text: string, source: string, firstLine = 1): OperationInput {
  const body = parseJson(text, { source, firstLine })
  if (isObject(body)) return body
  throw new CofferError('validation', `${source} ${NO_OBJECT}`)
}

/** If `read` throws, stores the error as a fault, and uses an empty input. */
function tryEach<T>(items: readonly T[], read: (item: T) => OperationInput) {
  const faults = new Map<number, CofferError>()
  const inputs = items.map((item, at) => {
    try {
      return read(item)
    } catch (error) {
      faults.set(at, requireFault(error))
      return {}
    }
  })
  return { inputs, faults }
}

function requireFault(error: unknown): CofferError {
  if (error instanceof CofferError) return error
  throw error
}

function mergeFlags(draft: Draft, io: InputIo): Draft {
  const { definition, flags, args, texts } = draft
  const { positionals, http, input } = definition
  const sentBody = http?.body?.asSent
  const named = positionals
    .map((name, at) => [name, refine(input.properties![name]!, args[at], io)] as const)
    .filter(([name, arg]) => arg !== undefined && texts[name] === undefined)
  const inputs = draft.inputs.map((body) => {
    const sent: Record<string, unknown> = { ...body }
    for (const flag of flags) {
      const given = texts[flag.property]
      if (given === undefined) continue
      const isText = isTextOf(flag, sent)
      const value = typeof given === 'boolean' ? given : readFlag({ ...flag, isText }, given)
      sent[flag.property] = refine(flag.schema, value, io)
    }
    const whole = sentBody === undefined ? {} : { [sentBody]: { ...sent } }
    return { ...sent, ...whole, ...Object.fromEntries(named) }
  })
  return { ...draft, inputs }
}

/** Replaces a duration with a date. Makes a path absolute, because a server has another current directory. */
function refine(schema: Schema, value: unknown, { clock, cwd }: InputIo): unknown {
  if (typeof value !== 'string' || value === '') return value
  const { duration } = schema
  if (schema.cli?.isPath) {
    if (value === '-') throw dashError('<file>')
    return resolve(cwd, value)
  }
  const ms = duration === undefined ? undefined : parseDuration(value)
  return ms === undefined ? value : formatDate(clock() + (duration === 'ahead' ? ms : -ms))
}

/**
 * Prompts for missing properties of a single input. If there are several inputs, the operation reports what is missing.
 * @throws CofferError `usage` if a property is missing and prompts are impossible, or if an update changes nothing
 */
async function askMissing(draft: Draft, { form }: InputIo): Promise<Draft> {
  const { definition, flags, options, names: isSeveral } = draft
  if (isSeveral !== undefined) return draft
  const inputs: OperationInput[] = []
  const mayAsk = form !== undefined && options.file === undefined
  for (const input of draft.inputs) {
    const isAsked = ({ property, schema }: Flag) =>
      mayAsk && schema.cli?.isAsked && input[property] === undefined
    const missing = flags.filter((flag) => lacks(input, flag) || isAsked(flag))
    if (missing.length > 0 && form === undefined) {
      const names = missing.map(({ name }) => name).join(', ')
      const which = missing.length === 1 ? 'it' : 'them'
      throw usage(`Missing: ${names}. Give ${which} as flags, as --file, or as JSON on standard input.`)
    }
    if (
      definition.endpoint?.method === 'PATCH' &&
      flags.every(({ property }) => input[property] === undefined)
    )
      throw usage('Nothing to change. Give changes as flags, as --file, or as JSON on standard input.')
    inputs.push(form === undefined ? input : await form.complete(input, missing))
  }
  return { ...draft, inputs }
}

/**
 * Makes one input from each id. If the only id is `-`, makes one input from each line of standard input.
 * @throws CofferError `too_large`
 */
async function takeIds(draft: Draft, { input }: InputIo): Promise<Draft> {
  const { definition, args, inputs } = draft
  const property = definition.positionals.at(-1)!
  let ids = args.slice(definition.positionals.length - 1).filter((arg) => arg !== undefined)
  const isRead = ids.length === 1 && ids[0] === '-'
  if (!takesMany(definition) || (ids.length < 2 && !isRead)) return draft
  if (isRead) {
    // All ids are read before the vault is opened, because the command that writes the ids into the pipe may need the
    // vault too.
    const { chunks, name } = await input.openStream('-', `<${property}>`)
    const bytes = await collectBytes(chunks, MAX_ID_BYTES)
    if (bytes === undefined) throw new CofferError('too_large', 'Standard input has more than 64 MiB of ids.')
    const lines = decodeUtf8(bytes, name).split('\n')
    ids = lines.map((line) => line.trim()).filter((line) => line !== '')
  }
  return { ...draft, inputs: ids.map((id) => ({ ...inputs[0], [property]: id })), names: ids }
}

async function findIds(draft: Draft, { list }: InputIo): Promise<Draft> {
  if (list === undefined) return draft
  const { definition, names } = draft
  const inputs: OperationInput[] = []
  const faults = new Map(draft.faults)
  for (const [at, input] of draft.inputs.entries()) {
    const found = resolveNames(definition, input, list)
    const refuse = (error: unknown) => {
      // An error of a single input is thrown at once.
      if (names === undefined) throw error
      if (!faults.has(at)) faults.set(at, requireFault(error))
      return input
    }
    inputs.push(await found.catch(refuse))
  }
  return { ...draft, inputs, faults }
}
