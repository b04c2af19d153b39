import type { PropertyErrors } from '../../errors.js'
import { checkContainers } from '../access/container.js'
import { formatDate, parseExpiry } from '../dates.js'
import { NOT_DECRYPTED, readJwe } from '../encryption/jwe.js'
import type { Budget } from '../expression/budget.js'
import type { Expressions } from '../expression/expression.js'
import { canonicalJson, isObject, mergePatch } from '../json/json.js'
import { omitUndefined } from '../omit-undefined.js'
import { addError, collect, refuseErrors } from '../property-errors.js'
import type { Audit, CardCode, TokenRecord } from '../records/token-record.js'
import { hasCode, withoutCode } from './card-code.js'
import {
  type Rendering,
  readId,
  renderFingerprint,
  renderMask,
  renderSearchIndexes,
} from './token-rendering.js'
import { DATA_NOT_NULL, findTokenType, readData, type TokenType } from './token-types.js'

const MAX_METADATA_ENTRIES = 50
const MAX_METADATA_NAME_LENGTH = 100
const MAX_METADATA_VALUE_LENGTH = 2000

/** `now`: ms since the epoch. `budget`: the budget of the whole request. */
export interface TokenRules {
  expressions: Expressions
  budget: Budget
  now: number
}

/** Without `id`, the vault generates an id. Without `expires` (ms since the epoch), the token never expires. */
export type TokenDraft = Awaited<ReturnType<typeof validateAndRender>>

type Input = Readonly<Record<string, unknown>>
type Attribute = Exclude<
  keyof TokenRecord,
  | 'id'
  | 'tenant_id'
  | 'fingerprint'
  | 'code'
  | 'card_details'
  | 'network_token_id'
  | 'is_intent'
  | keyof Audit
>

/**
 * The attributes before validation, with their defaults. `awaitsData`: the data comes later, from the token intent or
 * the decryption.
 */
type RequestedToken = Record<Exclude<Attribute, 'type' | 'masked' | 'expires_at'>, unknown> & {
  id?: unknown
  type: TokenType
  expires: number | undefined
  awaitsData?: boolean
  setsCode: boolean
}

export interface DraftCode extends Pick<CardCode, 'masked'> {
  sets: boolean
}

/**
 * `mask: null` means no mask. With `token_intent_id` or `encrypted`, the draft has no data, and only the other
 * attributes are validated.
 * @throws CofferError `validation`
 */
export function prepareToken(input: Input, rules: TokenRules): Promise<TokenDraft> {
  const errors: PropertyErrors = {}
  const awaitsIntentData = isGiven(input.token_intent_id)
  const isEncrypted = isGiven(input.encrypted)
  if (awaitsIntentData) checkIntentId(input, errors)
  else if (isEncrypted) checkEncrypted(input, errors)
  // If the type is unknown, the rules of the least restrictive type apply.
  const isTyped = !awaitsIntentData || isGiven(input.type)
  const type = (isTyped && collect(errors, 'type', () => findTokenType(input.type))) || findTokenType('token')
  const requested: RequestedToken = {
    awaitsData: awaitsIntentData || isEncrypted,
    type,
    id: input.id ?? undefined,
    data: input.data,
    mask: input.mask === undefined ? type.mask : (input.mask ?? undefined),
    containers: input.containers ?? type.containers,
    metadata: input.metadata ?? undefined,
    search_indexes: input.search_indexes ?? type.search_indexes,
    fingerprint_expression: input.fingerprint_expression ?? type.fingerprint_expression,
    deduplicate_token: input.deduplicate_token ?? undefined,
    expires: readExpiry(input.expires_at, rules.now, errors),
    setsCode: true,
  }
  return validateAndRender(requested, rules, errors)
}

/**
 * Makes the checks that do not need the stored token.
 * @throws CofferError `validation` with all errors
 */
