/** Builds the input of an operation from arguments, flags, `--file`, JSON on standard input and prompts. */
import { resolve } from 'node:path'
import { formatDate, parseDuration } from '../../domain/dates.js'
import { isObject, parseJson } from '../../domain/json/json.js'
import { CofferError, usage } from '../../errors.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import type { Schema } from '../../framework/schema.js'
import type { CommandContext } from '../context/context.js'
import type { Options, Words } from '../context/task.js'
import { printNotice, printWarning } from '../output/output.js'
import { isTerminal } from '../output/terminal.js'
import type { Form } from './form.js'
import { type InputReader, isSource } from './input.js'
import { type Flag, isTextOf, listFlags, readFlag, takesBody } from './options.js'
import { createUnknownNotice } from './unknown.js'

/** `form` asks for what is missing; it is absent where prompts are not possible. */
type GatheringContext = Pick<CommandContext, 'terminal' | 'input' | 'cwd' | 'clock'> & {
  readonly form?: Form | undefined
}

/**
 * The input of an operation; several, where one that creates was given a body on each line, with the same flags for all.
 * Flags override the body in a file or on standard input, and positional arguments override both.
 * @throws CofferError `usage` naming missing and invalid flags
 */
export async function gatherInputs(
  context: GatheringContext,
  definition: RegisteredOperation,
  words: Words,
  given: Options,
): Promise<Record<string, unknown>[]> {
  const { input } = context
  const flags = listFlags(definition)
  const { positionals, wholeBody, sentBody } = definition
  const options = { ...given, ...readWords(flags, positionals, words, given) }
  await noteWaiting(context, flags, options)
  await warnOfExposed(context, flags, options)
  const contents = await readContents(input, flags, options)
  const bodies = await readBodies(context, input, definition, contents, options)
  const isDocument = wholeBody !== undefined && contents[wholeBody] === undefined
  const source = typeof options.file === 'string' ? options.file : '-'
  const document = isDocument ? { [wholeBody]: await readDocument(context, source) } : {}
  const named = positionals.flatMap((name, at) =>
    words[at] === undefined || flags.some(({ property }) => property === name) ? [] : [[name, words[at]]],
  )
  const inputs: Record<string, unknown>[] = []
  await createUnknownNotice(context.terminal, definition)(bodies)
  for (const body of bodies) {
    const sent = { ...body, ...document, ...readValues(flags, contents, body, context.clock) }
    const whole = sentBody === undefined ? {} : { [sentBody]: sent }
    const merged = { ...sent, ...whole, ...Object.fromEntries(named) }
    inputs.push(await completeInput(context, definition, flags, resolvePaths(context, definition, merged)))
  }
  return inputs
}

/** The values of flags that were given as arguments. @throws CofferError `usage` for one given twice */
function readWords(flags: readonly Flag[], positionals: readonly string[], words: Words, options: Options) {
  const given = flags.flatMap(({ property, name, key }): [string, string[]][] => {
    const word = words[positionals.indexOf(property)]
    if (word === undefined) return []
    if (options[key] !== undefined) throw usage(`Give ${property} as an argument or as ${name}, not both.`)
    return [[key, [word]]]
  })
  return Object.fromEntries(given)
}

/** Makes paths absolute, because a server that performs the operation has another current directory. */
function resolvePaths(
  { cwd }: GatheringContext,
  { input }: RegisteredOperation,
  values: Record<string, unknown>,
): Record<string, unknown> {
  const isPath = ([name, value]: [string, unknown]) => {
    const schema: Schema | undefined = input.properties?.[name]
    return schema?.type === 'string' && schema.isPath === true && typeof value === 'string' && value !== ''
  }
  const paths = Object.entries(values).filter(isPath)
  const whole = paths.map(([name, path]) => [name, resolve(cwd, path as string)])
  return { ...values, ...Object.fromEntries(whole) }
}

/** The values of flags by property: booleans, or texts with the contents of files. */
type Contents = Readonly<Record<string, boolean | readonly string[]>>

