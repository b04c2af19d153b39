/**
 * The rules of a token: from what a caller sends to what is kept, from a patch to what is kept then, and from what is
 * kept to what a caller sees. It does not know who calls, what else is stored, or what time it is.
 */
import { CofferError, type PropertyErrors } from '../../errors.js'
import { checkContainers } from '../container.js'
import { formatDate, parseExpiry } from '../dates.js'
import { Budget, sizeOf } from '../expression/budget.js'
import type { Expressions } from '../expression/expression.js'
import { omitUndefined } from '../omit-undefined.js'
import { addError, collect, refuseErrors } from '../property-errors.js'
import type { TokenRecord } from '../records.js'
import { fingerprintText } from './fingerprint.js'
import { mergePatch } from './merge-patch.js'
import { checkMetadata } from './metadata.js'
import {
  type GivenId,
  type Rendering,
  readId,
  renderFingerprint,
  renderMask,
  renderSearchIndexes,
} from './token-rendering.js'
import { DATA_NOT_NULL, findTokenType, readData, type TokenType } from './token-types.js'

export { redactDuplicate, type TokenView, viewToken } from './token-view.js'

/** `now`: ms since the epoch. */
export interface TokenRules {
  expressions: Expressions
  now: number
}

/** A checked token, complete but for what only the vault knows. */
export interface TokenDraft {
  record: Omit<
    TokenRecord,
    'id' | 'tenant_id' | 'fingerprint' | 'created_by' | 'created_at' | 'modified_by' | 'modified_at'
  >
  /** Absent when the service is to give the id, and after a patch. */
  id?: GivenId
  /** What the fingerprint is taken of. */
  fingerprintText: string
  /** Rendered search indexes, in lower case, each once. */
  searchValues: string[]
  /** ms since the epoch; absent for never. */
  expires?: number
}

/** What a caller asked for, defaults filled in, before anything is checked against the data. */
interface Wish {
  type: TokenType
  id: unknown
  data: unknown
  /** undefined: no mask. */
  mask: unknown
  containers: unknown
  metadata: unknown
  search_indexes: unknown
  fingerprint_expression: unknown
  deduplicate_token: unknown
  expires: number | undefined
}

/**
 * Checks the attributes of a new token and fills in the defaults of its type. A null attribute counts as absent, but
 * `mask: null` is "no mask". Attributes it does not know are ignored.
 * @throws CofferError `validation` with every complaint, by property path.
 */
export async function prepareToken(
  input: Readonly<Record<string, unknown>>,
  rules: TokenRules,
): Promise<TokenDraft> {
  const errors: PropertyErrors = {}
  // Of an unknown type the rest is checked all the same, by the rules of the freest one.
  const type = collect(errors, 'type', () => requireType(input.type)) ?? findTokenType('token')
  const wish: Wish = {
    type,
    id: input.id ?? undefined,
    data: input.data,
    mask: input.mask === undefined ? type.mask : (input.mask ?? undefined),
    containers: input.containers ?? type.containers,
    metadata: input.metadata ?? undefined,
    search_indexes: input.search_indexes ?? type.search_indexes,
    fingerprint_expression: input.fingerprint_expression ?? type.fingerprint_expression,
    deduplicate_token: input.deduplicate_token ?? undefined,
    expires: readExpiry(input.expires_at ?? undefined, rules.now, errors),
  }
  return settle(wish, rules.expressions, errors)
}

/**
 * Judges a merge patch as far as it is right or wrong whatever token it is for. Null may take an attribute away, but
 * neither the data nor the containers.
 * @throws CofferError `validation` with every complaint, by property path.
 */
export async function checkPatch(
  patch: Readonly<Record<string, unknown>>,
  { expressions, now }: TokenRules,
): Promise<void> {
  const errors: PropertyErrors = {}
  if (patch.data === null) addError(errors, 'data', DATA_NOT_NULL)
  if (patch.containers !== undefined) checkContainers(patch.containers, 'containers', errors)
  checkMetadata(mergePatch({}, patch.metadata ?? {}), errors)
  readExpiry(patch.expires_at ?? undefined, now, errors)
  // Without data to render, expressions are read and no more.
  const rendering: Rendering = { expressions, errors, scope: {}, budget: new Budget(0) }
  await renderMask(rendering, patch.mask ?? undefined)
  if ((patch.fingerprint_expression ?? undefined) !== undefined)
    await renderFingerprint(rendering, patch.fingerprint_expression)
  await renderSearchIndexes(rendering, patch.search_indexes ?? undefined)
  refuseErrors(errors)
}

