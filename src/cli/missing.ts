/** Names what does not exist: errors for people have the noun, the id that was given, and a command that lists the ids. */
import { isKey } from '../domain/text/base58.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { isShortId, SHORT_LENGTH } from '../domain/token/short-id.js'
import { CofferError } from '../errors.js'
import type { OperationInput } from '../framework/context.js'
import type { RegisteredOperation } from '../framework/registry.js'
import { loadOperation } from '../operations/load.js'
import type { CommandContext } from './context.js'
import { display, truncate } from './output/display.js'

/** Columns of an id in a message. */
const MAX_COLUMNS = 60
/**
 * By the name that messages of operations give to a record: the noun of its commands, and the command that lists such
 * records. Without a row here they are the name itself, and the `list` of the noun.
 */
const KINDS: Readonly<Record<string, { readonly noun?: string; readonly list?: string }>> = {
  application: { noun: 'app' },
  delivery: { list: 'webhook deliveries' },
  fork: { list: 'control fork list' },
  invitation: { noun: 'invite' },
  key: { noun: 'app key' },
  mail: { list: 'invite outbox' },
  snapshot: { list: 'control snapshot list' },
  'token intent': { noun: 'intent' },
}
/** The start of a message of an operation. It has no id, because an API repeats no input. A server sends it as it is. */
const MISSING = /^(There is|.* has) no ([a-z ]+?) with this (?:id|key or id|name)(?=[,.])/
/** The message about two tokens of which none is the parent of the other. */
const UNLINKED = /^These tokens(?= are not linked\.$)/
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/** As many digits as the number of a card or a person, which somebody may have given instead of an id. */
const NUMBER = /(?:\d[ -]?){9}/

interface Asked {
  readonly context: Pick<CommandContext, 'config'>
  readonly definition: RegisteredOperation
  readonly input: Readonly<OperationInput>
}

/**
 * The error to report instead of `error`: `error` itself if it is not about something missing, or if JSON was asked for.
 * `id`: what the command looked for, if the input does not have it.
 */
export async function explainMissing(asked: Asked, error: unknown, id?: string): Promise<unknown> {
  const { definition, input } = asked
  const { output } = asked.context.config
  if (output === 'json' || output === 'ndjson' || !(error instanceof CofferError)) return error
  if (UNLINKED.test(error.message)) return explainUnlinked(asked, error)
  const [start, subject, kind = ''] = (error.code === 'not_found' && MISSING.exec(error.message)) || []
  if (start === undefined) return error
  const { noun = kind, list = `${noun} list` } = KINDS[kind] ?? {}
  const ids = id === undefined ? findIds(definition, input, noun) : [id]
  const none = subject === 'There is' ? `No ${noun}` : `${subject} no ${kind}`
  const what = ids.length > 0 && ids.every(isShowable) ? describeIds(none, ids) : start
  const rest = error.message.slice(start.length)
  const advice = rest.includes('coffer ') ? '' : ` ${await describeAdvice(asked, list, ids)}`
  return new CofferError('not_found', `${what}${rest}${advice}`, { cause: error })
}

function explainUnlinked({ definition, input }: Asked, error: CofferError): CofferError {
  const ids = findIds(definition, input, 'token')
  if (!ids.every(isShowable)) return error
  const what = error.message.replace(UNLINKED, `The tokens ${ids.map(quote).join(' and ')}`)
  return new CofferError('not_found', `${what} See: coffer token children --help`, { cause: error })
}

/** A name that nothing has, with the name that was probably meant. */
export function describeMisspelled(noun: string, given: string, near: string): string {
  // The keys of an application are listed by its name.
  const list = noun.includes(' ') ? '' : ` List them: coffer ${noun} list`
  return `${describeIds(`No ${noun}`, [given])}. Did you mean "${near}"?${list}`
}

function describeIds(none: string, ids: readonly string[]): string {
  const shown = ids.map(quote).join(', ')
  return ids.length === 1 ? `${none} ${shown}` : `${none} with one of these ids: ${shown}`
}

function quote(id: string): string {
  return `"${truncate(display(id), MAX_COLUMNS)}"`
}

/** The ids of things of the noun that a command was given, else its last argument. */
function findIds({ input: schema, positionals }: RegisteredOperation, input: OperationInput, noun: string) {
  const { properties = {} } = schema
  const isText = (value: unknown) => typeof value === 'string'
  const ofNoun = Object.keys(input).filter((name) => properties[name]?.refersTo === noun)
  const found = ofNoun.map((name) => input[name]).filter(isText)
  const last = positionals.map((name) => input[name]).findLast(isText)
  return found.length > 0 || last === undefined ? found : [last]
}

async function describeAdvice(
  { definition, input }: Asked,
  lister: string,
  ids: readonly string[],
): Promise<string> {
  const isShort = ids.some((id) => id.length < SHORT_LENGTH && isShortId(id.padEnd(SHORT_LENGTH, '0')))
  const isCut = lister === 'token list' && isShort
  const begin = isCut ? `The beginning of an id has at least ${SHORT_LENGTH} characters. ` : ''
  const list = await loadOperation(lister)
  if (list === undefined) return `${begin}See: coffer ${definition.name} --help`
  // The keys of an application are listed for it.
  const { positionals, input: schema } = list
  const within = positionals
    .filter((name) => schema.required?.includes(name))
    .map((name) => input[name])
    .filter((value) => typeof value === 'string')
  return `${begin}List them: ${['coffer', list.name, ...within.map(quoteWord)].map(display).join(' ')}`
}

/** Whether the id may be repeated: it is neither a number of a card or a person, nor an API key. */
function isShowable(id: string): boolean {
  return UUID.test(id) || !(NUMBER.test(id) || isKey(id.slice(id.lastIndexOf('_') + 1)))
}
