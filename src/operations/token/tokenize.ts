import { Budget, checkOutputs, ITEM_OF_BATCH_STEPS } from '../../domain/expression/budget.js'
import { findTexts, joinPath } from '../../domain/json/find-texts.js'
import { collectBelow, isFull, refuseErrors } from '../../domain/property-errors.js'
import { createDraw, generateData } from '../../domain/token/synthetic.js'
import { isGiven } from '../../domain/token/token.js'
import { type PropertyErrors, validationError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { type CheckTools, requires } from '../../framework/declaration.js'
import { showTo } from '../../framework/no-reveal.js'
import { change, detached } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { anyJson, arrayOf } from '../../framework/output.js'
import { closedInput, inputSchema } from '../../framework/schema.js'
import { checkNewToken, type NewToken } from './check-token.js'
import { createToken } from './create-token.js'
import { CREATED, type TokenView, tokenOutput, valueAttributes, viewWritten } from './token-attributes.js'

const MAX_TOKENS = 1000
const GENERATED_AT_ONCE = 100

/** `path`: the place of the token request in the document. */
type DraftAt = readonly [path: string, draft: NewToken]

export const tokenize = change({
  name: 'token tokenize',
  summary: 'Replace every value of a JSON document by a token.',
  details:
    'An object with token_intent_id, or with type and either data or encrypted, is a token request. The new token replaces\n' +
    'the object. Every other string, number and boolean is replaced by the id of a new token. If one token is refused, no\n' +
    'token is created. At most 1,000 tokens.',
  access: requires('token:create'),
  route: 'POST /tokenize',
  http: { body: { whole: 'payload' } },
  input: inputSchema(['payload'], {
    payload: { nullable: true, sensitive: true, description: 'The document: any JSON.' },
  }),
  output: anyJson('The body with every value replaced by its token or the id of its token.'),
  isExplainable: true,
  examples: [
    `echo '{"name":"Ada","card":{"type":"card","data":{"number":"4242424242424242"}}}' | coffer token tokenize`,
  ],
  log: CREATED,
  check: ({ payload = null }, tools) => checkPayload(payload, tools),
  async run(context, { payload }, drafts) {
    const tokens = (await createAll(context, drafts)).values()
    return replaceValues(payload, '', () => tokens.next().value!)
  },
})

export const generateTokens = detached({
  name: 'token generate',
  summary: 'Create tokens in the vault with synthetic data, for tests and demonstrations.',
  details:
    'The data is valid, belongs to nobody (test ranges of card numbers, reserved phone numbers and domains), and is the\nsame for the same --seed. The ids are random.',
  access: requires('token:create'),
  input: closedInput([], {
    type: { ...valueAttributes.type, default: 'token' },
    count: { type: 'integer', minimum: 1, maximum: 10_000, default: 1, description: 'At most 10,000.' },
    seed: { type: 'integer', default: 1, description: 'Different seeds give different data.' },
  }),
  output: arrayOf(tokenOutput),
  examples: ['coffer token generate --type card --count 5', 'coffer token generate --count 3 --seed 7'],
  log: CREATED,
  async run(session, { type = 'token', count = 1, seed = 1 }) {
    const draw = createDraw(`${type}/${seed}`)
    // A unit of work may run again after a conflict, and must then use the same data.
    const drawn = Array.from({ length: count }, () => generateData(type, draw))
    const views: TokenView[] = []
    while (views.length < count) {
      const some = drawn.slice(views.length, views.length + GENERATED_AT_ONCE)
      const create = async (context: Context) => {
        const { expressions, turns, now } = context
        const tools = { expressions, turns, now: async () => now }
        const drafts: DraftAt[] = []
        for (const data of some) drafts.push(['', await checkNewToken({ type, data }, tools)])
        return createAll(context, drafts)
      }
      views.push(...(await session.inUnit(create)))
    }
    return views
  },
})

async function createAll(context: Context, drafts: readonly DraftAt[]): Promise<TokenView[]> {
  const created: TokenView[] = []
  const errors: PropertyErrors = {}
  for (const [path, draft] of drafts) {
    if (context.turns.use(ITEM_OF_BATCH_STEPS)) await context.turns.next()
    const token = await collectBelow(errors, path, () => createToken(context, draft, viewWritten))
    refuseErrors(errors)
    // `perform` cannot apply no-reveal mode, because the output schema of `tokenize` allows any JSON.
    created.push(showTo(context.caller, tokenOutput, token instanceof Existing ? token.result : token!))
  }
  return created
}

/** Returns the token requests of the payload, in order. @throws CofferError `validation`, `too_much_work` */
async function checkPayload(payload: unknown, tools: CheckTools): Promise<DraftAt[]> {
  const requests: [path: string, request: Record<string, unknown>][] = []
  replaceValues(payload, '', (request, path) => {
    if (requests.push([path, request]) > MAX_TOKENS)
      throw validationError(`At most ${MAX_TOKENS.toLocaleString('en')} tokens can be created at once.`)
    return {}
  })
  const texts = requests.map(
    ([, { id, mask, fingerprint_expression: fingerprint, search_indexes: searched }]) =>
      findTexts([id, mask, fingerprint, searched], ''),
  )
  checkOutputs(texts.flatMap((found) => [...found.keys()]))
  const budget = new Budget(tools.turns)
  const drafts: DraftAt[] = []
  const errors: PropertyErrors = {}
  for (const [path, request] of requests) {
    if (isFull(errors)) break
    if (tools.turns.use(ITEM_OF_BATCH_STEPS)) await tools.turns.next()
    const draft = await collectBelow(errors, path, () => checkNewToken(request, tools, budget))
    if (draft !== undefined) drafts.push([path, draft])
  }
  refuseErrors(errors)
  return drafts
}

function isTokenRequest(value: object): value is Record<string, unknown> {
  const { token_intent_id: intent, encrypted } = value as Record<string, unknown>
  const hasData = Object.hasOwn(value, 'data') || isGiven(encrypted)
  return (Object.hasOwn(value, 'type') && hasData) || isGiven(intent)
}

type Replace = (request: Record<string, unknown>, path: string) => { id?: string }

/**
 * Copies the payload and replaces its values. `path`: the path for error messages, such as `card.data.number` or
 * `[2]`.
 */
function replaceValues(value: unknown, path: string, replace: Replace): unknown {
  if (value === null) return null
  if (typeof value !== 'object') return replace({ type: 'token', data: value }, path).id
  if (Array.isArray(value))
    return value.map((item, index) => replaceValues(item, joinPath(path, index), replace))
  if (isTokenRequest(value)) return replace(value, path)
  const members = Object.entries(value)
  return Object.fromEntries(
    members.map(([name, item]) => [name, replaceValues(item, joinPath(path, name), replace)]),
  )
}