/**
 * Applies a merge patch: `data`, `mask` and `metadata` are merged, the rest is replaced; `id`, `type` and attributes it
 * does not know are ignored. Null takes an attribute away: no mask, no metadata, no search indexes, no expiry; of the
 * fingerprint expression the type's default applies again. The result is checked like a new token.
 * @throws CofferError `validation` with every complaint, by property path; `data: null` is one.
 */
export async function patchToken(
  record: TokenRecord,
  patch: Readonly<Record<string, unknown>>,
  rules: TokenRules,
): Promise<TokenDraft> {
  const errors: PropertyErrors = {}
  const type = findTokenType(record.type)
  const merged = (before: unknown, change: unknown) =>
    change === undefined ? before : (mergePatch(before, change) ?? undefined)
  const replaced = (before: unknown, change: unknown, absent?: unknown) =>
    change === undefined ? before : (change ?? absent)
  const wish: Wish = {
    type,
    id: undefined,
    data: patch.data === undefined ? record.data : mergePatch(record.data, patch.data),
    mask: merged(record.mask, patch.mask),
    containers: replaced(record.containers, patch.containers),
    metadata: merged(record.metadata, patch.metadata),
    search_indexes: replaced(record.search_indexes, patch.search_indexes),
    fingerprint_expression: replaced(
      record.fingerprint_expression,
      patch.fingerprint_expression,
      type.fingerprint_expression,
    ),
    deduplicate_token: replaced(record.deduplicate_token, patch.deduplicate_token),
    expires:
      patch.expires_at === undefined
        ? keptExpiry(record)
        : readExpiry(patch.expires_at ?? undefined, rules.now, errors),
  }
  return settle(wish, rules.expressions, errors)
}

function keptExpiry({ expires_at: text }: TokenRecord): number | undefined {
  return text === undefined ? undefined : Date.parse(text)
}

function requireType(name: unknown): TokenType {
  if (typeof name === 'string') return findTokenType(name)
  throw new CofferError(
    'validation',
    name === undefined || name === null ? 'is required' : 'must be a string',
  )
}

function readExpiry(text: unknown, now: number, errors: PropertyErrors): number | undefined {
  if (text === undefined) return undefined
  return collect(errors, 'expires_at', () => {
    if (typeof text !== 'string') throw new CofferError('validation', 'must be a string')
    return parseExpiry(text, now)
  })
}

/** Checks everything that is kept, renders what is rendered, and reports all complaints at once. */
async function settle(wish: Wish, expressions: Expressions, errors: PropertyErrors): Promise<TokenDraft> {
  const { type, expires } = wish
  const data = collect(errors, 'data', () => readData(type, wish.data))
  const containers = checkContainers(wish.containers, 'containers', errors)
  const metadata = wish.metadata === undefined ? undefined : checkMetadata(wish.metadata, errors)
  if (wish.deduplicate_token !== undefined && typeof wish.deduplicate_token !== 'boolean') {
    addError(errors, 'deduplicate_token', 'must be true or false')
  }
  const rendering: Rendering = {
    expressions,
    errors,
    scope: { data, ...(metadata && { metadata }) },
    budget: new Budget(sizeOf(data)),
  }
  const id = await readId(rendering, wish.id)
  const masked = await renderMask(rendering, wish.mask, type.mask)
  const fingerprinted = await renderFingerprint(
    rendering,
    wish.fingerprint_expression,
    type.fingerprint_expression,
  )
  const searchValues = await renderSearchIndexes(rendering, wish.search_indexes)
  refuseErrors(errors)
  const record = {
    type: type.name,
    data,
    mask: wish.mask,
    masked,
    containers,
    metadata: metadata && Object.keys(metadata).length > 0 ? metadata : undefined,
    search_indexes: wish.search_indexes,
    fingerprint_expression: wish.fingerprint_expression,
    deduplicate_token: wish.deduplicate_token,
    expires_at: expires === undefined ? undefined : formatDate(expires),
  }
  return {
    record: omitUndefined(record) as TokenDraft['record'],
    ...(id && { id }),
    fingerprintText: fingerprintText(type.name, fingerprinted),
    searchValues,
    ...(expires !== undefined && { expires }),
  }
}
