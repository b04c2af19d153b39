/** The client of reactor code. Each method performs an operation with the rights of the code. */
import { isObject } from '../../domain/json/json.js'
import type { GivenData } from '../../domain/reactor/printed.js'
import type { Secrets } from '../../domain/text/secrets.js'
import { CofferError, validationError } from '../../errors.js'
import { type Caller, deriveCaller } from '../../framework/caller/caller.js'
import type { OperationInput, Session } from '../../framework/context.js'
import { LOCAL_LIMITS, type ResponseLimits } from '../../framework/limits.js'
import type { AnyOperation } from '../../framework/operation.js'
import type { List } from '../../framework/page.js'
import { type ClientCall, MAX_ANSWER_BYTES } from '../../framework/ports/reactors.js'
import * as token from '../token/noun.js'
import { searchTokens } from '../token/search.js'
import { createAttributes, type TokenView } from '../token/token-attributes.js'
import { tokenFilters } from '../token/token-filters.js'
import { tokenize } from '../token/tokenize.js'

/** These limits are small, because several answers can be sent to a child process over one pipe at the same time. */
const CODE: ResponseLimits = { ...LOCAL_LIMITS, maxBytes: MAX_ANSWER_BYTES, isStrict: true }

type Call = readonly [
  AnyOperation | (() => Promise<AnyOperation>),
  read: (args: readonly unknown[]) => OperationInput,
]

/** Imports these operations only when code uses network tokens. */
const networkToken =
  (name: 'create' | 'get' | 'cryptogram' | 'suspend' | 'resume' | 'delete') => async () => {
    const { noun } = await import('../network-token/noun.js')
    return noun.operations.find((operation) => operation.name === `network-token ${name}`)! as AnyOperation
  }

const CALLS = new Map<string, Call>([
  ['tokens.create', [token.createToken, ([body]) => readBody(body)]],
  ['tokens.retrieve', [token.getToken, ([id]) => ({ id })]],
  ['tokens.list', [token.listTokens, ([query]) => readQuery(query)]],
  ['tokens.update', [token.updateToken, ([id, body]) => ({ ...readBody(body), id })]],
  ['tokens.delete', [token.deleteToken, ([id]) => ({ id })]],
  ['tokens.createAssociation', [token.linkTokens, readPair]],
  ['tokens.deleteAssociation', [token.unlinkTokens, readPair]],
  ['tokens.createChild', [token.createChild, ([parent_id, body]) => ({ ...readBody(body), parent_id })]],
  ['tokens.listChildren', [token.listChildren, ([parent_id, query]) => ({ ...readQuery(query), parent_id })]],
  // A query may be a string instead of an object.
  ['tokens.search', [searchTokens, ([query]) => (typeof query === 'string' ? { query } : readQuery(query))]],
  ['tokenize', [tokenize, ([payload]) => ({ payload })]],
  ['networkTokens.create', [networkToken('create'), ([body]) => readCardBody(body)]],
  ['networkTokens.get', [networkToken('get'), ([id]) => ({ id })]],
  ['networkTokens.cryptogram', [networkToken('cryptogram'), ([id]) => ({ id })]],
  ['networkTokens.suspend', [networkToken('suspend'), ([id]) => ({ id })]],
  ['networkTokens.resume', [networkToken('resume'), ([id]) => ({ id })]],
  ['networkTokens.delete', [networkToken('delete'), ([id]) => ({ id })]],
])

/** Maps the names of attributes in JavaScript to their names in the API. */
const ATTRIBUTES = new Map([
  ...Object.keys(createAttributes).map((name): [string, string] => [
    name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    name,
  ]),
  ['pageNumber', 'page'],
  ['pageSize', 'size'],
  ['tokenId', 'token_id'],
  ['expirationMonth', 'expiration_month'],
  ['expirationYear', 'expiration_year'],
  ['cardholderInfo', 'cardholder_info'],
  ['merchantId', 'merchant_id'],
])

interface Noting {
  /** Collects the data that the code reads in plaintext. */
  secrets: Secrets | undefined
  /** Collects the data that the code reads in plaintext, and the data that the code writes. */
  given: GivenData | undefined
}

export function createClientCall(session: Session, actor: Caller, { secrets, given }: Noting): ClientCall {
  const perform = async (name: string, args: readonly unknown[]) => {
    const call = CALLS.get(name)
    if (call === undefined) throw new CofferError('not_found', `The client has no method ${name}.`)
    const [declared, read] = call
    const operation = typeof declared === 'function' ? await declared() : declared
    const input = read(args)
    given?.add([input.data, input.payload])
    const revealed = new Set<string>()
    const result = await session.perform(noteRevealed(actor, revealed), operation, input, CODE)
    if (operation.name.startsWith('network-token ')) given?.add(secretsOf(result))
    for (const data of listRevealed(result, revealed)) {
      secrets?.add(data)
      given?.add(data)
    }
    return result
  }
  return Object.assign(perform, { traceId: session.traceId })
}

/** When the returned caller allows the plaintext of a token, the caller adds the id of the token to `revealed`. */
function noteRevealed(actor: Caller, revealed: Set<string>): Caller {
  return deriveCaller(actor, ({ transform }) => ({
    transform: (permission, target, orBy) => {
      const decided = transform(permission, target, orBy)
      if (permission === 'token:read' && decided === 'reveal' && target.id !== undefined)
        revealed.add(target.id)
      return decided
    },
  }))
}

/** Returns the data of those tokens in the answer whose ids are in `revealed`. */
function listRevealed(answer: unknown, revealed: ReadonlySet<string>): unknown[] {
  if (!isObject(answer)) return []
  const page = answer as unknown as List<TokenView> | TokenView
  const tokens = 'pagination' in page ? page.data : [page]
  return tokens.filter(({ id }) => revealed.has(id)).map(({ data }) => data)
}

/** Returns the parts of an answer about network tokens that must not appear in the stored output of a run. */
function secretsOf(answer: unknown): unknown {
  const { data, cryptogram } = isObject(answer) ? answer : {}
  return [data, cryptogram]
}

/** Also translates the names of the attributes of the card. */
function readCardBody(body: unknown): OperationInput {
  const { data, ...rest } = readBody(body)
  return { ...rest, ...(data !== undefined && { data: isObject(data) ? readBody(data) : data }) }
}

function readBody(body: unknown): OperationInput {
  if (!isObject(body)) throw validationError('This method takes an object of attributes.')
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [ATTRIBUTES.get(name) ?? name, value]),
  )
}

function readQuery(query: unknown): OperationInput {
  const input = query === undefined || query === null ? {} : readBody(query)
  for (const [name, { type }] of Object.entries(tokenFilters))
    if (type === 'array' && typeof input[name] === 'string') input[name] = [input[name]]
  return input
}

function readPair([parent_id, child_id]: readonly unknown[]): OperationInput {
  return { parent_id, child_id }
}