/** Sequential, because standard input can be read once. */
async function readContents(input: InputReader, flags: readonly Flag[], options: Options): Promise<Contents> {
  const contents: Record<string, boolean | readonly string[]> = {}
  for (const flag of flags) {
    const option = options[flag.key] as boolean | readonly string[] | undefined
    if (option === undefined) continue
    contents[flag.property] = typeof option === 'boolean' ? option : await readTexts(input, flag, option)
  }
  return contents
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

function readValues(
  flags: readonly Flag[],
  contents: Contents,
  body: Readonly<Record<string, unknown>>,
  clock: () => number,
): Record<string, unknown> {
  const given: Record<string, unknown> = {}
  for (const flag of flags) {
    const texts = contents[flag.property]
    if (texts === undefined) continue
    const isText = isTextOf(flag, { ...body, ...given })
    const value = typeof texts === 'boolean' ? texts : readFlag({ ...flag, isText }, texts)
    given[flag.property] = readMoment(flag.schema, value, clock)
  }
  return given
}

/** The date that a duration stands for, where the schema takes one. */
function readMoment({ duration }: Schema, value: unknown, clock: () => number): unknown {
  const ms = duration === undefined || typeof value !== 'string' ? undefined : parseDuration(value)
  return ms === undefined ? value : formatDate(clock() + (duration === 'ahead' ? ms : -ms))
}

async function warnOfExposed({ terminal }: GatheringContext, flags: readonly Flag[], options: Options) {
  const exposed = flags.filter((flag) => {
    const texts = options[flag.key]
    const isInClear = (text: string) => !isSource(text.slice(sourceOffset(flag, text)))
    return flag.schema.sensitive && Array.isArray(texts) && texts.some(isInClear)
  })
  if (exposed.length === 0) return
  const names = exposed.map(({ name }) => name)
  const danger = `Other processes can see the arguments of a command (${names.join(', ')}).`
  const advice = `Give a file as ${names[0]} @FILE, or JSON on standard input.`
  await printWarning(terminal, `${danger} ${advice}`)
}

/** Tells that the command reads from the terminal. */
async function noteWaiting({ terminal }: GatheringContext, flags: readonly Flag[], options: Options) {
  const texts = flags.flatMap(({ key }) => (Array.isArray(options[key]) ? (options[key] as string[]) : []))
  const isAsked = options.file === '-' || texts.some((text) => /^(?:[^=]+=)?@?-$/.test(text))
  if (isAsked && isTerminal(terminal.stdin))
    await printNotice(terminal, 'Reading from the terminal; end with Ctrl-D on an empty line.')
}

/**
 * Reads standard input only if it is not a terminal and a required property, or all flags, are missing. Otherwise a
 * command could wait for an input that is never closed.
 */
async function readBodies(
  context: GatheringContext,
  input: InputReader,
  definition: RegisteredOperation,
  given: Contents,
  options: Options,
): Promise<Record<string, unknown>[]> {
  if (!takesBody(definition) || definition.wholeBody !== undefined) return [{}]
  if (typeof options.file === 'string')
    return parseBodies(definition, await input.readFile(options.file, '--file'), options.file)
  const isMissing = listFlags(definition).some(
    ({ isRequired, property }) => isRequired && given[property] === undefined,
  )
  const isWanted = isMissing || Object.keys(given).length === 0
  if (!isWanted || isTerminal(context.terminal.stdin) || input.isStdinTaken) return [{}]
  const text = await input.readFile('-', 'standard input')
  return text.trim() === '' ? [{}] : parseBodies(definition, text, 'standard input')
}

/** A body on each line, if the first line is one by itself and more follow. */
function parseBodies({ success }: RegisteredOperation, text: string, name: string) {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const isMany = success === 201 && lines.length > 1 && /\}\s*$/.test(lines[0]!) && /^\s*\{/.test(lines[1]!)
  return isMany ? lines.map((line) => parseBody(line, name)) : [parseBody(text, name)]
}

/** A body that may be any JSON. */
async function readDocument({ input, terminal }: GatheringContext, source: string): Promise<unknown> {
  if (source === '-' && isTerminal(terminal.stdin))
    throw usage('Give the JSON document on standard input or as --file FILE.')
  const name = source === '-' ? 'standard input' : source
  return parseJson(await input.readFile(source, source === '-' ? name : '--file'), { source: name })
}

function parseBody(text: string, name: string): Record<string, unknown> {
  const source = name === '-' ? 'standard input' : name
  const body = parseJson(text, { source })
  if (isObject(body)) return body
  throw new CofferError('validation', `${source} must contain one JSON object.`)
}

async function completeInput(
  { form }: GatheringContext,
  definition: RegisteredOperation,
  flags: readonly Flag[],
  merged: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const missing = flags.filter(({ isRequired, property }) => isRequired && merged[property] === undefined)
  if (missing.length > 0 && form === undefined) {
    const names = missing.map(({ name }) => name).join(', ')
    throw usage(
      `Missing: ${names}. Give ${missing.length === 1 ? 'it' : 'them'} as flags, as --file, or as JSON on standard input.`,
    )
  }
  if (definition.contentType !== undefined && flags.every(({ property }) => merged[property] === undefined))
    throw usage('Nothing to change. Give changes as flags, as --file, or as JSON on standard input.')
  return form === undefined ? merged : form.complete(merged, missing)
}
