/** Detokenization: replaces the expressions in an invocation's arguments by the data of their tokens. */
import { Budget, sizeOf } from '../../domain/expression/budget.js'
import type { Expression } from '../../domain/expression/expression.js'
import { addError, collect, collectLater, isFull, refuseErrors } from '../../domain/property-errors.js'
import type { TokenRecord } from '../../domain/records.js'
import { invalid, type PropertyErrors } from '../../errors.js'
import type { CheckTools, Context } from '../../framework/operation.js'
import { reachToken, requireTransform } from '../token/token-access.js'

const MOST_TOKENS = 100
/** Approximate limit of the detokenized arguments in characters; they are sent to the child process in one message. */
const MOST_SIZE = 16 * 1024 * 1024

/** An expression and its path: `args.card.number`. */
interface Found {
  path: string
  expression: Expression
}

/** The expressions in an invocation's arguments, by their text. */
export type FoundExpressions = ReadonlyMap<string, Found>

/**
 * Compiles every expression in `args`; reads no token.
 * @throws CofferError `validation` for each invalid expression, and for too many tokens
 */
export async function findExpressions(args: unknown, tools: CheckTools): Promise<FoundExpressions> {
  const errors: PropertyErrors = {}
  const found = new Map<string, Found>()
  for (const [text, path] of findTexts(args, 'args', new Map())) {
    if (isFull(errors)) break
    const expressions = await tools.expressions()
    const expression = await collectLater(errors, path, () => expressions.compile(text, 'detokenize'))
    if (expression !== undefined) found.set(text, { path, expression })
  }
  const { size } = pathsOfTokens(found)
  if (size > MOST_TOKENS)
    addError(errors, 'args', `refer to ${size} tokens; at most ${MOST_TOKENS} can be detokenized at once`)
  refuseErrors(errors)
  return found
}

/**
 * A copy of `args` with the expressions in `found` evaluated. Expressions inside token data are not evaluated. Logs one
 * use of each token.
 * @throws CofferError `validation` for unknown tokens and for expressions that fail; `forbidden`
 */
export async function detokenize(
  context: Context,
  args: Readonly<Record<string, unknown>>,
  found: FoundExpressions,
) {
  if (found.size === 0) return args
  const tokens = await readTokens(context, found)
  const budget = new Budget(sizeOf(args) + sizeOf(Object.fromEntries(tokens)))
  const errors: PropertyErrors = {}
  const detokenized = replace(args, (text) => {
    const { path, expression } = found.get(text)!
    return collect(errors, path, () => expression.render({ tokens }, budget))
  })
  refuseErrors(errors)
  requireSize(sizeOf(detokenized))
  return detokenized as Record<string, unknown>
}

function requireSize(size: number): void {
  if (size > MOST_SIZE) throw invalid('args', 'are larger than 16 MiB with the data of their tokens')
}

/** Every text with an expression, and the path of its first occurrence. */
function findTexts(value: unknown, path: string, found: Map<string, string>): Map<string, string> {
  if (typeof value === 'string' && value.includes('{{') && !found.has(value)) found.set(value, path)
  if (typeof value !== 'object' || value === null) return found
  for (const [name, inner] of Object.entries(value))
    findTexts(inner, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`, found)
  return found
}

/** Every referenced token id, and the path of its first occurrence. */
function pathsOfTokens(found: FoundExpressions): Map<string, string> {
  const paths = new Map<string, string>()
  for (const { path, expression } of found.values())
    for (const id of expression.references) if (!paths.has(id)) paths.set(id, path)
  return paths
}

/** The data of every referenced token, by its id. */
async function readTokens(context: Context, found: FoundExpressions): Promise<Map<string, unknown>> {
  const errors: PropertyErrors = {}
  const records: TokenRecord[] = []
  let size = 0
  for (const [id, path] of pathsOfTokens(found)) {
    const record = await context.store.get('token', context.caller.tenant, id)
    if (record === undefined) addError(errors, path, 'refers to a token that does not exist')
    else records.push(record)
    size += sizeOf(record?.data)
    requireSize(size)
  }
  refuseErrors(errors)
  const tokens = new Map<string, unknown>()
  for (const record of records) {
    requireTransform(context, 'token:use', record.containers)
    await reachToken(context, record, { operation: 'use', message: 'Token used' })
    tokens.set(record.id, record.data)
  }
  return tokens
}

function replace(value: unknown, render: (text: string) => unknown): unknown {
  if (typeof value === 'string') return value.includes('{{') ? render(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => replace(item, render))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replace(inner, render)]))
}
