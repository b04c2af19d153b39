import { type Permission, stricterTransform, type Transform } from '../../domain/access/permissions.js'
import { Budget, checkOutputs, sizeOf } from '../../domain/expression/budget.js'
import type {
  Expression,
  ExpressionUse,
  RecordKind,
  Reference,
  Scope,
} from '../../domain/expression/expression.js'
import { findTexts, listTexts, replaceTexts } from '../../domain/json/find-texts.js'
import { addError, collect, collectLater, isFull, refuseErrors } from '../../domain/property-errors.js'
import type { Secrets } from '../../domain/text/secrets.js'
import { type CofferError, invalid, noRevealError, type PropertyErrors } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { type CheckTools, type LogEntry, requires } from '../../framework/declaration.js'
import { showTo } from '../../framework/no-reveal.js'
import { query } from '../../framework/operation.js'
import { anyJson } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { RECORDS } from './expression-records.js'
import { logTokenUse, notGranted } from './token-access.js'
import { type FoundRecord, READ, readDeclaration, type UsedRecord, viewToken } from './token-attributes.js'

const MAX_TOKENS = 100
/**
 * The approximate limit for the result, in characters. The limit is needed because the arguments of a reactor are sent
 * to its process in one message.
 */
const MAX_SIZE = 16 * 1024 * 1024

export type FoundExpressions = Awaited<ReturnType<typeof findExpressions>>

interface Access {
  permission: Permission
  /** The log entry for each used token. Undefined if the calling function logs the uses later (see `reached`). */
  log?: LogEntry
  reached?(record: UsedRecord): void
  /** By default, each place with an unknown token gets an error. */
  unknownError?(ids: readonly string[], errors: PropertyErrors): CofferError
  /** `value`: the value of `{{ encrypted }}`. Undefined if the request lacks the header. `header`: the name of the header. */
  encrypted?: { header: string; value: unknown }
  /** The values of `{{ config: name }}`. */
  configuration?: Readonly<Record<string, unknown>> | undefined
  /** The name of the whole document in error messages. */
  whole: string
  /** If set, this transform is used instead of the transform in the access rule. */
  transform?: Transform
}

/**
 * In no-reveal mode, expressions must insert whole values. A filter, or a path with a condition, could reveal
 * parts of a value.
 */
