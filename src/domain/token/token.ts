/** Validation of new tokens and of patches, and the records that result from them. */
import { type PropertyErrors, validationError } from '../../errors.js'
import { checkContainers } from '../access/container.js'
import { formatDate, parseExpiry } from '../dates.js'
import type { Budget } from '../expression/budget.js'
import type { Expressions } from '../expression/expression.js'
import { omitUndefined } from '../omit-undefined.js'
import { addError, collect, refuseErrors } from '../property-errors.js'
import { KEPT_AS_GIVEN, type KeptName, type TokenRecord } from '../records/token-record.js'
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

/** `now`: ms since the epoch. `budget`: that of the request. */
export interface TokenRules {
  expressions: Expressions
  budget: Budget
  now: number
}

/** A validated token, without the attributes that the vault assigns. */
export interface TokenDraft {
  record: Omit<
    TokenRecord,
    'id' | 'tenant_id' | 'fingerprint' | 'created_by' | 'created_at' | 'modified_by' | 'modified_at'
  >
  /** Absent if the vault generates the id, and after a patch. */
  id?: GivenId
  fingerprintText: string
  /** Rendered search indexes, in lower case, without repetitions. */
  searchValues: string[]
  /** ms since the epoch; absent for never. */
  expires?: number
}

/** The requested attributes with defaults filled in, before validation. */
interface RequestedToken {
  type: TokenType
  id: unknown
  data: unknown
  /** undefined: no mask. */
  mask: unknown
  containers: unknown
  metadata: unknown
  search_indexes: unknown
  fingerprint_expression: unknown
  kept: Partial<Record<KeptName, unknown>>
  expires: number | undefined
}

/**
 * Validates the attributes of a new token and fills in the defaults of its type. A null attribute counts as absent,
 * except that `mask: null` means no mask. Unknown attributes are ignored.
 * @throws CofferError `validation` with all errors by property path.
 */
export async function prepareToken(
  input: Readonly<Record<string, unknown>>,
  rules: TokenRules,
): Promise<TokenDraft> {
  const errors: PropertyErrors = {}
  refuseUnsupported(input, errors)
  // If the type is unknown, the rest is validated by the rules of the least restrictive one.
  const type = collect(errors, 'type', () => requireType(input.type)) ?? findTokenType('token')
  const requested: RequestedToken = {
    type,
    id: input.id ?? undefined,
    data: input.data,
    mask: input.mask === undefined ? type.mask : (input.mask ?? undefined),
    containers: input.containers ?? type.containers,
    metadata: input.metadata ?? undefined,
    search_indexes: input.search_indexes ?? type.search_indexes,
    fingerprint_expression: input.fingerprint_expression ?? type.fingerprint_expression,
    kept: mapKept((name) => input[name] ?? undefined),
    expires: readExpiry(input.expires_at ?? undefined, rules.now, errors),
  }
  return settle(requested, rules, errors)
}

/**
 * Checks the parts of a merge patch whose validity does not depend on the token. Null removes an attribute, but `data`
 * and `containers` cannot be removed.
 * @throws CofferError `validation` with all errors by property path.
 */
export async function checkPatch(
  patch: Readonly<Record<string, unknown>>,
  { expressions, budget, now }: TokenRules,
) {
  const errors: PropertyErrors = {}
  refuseUnsupported(patch, errors)
  if (patch.data === null) addError(errors, 'data', DATA_NOT_NULL)
  if (patch.containers !== undefined) checkContainers(patch.containers, 'containers', errors)
  checkMetadata(mergePatch({}, patch.metadata ?? {}), errors)
  readExpiry(patch.expires_at ?? undefined, now, errors)
  // Without data the expressions are only checked.
  const rendering: Rendering = { expressions, errors, scope: {}, budget }
  await renderMask(rendering, patch.mask ?? undefined)
  if ((patch.fingerprint_expression ?? undefined) !== undefined)
    await renderFingerprint(rendering, patch.fingerprint_expression)
  await renderSearchIndexes(rendering, patch.search_indexes ?? undefined)
  refuseErrors(errors)
}

