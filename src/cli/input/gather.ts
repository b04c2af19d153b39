/**
 * Builds the input of an operation. Each step adds to a draft: arguments, flags, the body in a file or on standard input,
 * answers to questions, ids for names. Flags override the body, and arguments override both.
 */
import { resolve } from 'node:path'
import { formatDate, parseDuration } from '../../domain/dates.js'
import { isObject, parseJson } from '../../domain/json/json.js'
import { CofferError, usage } from '../../errors.js'
import type { OperationInput } from '../../framework/operation.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import type { Schema } from '../../framework/schema.js'
import type { CommandContext } from '../context.js'
import { printNotice, printWarning } from '../output/output.js'
import { isTerminal } from '../output/terminal.js'
import type { Args, Options } from '../task.js'
import { type Ids, readIds } from './args.js'
import type { Form } from './form.js'
import { type InputReader, isSource } from './input.js'
import { type ListNoun, resolveNames } from './names.js'
import { type Flag, isTextOf, listFlags, readFlag, takesBody } from './options.js'
import { createUnknownNotice } from './unknown.js'

/** `form` asks for what is missing, and is absent where nobody can be asked; without `list` names are no ids. */
export type InputIo = Pick<CommandContext, 'terminal' | 'input' | 'cwd' | 'clock'> & {
  readonly form?: Form | undefined
  readonly list?: ListNoun
}

export interface Draft {
  readonly definition: RegisteredOperation
  readonly flags: readonly Flag[]
  readonly args: Args
  readonly options: Options
  /** The values of flags by property: booleans, or texts with the contents of files. */
  readonly texts: Readonly<Record<string, boolean | readonly string[]>>
  readonly ids?: Ids | undefined
  /** One input, or one for each body or id. */
  readonly inputs: readonly OperationInput[]
  /** The names of several inputs in messages; undefined for a single input. */
  readonly names?: readonly string[]
}

type Step = (draft: Draft, io: InputIo) => Draft | Promise<Draft>

const STEPS: readonly Step[] = [
  takeIds,
  readArgs,
  announce,
  readTextsOfFlags,
  readBodies,
  mergeFlags,
  resolvePaths,
  askMissing,
  spreadIds,
  findIds,
]
/** The steps after a command has read its input by itself. */
const OWN_STEPS: readonly Step[] = [takeIds, spreadIds, findIds]

/** `own`: the input that the command has read by itself. @throws CofferError `usage` that names missing and invalid flags */
export function gatherInputs(
  io: InputIo,
  definition: RegisteredOperation,
  args: Args,
  options: Options,
  own?: OperationInput,
): Promise<Draft> {
  const draft: Draft = {
    definition,
    flags: listFlags(definition),
    args,
    options,
    texts: {},
    inputs: [own ?? {}],
  }
  const steps = own === undefined ? STEPS : OWN_STEPS
  return steps.reduce(async (before, step) => step(await before, io), Promise.resolve(draft))
}

/** First, because nothing else may read ids on standard input. */
async function takeIds(draft: Draft, { input }: InputIo): Promise<Draft> {
  return { ...draft, ids: await readIds(input, draft.definition, draft.args) }
}

function eachInput(draft: Draft, change: (input: OperationInput) => OperationInput): Draft {
  return { ...draft, inputs: draft.inputs.map(change) }
}

/** Arguments that also have a flag become values of the flag. @throws CofferError `usage` for one given twice */
function readArgs(draft: Draft): Draft {
  const { flags, args, definition } = draft
  const options = { ...draft.options }
  for (const { property, name, key } of flags) {
    const arg = args[definition.positionals.indexOf(property)]
    if (arg === undefined) continue
    if (options[key] !== undefined) throw usage(`Give ${property} as an argument or as ${name}, not both.`)
    options[key] = [arg]
  }
  return { ...draft, options }
}

