/** Advice for a person whose command found nothing. */
import { quoteWord } from '../../domain/text/quote-word.js'
import { isShortId, SHORT_LENGTH } from '../../domain/token/short-id.js'
import { CofferError } from '../../errors.js'
import type { ResultOf } from '../../operations/all.js'
import { countOf, display } from '../output/display.js'
import type { Task } from '../task.js'

/** The nouns of records that have another name in commands. */
const NOUNS: Readonly<Record<string, string>> = { application: 'app', invitation: 'invite' }
/**
 * The error, with what is near and where to look. It does not repeat the id, for which somebody may have given a number of a
 * card.
 */
export async function explainMissing(task: Task, error: unknown): Promise<unknown> {
  if (!(error instanceof CofferError) || error.code !== 'not_found') return error
  const [, kind] = /^There is no (\w+) with this id\.$/.exec(error.message) ?? []
  if (kind === undefined) return error
  const noun = NOUNS[kind] ?? kind
  const { properties = {} } = task.definition.input
  const ids = Object.keys(task.input).flatMap((name) => {
    const id = task.input[name]
    return properties[name]?.refersTo === noun && typeof id === 'string' ? [id] : []
  })
  const { missing, nearest, tenants } = (noun === 'token' && (await advise(task, ids))) || {
    missing: ids,
    nearest: '',
    tenants: [],
  }
  const [id] = missing
  if (id === undefined) return error
  const isCut = noun === 'token' && id.length < SHORT_LENGTH && isShortId(id.padEnd(SHORT_LENGTH, '0'))
  const advice = [
    tenants.length === 0 ? '' : ` There is one in another tenant: --tenant ${quoteWord(tenants[0]!)}`,
    isCut ? ` The beginning of an id has at least ${SHORT_LENGTH} characters.` : '',
    tenants.length === 0 ? ` List them: coffer ${noun} list` : '',
  ]
  const message = `There is no ${kind} with this id${nearest || '.'}${advice.join('')}`
  return new CofferError('not_found', message, { cause: error })
}

/** Why a list of tokens is empty, and what to do. Undefined for a list that explains itself. */
export async function explainEmpty(task: Task): Promise<string | undefined> {
  const { definition, input, presentation } = task
  if (definition.noun !== 'token' || presentation.empty !== undefined) return undefined
  const advice = await advise(task, [])
  if (advice === undefined) return undefined
  const { tokens, unindexed } = advice
  if (tokens === 0) return 'No tokens yet. Create one: coffer token create --help'
  const { query } = input
  if (unindexed !== undefined && typeof query === 'string' && /\bdata:/.test(query)) {
    const { read, count, id, index } = unindexed
    const without = `${count} of ${read < tokens ? 'the newest ' : ''}${countOf(read, 'token')}`
    const add = `add one: coffer token update ${quoteWord(id)} --search-index ${quoteWord(index)}`
    return `No token matches. Search finds data by search indexes only. Without one: ${without}. For example, to ${display(id)} ${add}`
  }
  return `No token matches. Without filters there are ${tokens}: coffer token list`
}

/** Undefined for an application, which sees only what it may read. */
async function advise({ context, key, askAsOwner }: Task, ids: readonly string[]) {
  if (key !== undefined || context.config.url !== undefined) return undefined
  return (await askAsOwner('vault advise-tokens', { ids })) as ResultOf<'vault advise-tokens'>
}