/**
 * Applies a merge patch: `data`, `mask` and `metadata` are merged, other attributes are replaced; `id`, `type` and
 * unknown attributes are ignored. Null removes mask, metadata, search indexes and expiry, and resets the fingerprint
 * expression to the type's default. The result is validated like a new token.
 * @throws CofferError `validation` with all errors by property path, such as for `data: null`.
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
  const requested: RequestedToken = {
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
    kept: mapKept((name) => replaced(record[name], patch[name])),
    expires:
      patch.expires_at === undefined
        ? keptExpiry(record)
        : readExpiry(patch.expires_at ?? undefined, rules.now, errors),
  }
  return settle(requested, rules, errors)
}

/** Attributes that determine where the data comes from. To ignore one would store something else than was requested. */
const UNSUPPORTED = ['encrypted', 'token_intent_id']

function refuseUnsupported(input: Readonly<Record<string, unknown>>, errors: PropertyErrors): void {
  for (const name of UNSUPPORTED)
    if ((input[name] ?? undefined) !== undefined)
      addError(errors, name, 'is not supported; give the value as data')
}

function mapKept(read: (name: KeptName) => unknown): RequestedToken['kept'] {
  const kept: RequestedToken['kept'] = {}
  for (const name in KEPT_AS_GIVEN) kept[name as KeptName] = read(name as KeptName)
  return kept
}

function keptExpiry({ expires_at: text }: TokenRecord): number | undefined {
  return text === undefined ? undefined : Date.parse(text)
}

function requireType(name: unknown): TokenType {
  if (typeof name === 'string') return findTokenType(name)
  throw validationError(name === undefined || name === null ? 'is required' : 'must be a string')
}

function readExpiry(text: unknown, now: number, errors: PropertyErrors): number | undefined {
  if (text === undefined) return undefined
  return collect(errors, 'expires_at', () => {
    if (typeof text !== 'string') throw validationError('must be a string')
    return parseExpiry(text, now)
  })
}

/** Validates and renders all attributes. @throws CofferError `validation` with all errors. */
async function settle(
  requested: RequestedToken,
  { expressions, budget }: TokenRules,
  errors: PropertyErrors,
) {
  const { type, expires } = requested
  const data = collect(errors, 'data', () => readData(type, requested.data))
  const containers = checkContainers(requested.containers, 'containers', errors)
  const metadata = requested.metadata === undefined ? undefined : checkMetadata(requested.metadata, errors)
  for (const [name, findFault] of Object.entries(KEPT_AS_GIVEN)) {
    const value = requested.kept[name as KeptName]
    const fault = value === undefined ? undefined : findFault(value)
    if (fault !== undefined) addError(errors, name, fault)
  }
  const rendering: Rendering = {
    expressions,
    errors,
    scope: { data, ...(metadata && { metadata }) },
    budget,
  }
  const id = requested.id === undefined ? undefined : await readId(rendering, requested.id)
  const masked = await renderMask(rendering, requested.mask, type.mask)
  const fingerprinted = await renderFingerprint(
    rendering,
    requested.fingerprint_expression,
    type.fingerprint_expression,
  )
  const { search_indexes } = requested
  const searchValues =
    search_indexes === undefined ? [] : await renderSearchIndexes(rendering, search_indexes)
  refuseErrors(errors)
  const record = {
    type: type.name,
    data,
    mask: requested.mask,
    masked,
    containers,
    metadata: metadata && Object.keys(metadata).length > 0 ? metadata : undefined,
    search_indexes,
    fingerprint_expression: requested.fingerprint_expression,
    expires_at: expires === undefined ? undefined : formatDate(expires),
    ...requested.kept,
  }
  return {
    record: omitUndefined(record) as TokenDraft['record'],
    ...(id && { id }),
    fingerprintText: fingerprintText(type.name, fingerprinted),
    searchValues,
    ...(expires !== undefined && { expires }),
  }
}
