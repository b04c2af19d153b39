/** Example tokens of containers. The data is made up. Only the type and the mask come from a stored token. */

import { Budget } from '../../domain/expression/budget.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { TokenRecord } from '../../domain/records/token-record.js'
import { examplesOf, exampleTypeOf } from '../../domain/token/example-data.js'
import { prepareToken, type TokenRules } from '../../domain/token/token.js'
import { findTokenType, type TokenTypeName } from '../../domain/token/token-types.js'
import { CofferError } from '../../errors.js'
import type { Context, Session } from '../../framework/context.js'

/** `mask`: null for a token without a mask. `isUsed`: at least one token is in the container. */
export interface Sample {
  container: string
  type: TokenTypeName
  mask?: unknown
  isUsed: boolean
}

/**
 * - `shown`: the mask shows a part of the example.
 * - `none`: the token has no mask, so a masked read shows no data.
 * - `other`: the mask needs data that the example does not have, needs too much work, or gives too long a result.
 */
export const MASKS = ['shown', 'none', 'other'] as const

export interface ExampleContainer {
  container: string
  isUsed: boolean
  record: TokenRecord
  mask: (typeof MASKS)[number]
}

/** The limit is needed because each cell repeats the masked example, and a mask can give a long text. */
const MAX_MASKED_CHARACTERS = 500
/** The costs of reading a token, in steps of the budget. */
const READ_STEPS = 20_000

/** Reads the newest token in each container. Does not log the read, because the data of the token is not used. */
export async function readSamples(context: Context, containers: readonly string[]): Promise<Sample[]> {
  const { store, caller, turns } = context
  const samples: Sample[] = []
  for (const container of containers) {
    const where = { field: 'container', value: container }
    const [location] = await store.seek('token', caller.tenant, { size: 1, where })
    const token = location && (await store.open(location))
    samples.push(
      token === undefined
        ? { container, type: exampleTypeOf(container), isUsed: false }
        : { container, type: findTokenType(token.type).name, mask: token.mask ?? null, isUsed: true },
    )
    if (turns.use(READ_STEPS)) await turns.next()
  }
  return samples
}

/** All masks in an answer share one budget of work. */
export function createExamples({ expressions, turns }: Pick<Session, 'expressions' | 'turns'>) {
  const shared = new Budget(turns)
  const known = new Map<string, Promise<TokenRecord | undefined>>()
  const render = async (type: TokenTypeName, mask: unknown, budget: Budget) => {
    const rules = { expressions: await expressions(), budget, now: 0 }
    for (const data of examplesOf(type)) {
      const record = await renderExample({ type, data, ...omitUndefined({ mask }) }, rules)
      if (record !== undefined) return record
    }
    return undefined
  }
  return async ({ container, type, mask, isUsed }: Sample): Promise<ExampleContainer> => {
    const key = JSON.stringify([type, mask])
    const rendering = known.get(key) ?? render(type, mask, shared)
    known.set(key, rendering)
    const own = await rendering
    // An example without a mask needs little work, so it is created even if the shared budget is used up.
    const record = own ?? (await render(type, null, new Budget(turns)))!
    const shown = record.mask === undefined ? 'none' : 'shown'
    return {
      ...{ container, isUsed, record: { ...record, containers: [container] } },
      mask: own === undefined ? 'other' : shown,
    }
  }
}

/**
 * Returns undefined if the mask expects data that the example does not have, if the masked data is too long, or if the
 * mask needs more work than an answer may take.
 */
async function renderExample(input: object, rules: TokenRules): Promise<TokenRecord | undefined> {
  try {
    const { record } = await prepareToken({ ...input }, rules)
    const { masked = '' } = record
    const isFit =
      !lacks(masked) && !hasQuotes(masked) && JSON.stringify(masked).length <= MAX_MASKED_CHARACTERS
    return isFit ? ({ ...IDENTITY, ...record } as TokenRecord) : undefined
  } catch (error) {
    if (error instanceof CofferError && EXPECTED.has(error.code)) return undefined
    throw error
  }
}

/** The errors of a mask that does not fit the example. */
const EXPECTED: ReadonlySet<string> = new Set(['validation', 'too_much_work'])
const IDENTITY = { id: 'example', tenant_id: '', fingerprint: '' } as const

/** The made-up data has no quotation marks. A quotation mark shows that the mask has read an object as JSON. */
function hasQuotes(masked: unknown): boolean {
  if (typeof masked === 'object' && masked !== null) return Object.values(masked).some(hasQuotes)
  return typeof masked === 'string' && masked.includes('"')
}

/** A part of the masked value is null if the example has no data for this part. */
function lacks(masked: unknown): boolean {
  if (typeof masked !== 'object' || masked === null) return masked === null
  return Object.values(masked).some(lacks)
}
