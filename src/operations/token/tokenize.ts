/** Tokenize: replaces the values of a JSON document by tokens. */
import { collectBelow, isFull, refuseErrors } from '../../domain/property-errors.js'
import type { TokenDraft } from '../../domain/token/token.js'
import { type PropertyErrors, validationError } from '../../errors.js'
import { type CheckTools, operation } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { anyJson } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { checkNewToken, createFrom } from './token-write.js'

const MOST_TOKENS = 1000

export const tokenize = operation({
  name: 'token tokenize',
  summary: 'Replace every value of a JSON document by a token.',
  details:
    'An object with type and data is a token request and is replaced by its token; every other string, number and\n' +
    'boolean is replaced by the id of a new token. Either all tokens are created or none; at most 1,000.',
  permissions: ['token:create'],
  route: 'POST /tokenize',
  wholeBody: 'payload',
  input: inputSchema(['payload'], {
    payload: { nullable: true, sensitive: true, description: 'The document: any JSON.' },
  }),
  output: anyJson('The body with every value replaced by its token or the id of its token.'),
  isExplainable: true,
  examples: [
    `echo '{"name":"Ada","card":{"type":"card","data":{"number":"4242424242424242"}}}' | coffer token tokenize`,
  ],
  log: { operation: 'create', message: 'Token created' },
  check: ({ payload = null }, tools) => checkPayload(payload, tools),
  run: (context, { payload }, drafts) => {
    const left = drafts.values()
    return replaceValues(payload, '', async () => {
      const created = await createFrom(context, left.next().value!)
      return created instanceof Existing ? created.result : created
    })
  },
})

/** The token requests of the payload, in order. @throws CofferError `validation` */
async function checkPayload(payload: unknown, tools: CheckTools): Promise<TokenDraft[]> {
  if (countTokens(payload) > MOST_TOKENS)
    throw validationError(`At most ${MOST_TOKENS.toLocaleString('en')} tokens can be created at once.`)
  const drafts: TokenDraft[] = []
  const errors: PropertyErrors = {}
  await replaceValues(payload, '', async (request, path) => {
    if (isFull(errors)) refuseErrors(errors)
    const draft = await collectBelow(errors, path, () => checkNewToken(request, tools))
    if (draft !== undefined) drafts.push(draft)
    return {}
  })
  refuseErrors(errors)
  return drafts
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

/** Returns the replacement of a token request; a plain value is replaced by its `id`. */
type Replace = (request: Record<string, unknown>, path: string) => Promise<{ id?: string }>

/** `path` is the path in error messages: `card.data.number`, `[2]`. */
async function replaceValues(value: unknown, path: string, replace: Replace): Promise<unknown> {
  if (value === null) return null
  if (typeof value !== 'object') return (await replace({ type: 'token', data: value }, path)).id
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const [index, item] of value.entries())
      items.push(await replaceValues(item, `${path}[${index}]`, replace))
    return items
  }
  if (isTokenRequest(value)) return replace(value, path)
  const entries: [string, unknown][] = []
  for (const [name, item] of Object.entries(value))
    entries.push([name, await replaceValues(item, path === '' ? name : `${path}.${name}`, replace)])
  return Object.fromEntries(entries)
}
