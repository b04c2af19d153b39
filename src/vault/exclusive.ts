/** Exclusive access to a vault that no process has open. */
import type { Keyring } from '../crypto/keyring.js'
import { Budget, sizeOf } from '../domain/expression/budget.js'
import type { TokenRecord } from '../domain/records.js'
import { renderSearchIndexes } from '../domain/token/token-rendering.js'
import { CofferError } from '../errors.js'
import { type Header, readHeader } from '../storage/vault-file.js'
import { type Effects, owning } from './open.js'
import { describeLocked } from './unlock.js'

const CACHE_BYTES = 4 * 1024 * 1024

/** Holds the lock of the vault for as long as `work` lasts. */
export async function runExclusive<T>(effects: Effects, work: () => Promise<T>): Promise<T> {
  return owning(effects, async (lock) => {
    const result = await work()
    lock.release()
    return result
  })
}

/** What can be known of the vault before it is opened. */
export async function readLocked({ files, directory }: Effects) {
  return describeLocked(await readHeader(files, directory))
}

/** What the tree of the vault is read and written with. */
export function lsmOptions(effects: Effects, header: Header, keyring: Keyring) {
  return { ...effects, header, keys: keyring.engine, cacheBytes: CACHE_BYTES }
}

/** Search index values are kept as digests alone; their expressions are in the token. */
export function createSearchRenderer({ random }: Effects): (token: TokenRecord) => Promise<string[]> {
  let expressions: Promise<import('../domain/expression/expression.js').Expressions> | undefined
  return async ({ data, search_indexes }) => {
    if (search_indexes === undefined || search_indexes.length === 0) return []
    expressions ??= import('../domain/expression/expression.js').then(({ createExpressions }) =>
      createExpressions(random),
    )
    const errors = {}
    const scope = { data }
    const values = await renderSearchIndexes(
      { expressions: await expressions, errors, scope, budget: new Budget(sizeOf(data)) },
      search_indexes,
    )
    if (Object.keys(errors).length === 0) return values
    throw new CofferError('internal', 'A search index of a token renders no more.')
  }
}
