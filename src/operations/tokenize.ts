/** Tokenize: any JSON in, the same JSON out with tokens in the place of values. */
import { CofferError } from '../errors.js'
import { type Context, Existing, operation } from './operation.js'
import { createFrom } from './token-write.js'

const MOST_TOKENS = 1000

export const tokenize = operation({
  name: 'token tokenize',
  summary: 'Replace every value of a JSON document by a token.',
  details:
    'An object with type and data is a token request and is replaced by its token; every other text, number and\n' +
    'boolean becomes a token and is replaced by its id. All of them are created, or none. At most 1,000.',
  permissions: ['token:create'],
  route: 'POST /tokenize',
  success: 200,
  wholeBody: 'payload',
  input: {
    type: 'object',
    properties: { payload: { nullable: true, sensitive: true, description: 'The document: any JSON.' } },
    required: ['payload'],
    additionalProperties: true,
  },
  columns: [],
  examples: [
    `echo '{"name":"Ada","card":{"type":"card","data":{"number":"4242424242424242"}}}' | coffer token tokenize`,
  ],
  log: { operation: 'create', message: 'Token created' },
  run: (context, input) => tokenizeValue(context, input.payload),
})

/** Throws before anything is created when there is too much; a failure on the way undoes the whole unit of work. */
export async function tokenizeValue(context: Context, payload: unknown): Promise<unknown> {
  if (countTokens(payload) > MOST_TOKENS) {
    throw new CofferError(
      'validation',
      `At most ${MOST_TOKENS.toLocaleString('en')} tokens can be created at once.`,
    )
  }
  return replaceValues(context, payload, '')
}

function isTokenRequest(value: object): value is Record<string, unknown> {
  return Object.hasOwn(value, 'type') && Object.hasOwn(value, 'data')
}

function countTokens(value: unknown): number {
  if (value === null) return 0
  if (typeof value !== 'object') return 1
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + countTokens(item), 0)
  if (isTokenRequest(value)) return 1
  return Object.values(value).reduce<number>((sum, item) => sum + countTokens(item), 0)
}

/** `path` is how complaints name the place: `card.data.number`, `[2]`. */
async function replaceValues(context: Context, value: unknown, path: string): Promise<unknown> {
  if (value === null) return null
  if (typeof value !== 'object') return (await createAt(context, { type: 'token', data: value }, path)).id
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const [index, item] of value.entries())
      items.push(await replaceValues(context, item, `${path}[${index}]`))
    return items
  }
  if (isTokenRequest(value)) return createAt(context, value, path)
  const entries: [string, unknown][] = []
  for (const [name, item] of Object.entries(value)) {
    entries.push([name, await replaceValues(context, item, path === '' ? name : `${path}.${name}`)])
  }
  return Object.fromEntries(entries)
}

async function createAt(context: Context, request: Record<string, unknown>, path: string) {
  try {
    const created = await createFrom(context, request)
    return created instanceof Existing ? created.result : created
  } catch (error) {
    if (!(error instanceof CofferError) || error.errors === undefined || path === '') throw error
    const errors = Object.entries(error.errors).map(
      ([name, messages]) => [`${path}.${name}`, messages] as const,
    )
    throw new CofferError(error.code, `${path}.${error.message}`, {
      cause: error,
      errors: Object.fromEntries(errors),
    })
  }
}
