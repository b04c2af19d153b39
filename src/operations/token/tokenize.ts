/** Tokenize: replaces the values of a JSON document by tokens. */
import { Budget, checkOutputs } from '../../domain/expression/budget.js'
import { findTexts } from '../../domain/json/find-texts.js'
import { collectBelow, isFull, refuseErrors } from '../../domain/property-errors.js'
import type { TokenDraft } from '../../domain/token/token.js'
import { type PropertyErrors, validationError } from '../../errors.js'
import { type CheckTools, operation } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { anyJson } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { inTurns } from './in-turns.js'
import type { TokenView } from './token-attributes.js'
import { checkNewToken, createFrom } from './token-write.js'

const MOST_TOKENS = 1000
const TOKENS_IN_A_TURN = 50

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
  async run(context, { payload }, drafts) {
    const created: TokenView[] = []
    for await (const draft of inTurns(drafts, TOKENS_IN_A_TURN, context.turns)) {
      const token = await createFrom(context, draft)
      created.push(token instanceof Existing ? token.result : token)
    }
    const tokens = created.values()
    return replaceValues(payload, '', () => tokens.next().value!)
  },
})

/** The token requests of the payload, in order. @throws CofferError `validation`, `too_much_work` */
async function checkPayload(payload: unknown, tools: CheckTools): Promise<TokenDraft[]> {
  const requests: [path: string, request: Record<string, unknown>][] = []
  replaceValues(payload, '', (request, path) => {
    if (requests.push([path, request]) > MOST_TOKENS)
      throw validationError(`At most ${MOST_TOKENS.toLocaleString('en')} tokens can be created at once.`)
    return {}
  })
  checkOutputs(requests.flatMap(([, request]) => [...expressionsOf(request)]))
  const budget = new Budget(tools.turns)
  const drafts: TokenDraft[] = []
  const errors: PropertyErrors = {}
  for await (const [path, request] of inTurns(requests, TOKENS_IN_A_TURN, tools.turns)) {
    if (isFull(errors)) break
    if (budget.isTurnOver) await budget.pause()
    const draft = await collectBelow(errors, path, () => checkNewToken(request, tools, budget))
    if (draft !== undefined) drafts.push(draft)
  }
  refuseErrors(errors)
  return drafts
}

/** Every text of a token request that may be an expression. */
function expressionsOf({ id, mask, fingerprint_expression, search_indexes }: Record<string, unknown>) {
  return findTexts([id, mask, fingerprint_expression, search_indexes], '', new Map()).keys()
}

function isTokenRequest(value: object): value is Record<string, unknown> {
  return Object.hasOwn(value, 'type') && Object.hasOwn(value, 'data')
}

/** Returns the replacement of a token request; a plain value is replaced by its `id`. */
type Replace = (request: Record<string, unknown>, path: string) => { id?: string }

/** A copy of the payload. `path` is the path in error messages: `card.data.number`, `[2]`. */
function replaceValues(value: unknown, path: string, replace: Replace): unknown {
  if (value === null) return null
  if (typeof value !== 'object') return replace({ type: 'token', data: value }, path).id
  if (Array.isArray(value))
    return value.map((item, index) => replaceValues(item, `${path}[${index}]`, replace))
  if (isTokenRequest(value)) return replace(value, path)
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      replaceValues(item, path === '' ? name : `${path}.${name}`, replace),
    ]),
  )
}
