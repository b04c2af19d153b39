/** Detokenization: the expressions in an invocation's arguments, replaced by what their tokens hold. */
import { Budget, sizeOf } from '../domain/budget.js'
import type { Expression } from '../domain/expression.js'
import { about } from '../domain/property-errors.js'
import { CofferError, invalid } from '../errors.js'
import type { Context } from './operation.js'
import { reachToken, requireTransform } from './token-access.js'

const MOST_TOKENS = 100

/** An expression, and where it stands: `args.card.number`. */
interface Found {
  path: string
  expression: Expression
}

/**
 * A copy of `args` with the data of tokens in the place of expressions. Data is not looked through for further ones.
 * Each token is noted as used, once.
 * @throws CofferError `validation` for a bad expression, an unknown token or too many; `forbidden`
 */
export async function detokenize(context: Context, args: Readonly<Record<string, unknown>>) {
  const found = new Map<string, Found>()
  await findExpressions(context, args, 'args', found)
  if (found.size === 0) return args
  const tokens = await readTokens(context, [...found.values()])
  const budget = new Budget(sizeOf(args) + sizeOf(Object.fromEntries(tokens)))
  return replace(args, (text) => {
    const { path, expression } = found.get(text)!
    return about(path, () => expression.render({ tokens }, budget))
  }) as Record<string, unknown>
}

/** Every text that holds an expression, by the text: equal texts are the same expression. */
async function findExpressions(
  context: Context,
  value: unknown,
  path: string,
  found: Map<string, Found>,
): Promise<void> {
  if (typeof value === 'string') {
    if (!value.includes('{{') || found.has(value)) return
    found.set(value, { path, expression: await compile(context, value, path) })
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value))
    await findExpressions(
      context,
      inner,
      Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`,
      found,
    )
}

async function compile(context: Context, text: string, path: string): Promise<Expression> {
  const expressions = await context.expressions()
  try {
    return await expressions.compile(text, 'detokenize')
  } catch (error) {
    return about(path, () => {
      throw error
    })
  }
}

/** The data of every token that is named, by its id. */
async function readTokens(context: Context, found: readonly Found[]): Promise<Map<string, unknown>> {
  const paths = new Map<string, string>()
  for (const { path, expression } of found)
    for (const id of expression.references) if (!paths.has(id)) paths.set(id, path)
  if (paths.size > MOST_TOKENS)
    throw new CofferError('validation', `args: At most ${MOST_TOKENS} tokens can be detokenized at once.`, {
      errors: { args: [`name ${paths.size} tokens; at most ${MOST_TOKENS} can be detokenized at once`] },
    })
  const tokens = new Map<string, unknown>()
  for (const [id, path] of paths) {
    const record = await context.store.get('token', context.caller.tenant, id)
    if (record === undefined) throw invalid(path, 'names a token that does not exist')
    requireTransform(context, 'token:use', record.containers)
    await reachToken(context, record, { operation: 'use', message: 'Token used' })
    tokens.set(id, record.data)
  }
  return tokens
}

function replace(value: unknown, render: (text: string) => unknown): unknown {
  if (typeof value === 'string') return value.includes('{{') ? render(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => replace(item, render))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replace(inner, render)]))
}