export async function checkPatch(patch: Input, { expressions, budget, now }: TokenRules): Promise<void> {
  const errors: PropertyErrors = {}
  refuseUnsupported(patch, errors, ['encrypted', 'token_intent_id'])
  if (patch.data === null) addError(errors, 'data', DATA_NOT_NULL)
  if (patch.containers !== undefined) checkContainers(patch.containers, 'containers', errors)
  checkMetadata(mergePatch({}, patch.metadata ?? {}), errors)
  readExpiry(patch.expires_at, now, errors)
  // Without data in the scope, expressions are only checked.
  const rendering: Rendering = { expressions, errors, scope: {}, budget }
  await renderMask(rendering, patch.mask ?? undefined)
  if ((patch.fingerprint_expression ?? undefined) !== undefined)
    await renderFingerprint(rendering, patch.fingerprint_expression)
  await renderSearchIndexes(rendering, patch.search_indexes ?? undefined)
  refuseErrors(errors)
}

/**
 * Merges `data`, `mask` and `metadata`, and replaces other attributes. Null removes or resets an attribute,
 * except `data`.
 * @throws CofferError `validation`
 */
export async function patchToken(record: TokenRecord, patch: Input, rules: TokenRules): Promise<TokenDraft> {
  const errors: PropertyErrors = {}
  const type = findTokenType(record.type)
  const merged = (name: 'data' | 'mask' | 'metadata') =>
    patch[name] === undefined ? record[name] : mergePatch(record[name], patch[name])
  const replaced = (name: keyof TokenRecord, absent?: unknown) =>
    patch[name] === undefined ? record[name] : (patch[name] ?? absent)
  const kept = record.expires_at === undefined ? undefined : Date.parse(record.expires_at)
  const requested: RequestedToken = {
    type,
    data: merged('data'),
    mask: merged('mask') ?? undefined,
    containers: replaced('containers'),
    metadata: merged('metadata') ?? undefined,
    search_indexes: replaced('search_indexes'),
    fingerprint_expression: replaced('fingerprint_expression', type.fingerprint_expression),
    deduplicate_token: replaced('deduplicate_token'),
    expires: patch.expires_at === undefined ? kept : readExpiry(patch.expires_at, rules.now, errors),
    setsCode: record.code === undefined || hasCode(record.type, patch.data),
  }
  return validateAndRender(requested, rules, errors)
}

export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** `names`: attributes that would give the data from another source. */
function refuseUnsupported(input: Input, errors: PropertyErrors, names: readonly string[]): void {
  for (const name of names)
    if (isGiven(input[name])) addError(errors, name, 'is not supported; give the value as data')
}

function checkIntentId({ token_intent_id: id, data, encrypted }: Input, errors: PropertyErrors): void {
  if (typeof id !== 'string') addError(errors, 'token_intent_id', 'must be a string')
  if (isGiven(data) || isGiven(encrypted))
    addError(
      errors,
      'token_intent_id',
      'must not be given together with data or encrypted, because the token intent has the data',
    )
}

function checkEncrypted({ data, encrypted }: Input, errors: PropertyErrors): void {
  if (isGiven(data))
    addError(errors, 'encrypted', 'must not be given together with data, because encrypted contains the data')
  else if (readJwe(encrypted) === undefined) addError(errors, 'encrypted', NOT_DECRYPTED)
}

function readExpiry(given: unknown, now: number, errors: PropertyErrors): number | undefined {
  if (given === undefined || given === null) return undefined
  return collect(errors, 'expires_at', () => parseExpiry(typeof given === 'string' ? given : '', now))
}

