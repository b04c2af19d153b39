/** Explains errors about missing records: adds the noun, the given id, and a command that lists the ids. */
import { isKey } from '../domain/text/base58.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { isShortId, SHORT_LENGTH } from '../domain/token/short-id.js'
import { CofferError } from '../errors.js'
import type { OperationInput } from '../framework/context.js'
import type { RegisteredOperation } from '../framework/registry.js'
import { loadOperation } from '../operations/load.js'
import type { CommandContext } from './context.js'
import { display, truncate } from './output/display.js'

const MAX_COLUMNS = 60
/**
 * The keys are the names that messages use for records. `noun`: the noun of the commands, if it differs from the name.
 * `list`: the command that lists the records, if it is not `NOUN list`.
 */
const KINDS: Readonly<Record<string, { readonly noun?: string; readonly list?: string }>> = {
  '3DS session': { noun: '3ds' },
  application: { noun: 'app' },
  delivery: { list: 'webhook deliveries' },
  fork: { list: 'control fork list' },
  invitation: { noun: 'invite' },
  key: { noun: 'app key' },
  merchant: { noun: 'tenant merchant' },
  mail: { list: 'invite outbox' },
  snapshot: { list: 'control snapshot list' },
  template: { noun: 'app template' },
  'token intent': { noun: 'intent' },
}
/**
 * Matches the start of an operation's message. The message does not contain the id, because the API does not repeat
 * input.
 */
const MISSING = /^(There is|.* has) no ([A-Za-z\d ]+?) with this (?:id|key or id|name)(?=[,.])/
const UNLINKED = /^These tokens(?= are not linked\.$)/
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/** Matches nine digits or more, which may be a card number or an identity number. */
const NUMBER = /(?:\d[ -]?){9}/

interface Asked {
  readonly context: Pick<CommandContext, 'config'>
  readonly definition: RegisteredOperation
  readonly input: Readonly<OperationInput>
}

/**
 * Explains an error about a missing record. Returns other errors unchanged. If the output is JSON, returns all errors
 * unchanged. `id`: the id that was looked for, if the input does not contain this id.
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

export function describeMisspelled(noun: string, given: string, near: string): string {
  // `coffer app key list` needs the id of an application, which is not known here.
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
  // Some lists, such as the keys of an application, need an argument.
  const { positionals, input: schema } = list
  const within = positionals
    .filter((name) => schema.required?.includes(name))
    .map((name) => input[name])
    .filter((value) => typeof value === 'string')
  return `${begin}List them: ${['coffer', list.name, ...within.map(quoteWord)].map(display).join(' ')}`
}

/** A message must not show a text that can be a card number, an identity number or an API key. */
function isShowable(id: string): boolean {
  return UUID.test(id) || !(NUMBER.test(id) || isKey(id.slice(id.lastIndexOf('_') + 1)))
}