/** Warns of secrets in arguments, and tells that the command reads from the terminal. */
async function announce(draft: Draft, { terminal }: InputIo): Promise<Draft> {
  const { flags, options } = draft
  const textsOf = ({ key }: Flag) => (Array.isArray(options[key]) ? (options[key] as string[]) : [])
  const isAsked = options.file === '-' || flags.flatMap(textsOf).some((text) => /^(?:[^=]+=)?@?-$/.test(text))
  if (isAsked && isTerminal(terminal.stdin))
    await printNotice(terminal, 'Reading from the terminal; end with Ctrl-D on an empty line.')
  const exposed = flags.filter(
    (flag) =>
      flag.schema.sensitive && textsOf(flag).some((text) => !isSource(text.slice(sourceOffset(flag, text)))),
  )
  if (exposed.length === 0) return draft
  const names = exposed.map(({ name }) => name)
  const danger = `Other processes can see the arguments of a command (${names.join(', ')}).`
  const advice = `Give a file as ${names[0]} @FILE, or JSON on standard input.`
  await printWarning(terminal, `${danger} ${advice}`)
  return draft
}

/** Sequential, because standard input can be read once. */
async function readTextsOfFlags(draft: Draft, { input }: InputIo): Promise<Draft> {
  const texts: Record<string, boolean | readonly string[]> = {}
  for (const flag of draft.flags) {
    const option = draft.options[flag.key] as boolean | readonly string[] | undefined
    if (option === undefined) continue
    texts[flag.property] = typeof option === 'boolean' ? option : await readTexts(input, flag, option)
  }
  return { ...draft, texts }
}

/** The values of a flag, with sources replaced by their contents. */
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

/** The offset of a possible source in the value of a flag: after the key, if any. */
function sourceOffset({ shape }: Pick<Flag, 'shape'>, text: string): number {
  return shape === 'map' && !text.trimStart().startsWith('{') ? text.indexOf('=') + 1 : 0
}

/**
 * Reads standard input only if it is not a terminal and a required property, or all flags, are missing. Otherwise a
 * command could wait for an input that is never closed.
 */
async function readBodies(draft: Draft, io: InputIo): Promise<Draft> {
  const { definition, flags, options, texts } = draft
  const { terminal, input } = io
  const { wholeBody } = definition
  if (!takesBody(definition)) return draft
  const file = typeof options.file === 'string' ? options.file : undefined
  if (wholeBody !== undefined) {
    if (texts[wholeBody] !== undefined) return draft
    if ((file ?? '-') === '-' && isTerminal(terminal.stdin))
      throw usage('Give the JSON document on standard input or as --file FILE.')
    const { text, source } = await readFileOf(io, file ?? '-')
    return { ...draft, inputs: [{ [wholeBody]: parseJson(text, { source }) }] }
  }
  if (file === undefined) {
    const isMissing = flags.some(({ isRequired, property }) => isRequired && texts[property] === undefined)
    const isWanted = isMissing || Object.keys(texts).length === 0
    if (!isWanted || isTerminal(terminal.stdin) || input.isStdinTaken) return draft
  }
  const { text, source } = await readFileOf(io, file ?? '-', file !== undefined)
  if (file === undefined && text.trim() === '') return draft
  const inputs = splitBodies(definition, text).map((body) => parseBody(body, source))
  await createUnknownNotice(terminal, definition)(inputs)
  if (inputs.length < 2) return { ...draft, inputs }
  return { ...draft, inputs, names: inputs.map((_, at) => `body ${at + 1}`) }
}

async function readFileOf({ input }: InputIo, path: string, isFlag = path !== '-') {
  const source = path === '-' ? 'standard input' : path
  return { text: await input.readFile(path, isFlag ? '--file' : source), source }
}

/** A body on each line, if the first line is one by itself and more follow. */
function splitBodies({ success }: RegisteredOperation, text: string): string[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const isMany = success === 201 && lines.length > 1 && /\}\s*$/.test(lines[0]!) && /^\s*\{/.test(lines[1]!)
  return isMany ? lines : [text]
}