const WHOLE_VALUE =
  /\{\{\s*(?:[a-z_]+:)?[^{}|,:"']+(?:\|\s*json:\s*(?:"\$(?:\.[\w-]+|\[\d+\]|\['[\w -]+'\])*"|'\$(?:\.[\w-]+|\[\d+\])*')\s*)?\}\}/g

/** Code gets the plaintext of tokens, whatever the transform in the access rule is. */
export const USE = {
  permission: 'token:use',
  log: { operation: 'use', message: 'Token used' },
  whole: 'args',
  transform: 'reveal',
} as const satisfies Access
const SHOW = { permission: 'token:read', log: READ, whole: 'payload' } as const satisfies Access

/** Adds the data of a token to `secrets`, except values that the mask shows to the caller. */
export function addSecret(secrets: Secrets, { caller }: Context, record: UsedRecord): void {
  const shown = caller.transform('token:read', record) ?? 'redact'
  secrets.add(record.data, viewToken(record, stricterTransform('mask', shown)).data)
}

export const detokenizeTokens = query({
  ...readDeclaration,
  name: 'token detokenize',
  plaintext: 'refused',
  summary: 'Replace every expression in a JSON document by the data of its token.',
  details:
    '{{ token id }} stands for the data of the token, {{ token: token id }} for the whole token, {{ token_intent: id }} for a\n' +
    'token intent with its data, {{ network_token: id }} for a network token, and {{ google_pay: id }} or\n' +
    '{{ apple_pay: id }} for a card of a wallet. Filters may follow.\n' +
    'If an expression is a whole string, its value keeps its JSON type. Inside other text, the value becomes text. Data is\n' +
    'masked or redacted as by `coffer token get`. If the data is redacted, the value is null.\n' +
    'At most 100 tokens, token intents, network tokens and cards of wallets together.',
  access: requires('token:read'),
  route: 'POST /detokenize',
  http: { ignoresIdempotencyKey: true, body: { whole: 'payload' } },
  input: inputSchema(['payload'], {
    payload: { nullable: true, sensitive: true, description: 'The document: any JSON.' },
  }),
  output: anyJson('The body with every expression replaced.'),
  examples: [
    `echo '{"card":"{{ card-1 }}","text":"Dear {{ ada | json: \\"$.name\\" }}"}' | coffer token detokenize --reveal`,
  ],
  check: ({ payload }, tools) => findExpressions(payload, tools, SHOW),
  run: (context, { payload }, found) => detokenize(context, payload, found, SHOW),
})

interface Search {
  whole?: string
  most?: number
  /** Maps each text in the document to the path that error messages contain. */
  places?: ReadonlyMap<string, string>
  useOf?(path: string): ExpressionUse
}

export async function findExpressions(
  document: unknown,
  tools: Pick<CheckTools, 'expressions' | 'turns'>,
  {
    whole = USE.whole,
    most = MAX_TOKENS,
    places = findTexts(document, ''),
    useOf = () => 'detokenize',
  }: Search = {},
) {
  checkOutputs(places.keys())
  const budget = new Budget(tools.turns)
  const errors: PropertyErrors = {}
  const byText = new Map<string, { path: string; expression: Expression }>()
  const tokens = new Set<Reference>()
  for (const [text, at] of places) {
    // Compiling all expressions could take seconds, so this loop stops at the first limit.
    if (isFull(errors) || tokens.size > most) break
    const path = at || whole
    const expressions = await tools.expressions()
    const expression = await collectLater(errors, path, () => expressions.compile(text, useOf(at), budget))
    if (expression === undefined) continue
    byText.set(text, { path, expression })
    for (const id of expression.references) if (!/^(?:config|encrypted):/.test(id)) tokens.add(id)
  }
  if (tokens.size > most)
    addError(errors, whole, `refers to more than ${most} tokens; at most ${most} can be detokenized at once`)
  refuseErrors(errors)
  return { byText, budget }
}

/**
 * Replaces the expressions of the document by the data of tokens. Expressions inside this data are not replaced.
 * @throws CofferError `validation`, `forbidden`, `too_much_work`
 */
export async function detokenize<T>(
  context: Context,
  document: T,
  found: FoundExpressions,
  access: Access = USE,
): Promise<T> {
  if (found.byText.size === 0) return document
  return render(document, found, { tokens: await readTokens(context, found, access) }, access.whole)
}

/**
 * Copies the document and replaces its expressions by their values.
 * @throws CofferError `validation`, `too_much_work`
 */
export async function render<T>(
  document: T,
  { byText, budget }: FoundExpressions,
  scope: Scope,
  whole: string,
): Promise<T> {
  const errors: PropertyErrors = {}
  const values: unknown[] = []
  for (const text of listTexts(document)) {
    if (budget.turns.isOver) await budget.turns.next()
    const { path, expression } = byText.get(text)!
    values.push(collect(errors, path, () => expression.render(scope, budget)))
  }
  refuseErrors(errors)
  const detokenized = replaceTexts(document, values.values())
  requireSize(sizeOf(detokenized), whole)
  return detokenized as T
}

/** In no-reveal mode, expressions must not insert a part of a value, because the parts could disclose the value. */
function requireWholeValues(byText: FoundExpressions['byText']): void {
  for (const [text, { expression }] of byText) {
    const { usesProxy, references } = expression
    if (usesProxy || references.some((each) => each.startsWith('config:')))
      throw noRevealError('expressions with config or proxy')
    if (text.replaceAll(WHOLE_VALUE, '').includes('{{'))
      throw noRevealError('expressions with filters other than json: "$.path"')
  }
}

function requireSize(size: number, whole: string): void {
  if (size > MAX_SIZE)
    throw invalid(whole, 'must have at most about 16 million characters with the data of its tokens')
}

/** Returns the values of the references. @throws CofferError `validation`, `forbidden` */
export async function readTokens(context: Context, { byText }: FoundExpressions, access: Access) {
  const { caller } = context
  if (caller.isNoReveal) requireWholeValues(byText)
  const { permission, log, reached, transform, unknownError, configuration = {}, encrypted } = access
  const tokens = new Map<Reference, unknown>()
  const unknown: string[] = []
  const errors: PropertyErrors = {}
  const read = new Set<Reference>()
  const granted: { reference: Reference; found: FoundRecord; shown: Transform }[] = []
  let isDenied = false
  let size = 0
  for (const { path, expression } of byText.values())
    for (const reference of expression.references) {
      if (read.has(reference)) continue
      read.add(reference)
      const id = reference.slice(reference.indexOf(':') + 1)
      if (reference.startsWith('config:')) {
        if (Object.hasOwn(configuration, id)) tokens.set(reference, configuration[id])
        else addError(errors, path, 'refers to a configuration parameter that does not exist')
        continue
      }
      if (reference === 'encrypted:') {
        if (encrypted?.value !== undefined) tokens.set(reference, encrypted.value)
        else addError(errors, path, `needs the header ${encrypted?.header}, which the call lacks`)
        continue
      }
      const kind = reference.slice(0, reference.indexOf(':')) as RecordKind
      const found = await RECORDS[kind].find(context, id)
      const decided = found && caller.transform(permission, found.record)
      if (found === undefined) {
        unknown.push(id)
        addError(errors, path, `refers to a ${RECORDS[kind].label} that does not exist`)
      } else if (decided === undefined) isDenied = true
      else if (found.fault !== undefined) addError(errors, path, found.fault)
      else {
        const { record } = found
        granted.push({ reference, found, shown: transform ?? decided })
        // If an access rule decides the transform, the size of the whole record counts, because the mask can be
        // larger than the data. This line is after the decision, so that an error does not disclose the size of a
        // token that the caller has no right to see.
        size += sizeOf(transform === undefined ? record : record.data)
        requireSize(size, access.whole)
      }
    }
  if (unknown.length > 0 && unknownError !== undefined) throw unknownError(unknown, errors)
  refuseErrors(errors)
  if (isDenied) throw notGranted(permission)
  for (const { reference, found, shown } of granted) {
    const { record, output, view } = found
    if (log !== undefined) await logTokenUse(context, record, log, shown)
    reached?.(record)
    tokens.set(reference, showTo(caller, output, view(shown)))
  }
  return tokens
}
