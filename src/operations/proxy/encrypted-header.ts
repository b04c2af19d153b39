/** The data that a client has encrypted for one call through a proxy. This data is never stored. */
import { type EncryptedMember, readEncryptedHeader } from '../../domain/encryption/encrypted-header.js'
import { Budget } from '../../domain/expression/budget.js'
import { joinPath } from '../../domain/json/find-texts.js'
import { collectBelow, refuseErrors } from '../../domain/property-errors.js'
import type { Secrets } from '../../domain/text/secrets.js'
import { type PropertyErrors, validationError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import type { RelayRequest } from '../../framework/ports/outbound.js'
import { prepareGiven } from '../token/check-token.js'
import { openDraft } from '../token/encrypted-token.js'

interface Opened {
  type: string
  data: unknown
}

interface Showing {
  /** If true, the mask of the data replaces the data. */
  isMasked?: boolean
  secrets?: Secrets | undefined
}

export const nameOfHeader = (prefix: string) => `${prefix.toUpperCase()}-ENCRYPTED`

/**
 * Returns the value of `{{ encrypted }}`: an object with type and data, or an object that contains several of these
 * objects by name. Returns undefined if the call has no header with encrypted data.
 * @throws CofferError `validation` if the header is malformed, if a member cannot be decrypted, or if the data of a
 * member does not fit the type of the member
 */
export async function openHeader(
  context: Context,
  { headers, prefix }: Pick<RelayRequest, 'headers' | 'prefix'>,
  showing: Showing,
): Promise<Opened | Record<string, Opened> | undefined> {
  const text = headers[`${prefix}-encrypted`]
  if (text === undefined || text === '') return undefined
  const read = readEncryptedHeader(text)
  if (read === undefined)
    throw validationError(
      `${nameOfHeader(prefix)} must be base64 of JSON: {"type", "encrypted"}, or an object of at most 20 such objects.`,
    )
  const budget = new Budget(context.turns)
  const errors: PropertyErrors = {}
  const open = (path: string, member: EncryptedMember) =>
    collectBelow(errors, path, () => openMember(context, member, budget, showing))
  if ('one' in read) {
    const opened = await open('', read.one)
    refuseErrors(errors)
    return opened
  }
  const opened: [string, Opened][] = []
  for (const [name, member] of read.named) {
    const one = await open(joinPath('', name), member)
    if (one !== undefined) opened.push([name, one])
  }
  refuseErrors(errors)
  return Object.fromEntries(opened)
}

/** Validates the data like the data of a token of this type. */
async function openMember(
  context: Context,
  { type, encrypted }: EncryptedMember,
  budget: Budget,
  { isMasked = false, secrets }: Showing,
): Promise<Opened> {
  const { expressions, turns, now } = context
  const tools = { expressions, turns, now: async () => now }
  const prepared = await prepareGiven({ type, encrypted }, tools, budget)
  const { record } = 'jwe' in prepared ? await openDraft(context, prepared) : prepared
  const masked = record.masked ?? null
  secrets?.add(record.data, masked)
  return { type, data: isMasked ? masked : record.data }
}