async function validateAndRender(requested: RequestedToken, rules: TokenRules, errors: PropertyErrors) {
  const { expressions, budget } = rules
  const { type, mask, search_indexes, fingerprint_expression, deduplicate_token, expires } = requested
  const data = requested.awaitsData
    ? undefined
    : collect(errors, 'data', () => readData(type, requested.data))
  const containers = checkContainers(requested.containers, 'containers', errors)
  const metadata = requested.metadata === undefined ? undefined : checkMetadata(requested.metadata, errors)
  if (deduplicate_token !== undefined && typeof deduplicate_token !== 'boolean')
    addError(errors, 'deduplicate_token', 'must be true or false')
  const isCoded = hasCode(type.name, data)
  const whole: Rendering = { expressions, errors, scope: { data }, budget }
  const lasting = isCoded ? withoutCode(data) : data
  const rendering = { ...whole, scope: { data: lasting, ...(metadata && { metadata }) } }
  const id = requested.id === undefined ? undefined : await readId(rendering, requested.id)
  const masked = await renderMask(whole, mask, type.mask)
  const rendered = await renderFingerprint(rendering, fingerprint_expression, type.fingerprint_expression)
  const searchValues = await renderSearchIndexes(rendering, search_indexes)
  refuseErrors(errors)
  const record: Record<Attribute, unknown> = {
    type: type.name,
    data,
    mask,
    masked,
    containers,
    metadata: metadata && Object.keys(metadata).length > 0 ? metadata : undefined,
    search_indexes,
    fingerprint_expression,
    expires_at: expires === undefined ? undefined : formatDate(expires),
    deduplicate_token,
  }
  return {
    record: omitUndefined(record) as Pick<TokenRecord, Attribute>,
    ...(id && { id }),
    fingerprintText: formatFingerprint(type.name, rendered),
    searchValues,
    ...(expires !== undefined && { expires }),
    ...(isCoded && { code: await readCode(whole, lasting, requested, masked) }),
  }
}

/** Uses the expression of `original`. Returns undefined if the expression gives no usable value. */
export async function fingerprintTextBy(
  original: Pick<TokenRecord, 'type' | 'fingerprint_expression'>,
  { data, metadata }: Pick<TokenRecord, 'data' | 'metadata'>,
  { expressions, budget }: TokenRules,
): Promise<string | undefined> {
  const errors: PropertyErrors = {}
  const scope = { data, ...(metadata && { metadata }) }
  const { name, fingerprint_expression: usual } = findTokenType(original.type)
  const rendering: Rendering = { expressions, errors, scope, budget }
  const rendered = await renderFingerprint(rendering, original.fingerprint_expression, usual)
  return Object.keys(errors).length > 0 ? undefined : formatFingerprint(name, rendered)
}

function formatFingerprint(type: string, rendered: unknown): string {
  return JSON.stringify([type, typeof rendered === 'string' ? rendered : canonicalJson(rendered)])
}

/** `lasting`: the data without the code. */
async function readCode(
  whole: Rendering,
  lasting: unknown,
  { type, mask, setsCode }: RequestedToken,
  masked: unknown,
): Promise<DraftCode> {
  const isUsual = mask === undefined || mask === type.mask
  if (isUsual || canonicalJson(mask) === canonicalJson(type.mask)) return { sets: setsCode }
  // After the code has expired, reads return the mask that was rendered without the code.
  const rendering = { ...whole, scope: { data: lasting }, errors: {} }
  const later = (await renderMask(rendering, mask, type.mask)) ?? null
  return canonicalJson(later) === canonicalJson(masked)
    ? { sets: setsCode }
    : { sets: setsCode, masked: later }
}

/** Metadata is never masked. Lengths are in UTF-16 units. */
export function checkMetadata(value: unknown, errors: PropertyErrors): Record<string, string> {
  const entries = isObject(value) ? Object.entries(value) : []
  if (!isObject(value) || entries.length > MAX_METADATA_ENTRIES) {
    addError(errors, 'metadata', `must be an object of at most ${MAX_METADATA_ENTRIES} strings`)
    return {}
  }
  const names = `names must have 1 to ${MAX_METADATA_NAME_LENGTH} characters, and no control characters`
  const texts = `must be a string of at most ${MAX_METADATA_VALUE_LENGTH} characters`
  for (const [name, text] of entries) {
    if (name === '' || name.length > MAX_METADATA_NAME_LENGTH || /\p{Cc}/u.test(name))
      addError(errors, 'metadata', names)
    else if (typeof text !== 'string' || text.length > MAX_METADATA_VALUE_LENGTH)
      addError(errors, `metadata.${name}`, texts)
  }
  return value as Record<string, string>
}
