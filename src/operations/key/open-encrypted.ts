import { MAX_KEYS } from '../../domain/encryption/client-key.js'
import { type Jwe, NOT_DECRYPTED, readPlaintext } from '../../domain/encryption/jwe.js'
import type { Budget } from '../../domain/expression/budget.js'
import { MAX_JSON_VALUES } from '../../domain/json/json.js'
import type { ClientKeyRecord } from '../../domain/records/records.js'
import { CofferError, invalid } from '../../errors.js'
import type { Context } from '../../framework/context.js'

/** The cost of one decryption in steps of the budget. A decryption takes about 0.2 ms. */
const OPENED_STEPS = 20_000
/** Tried if the wanted key does not exist. Everyone knows this key, so a value that the key decrypts is refused. */
const NO_KEY = {
  public_key: 'pOCSkrZRwni5dyxWn1-puxPZBrRqtoyd-dwrRAn4ogk',
  private_key: 'AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE',
}

/**
 * Decrypts the JSON value that a client has encrypted for a key of the caller's tenant. The error does not contain the
 * reason. An unknown key takes the same time as a known key, so that the time does not reveal which keys exist.
 * @throws CofferError `validation` under `encrypted`, or `too_much_work` if too many keys had to be tried
 */
export async function openEncrypted(context: Context, { kid, parts }: Jwe, budget: Budget): Promise<unknown> {
  const { store, caller, turns } = context
  const encryption = await context.clientEncryption()
  const keys =
    kid === undefined ? await listAll(context) : [await store.get('client_key', caller.tenant, kid)]
  for (const [at, key] of keys.entries()) {
    // Without `kid`, several keys may be tried. Each try after the first counts against the budget of the request.
    if (at > 0) useBudget(budget)
    else turns.use(OPENED_STEPS)
    if (turns.isOver) await turns.next()
    const plain = encryption.open(parts, key ?? NO_KEY)
    const value = plain && readPlaintext(plain, MAX_JSON_VALUES)
    plain?.fill(0)
    if (key !== undefined && value !== undefined) return value
  }
  throw invalid('encrypted', NOT_DECRYPTED)
}

function useBudget(budget: Budget): void {
  try {
    budget.use(OPENED_STEPS)
  } catch (cause) {
    const message =
      'Too many keys had to be tried for this request. Name the key of each JWE in its header: kid.'
    throw new CofferError('too_much_work', message, { cause })
  }
}

/** If the tenant has no key, returns one undefined element, for which `NO_KEY` is tried. */
async function listAll({ store, caller }: Context): Promise<(ClientKeyRecord | undefined)[]> {
  const { records } = await store.find('client_key', caller.tenant, { page: 1, size: MAX_KEYS })
  return records.length === 0 ? [undefined] : records
}
