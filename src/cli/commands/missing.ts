/** Advice for a person whose command found no record. */
import { isShortId, SHORT_LENGTH } from '../../domain/token/short-id.js'
import { CofferError } from '../../errors.js'
import type { Task } from '../task.js'

/** The nouns of records that have another name in commands. */
const NOUNS: Readonly<Record<string, string>> = { application: 'app', invitation: 'invite' }

/** The error, with where to look. It does not repeat the id, for which somebody may have given a number of a card. */
export function explainMissing({ definition, input }: Task, error: unknown): unknown {
  if (!(error instanceof CofferError) || error.code !== 'not_found') return error
  const [, kind = ''] = /^There is no (\w+) with this id\.$/.exec(error.message) ?? []
  const noun = NOUNS[kind] ?? kind
  const { properties = {} } = definition.input
  const ids = Object.entries(input).flatMap(([name, id]) =>
    properties[name]?.refersTo === noun && typeof id === 'string' ? [id] : [],
  )
  if (ids.length === 0) return error
  const isShort = ids.some((id) => id.length < SHORT_LENGTH && isShortId(id.padEnd(SHORT_LENGTH, '0')))
  const isCut = noun === 'token' && isShort
  const advice = isCut ? ` The beginning of an id has at least ${SHORT_LENGTH} characters.` : ''
  return new CofferError('not_found', `${error.message}${advice} List them: coffer ${noun} list`, {
    cause: error,
  })
}