function parseBody(text: string, source: string): OperationInput {
  const body = parseJson(text, { source })
  if (isObject(body)) return body
  throw new CofferError('validation', `${source} must contain one JSON object.`)
}

/** Puts the values of flags, and arguments without a flag, into each input. */
function mergeFlags(draft: Draft, { clock }: InputIo): Draft {
  const { definition, flags, args, texts } = draft
  const { positionals, sentBody } = definition
  const named = positionals.flatMap((name, at) =>
    args[at] === undefined || flags.some(({ property }) => property === name) ? [] : [[name, args[at]]],
  )
  return eachInput(draft, (body) => {
    const sent: Record<string, unknown> = { ...body }
    for (const flag of flags) {
      const given = texts[flag.property]
      if (given === undefined) continue
      const value =
        typeof given === 'boolean' ? given : readFlag({ ...flag, isText: isTextOf(flag, sent) }, given)
      sent[flag.property] = readMoment(flag.schema, value, clock)
    }
    const whole = sentBody === undefined ? {} : { [sentBody]: { ...sent } }
    return { ...sent, ...whole, ...Object.fromEntries(named) }
  })
}

/** The date that a duration stands for, where the schema takes one. */
function readMoment({ duration }: Schema, value: unknown, clock: () => number): unknown {
  const ms = duration === undefined || typeof value !== 'string' ? undefined : parseDuration(value)
  return ms === undefined ? value : formatDate(clock() + (duration === 'ahead' ? ms : -ms))
}

/** Makes paths absolute, because a server that performs the operation has another current directory. */
function resolvePaths(draft: Draft, { cwd }: InputIo): Draft {
  const properties: Readonly<Record<string, Schema>> = draft.definition.input.properties ?? {}
  const paths = Object.entries(properties).filter(([, schema]) => schema.type === 'string' && schema.isPath)
  return eachInput(draft, (input) => {
    const given = paths.filter(([name]) => typeof input[name] === 'string' && input[name] !== '')
    const absolute = given.map(([name]) => [name, resolve(cwd, input[name] as string)])
    return { ...input, ...Object.fromEntries(absolute) }
  })
}

/** Asks for what each input lacks. @throws CofferError `usage` where nobody can be asked */
async function askMissing(draft: Draft, { form }: InputIo): Promise<Draft> {
  const { definition, flags } = draft
  const inputs: OperationInput[] = []
  for (const input of draft.inputs) {
    const missing = flags.filter(({ isRequired, property }) => isRequired && input[property] === undefined)
    if (missing.length > 0 && form === undefined) {
      const names = missing.map(({ name }) => name).join(', ')
      const which = missing.length === 1 ? 'it' : 'them'
      throw usage(`Missing: ${names}. Give ${which} as flags, as --file, or as JSON on standard input.`)
    }
    if (definition.contentType !== undefined && flags.every(({ property }) => input[property] === undefined))
      throw usage('Nothing to change. Give changes as flags, as --file, or as JSON on standard input.')
    inputs.push(form === undefined ? input : await form.complete(input, missing))
  }
  return { ...draft, inputs }
}

/** Makes an input of each id. */
function spreadIds(draft: Draft): Draft {
  const { ids, inputs } = draft
  if (ids === undefined) return draft
  return { ...draft, inputs: ids.all.map((id) => ({ ...inputs[0], [ids.property]: id })), names: ids.all }
}

/** Replaces names by the ids that they stand for. */
async function findIds(draft: Draft, { list }: InputIo): Promise<Draft> {
  if (list === undefined) return draft
  const inputs: OperationInput[] = []
  for (const input of draft.inputs)
    inputs.push(await resolveNames(draft.definition.input.properties ?? {}, input, list))
  return { ...draft, inputs }
}
