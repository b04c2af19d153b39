/** Exclusive access to a vault that no process has open: its lock, header, and engine options. */
import type { Secret } from '../crypto/key-slot.js'
import type { Keyring } from '../crypto/keyring.js'
import { formatDate } from '../domain/dates.js'
import { Budget } from '../domain/expression/budget.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { TokenRecord } from '../domain/records/records.js'
import { renderSearchIndexes } from '../domain/token/token-rendering.js'
import { CofferError } from '../errors.js'
import { acquireLock, type Lock, type LockHolder, readLockHolder } from '../storage/lock.js'
import { readProcessIdentity } from '../storage/process-identity.js'
import { type Header, readHeader } from '../storage/vault-file.js'
import { loadExpressions } from './app.js'
import type { Effects } from './location.js'
import { type ChooseOpener, describeLocked, openKeyring, toSecret } from './unlock.js'

const CACHE_BYTES = 4 * 1024 * 1024

/**
 * Takes the lock and runs `work`, whose result must release it; releases it if `work` fails.
 * @throws CofferError `unavailable`, at once if a server has the vault open and `checkHolder` says so
 */
export async function owning<T>(
  effects: Effects,
  work: (lock: Lock) => Promise<T>,
  checkHolder: (holder: LockHolder) => void = refuseServer,
): Promise<T> {
  const lock = await acquireLock({
    ...effects,
    identity: readProcessIdentity(effects.pid),
    isServer: effects.role === 'server',
    checkHolder,
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  })
  try {
    return await work(lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

/** @throws CofferError `unavailable` if a server has the vault open */
export function refuseBesideServer({ files, directory, pid }: Effects): void {
  const held = readLockHolder(files, directory, readProcessIdentity(pid))
  if (held?.state === 'alive') refuseServer(held.holder)
}

/** Refuses to wait for a server, which keeps a vault for long. @throws CofferError `unavailable` */
function refuseServer({ pid, host, since, isServer }: LockHolder): void {
  if (!isServer) return
  const who = `Process ${pid} on ${host} has this vault open since ${formatDate(since)}`
  const end = `Stop it first: kill ${pid} (if that is \`coffer unlock\`: coffer vault lock)`
  throw new CofferError('unavailable', `${who}, and commands reach it there. ${end}`)
}

type Opened = Awaited<ReturnType<typeof openKeyring>> & { secret: Secret }

/**
 * Asks for the secret of a vault, then holds its lock while `work` runs with its keys.
 * @throws CofferError `unavailable`, at once beside a server
 */
export async function runUnlocked<T>(
  effects: Effects,
  choose: ChooseOpener,
  work: (opened: Opened) => Promise<T>,
): Promise<T> {
  const { files, directory } = effects
  const secret = toSecret(await choose(describeLocked(await readHeader(files, directory))))
  return owning(effects, async (lock) => {
    const result = await work({ ...(await openKeyring(effects, secret)), secret })
    lock.release()
    return result
  })
}

export function lsmOptions(effects: Effects, header: Header, keyring: Keyring) {
  return { ...effects, header, keys: keyring.engine, cacheBytes: CACHE_BYTES }
}

/** Evaluates the search index expressions of a token, because only digests of their values are stored. */
export function createSearchRenderer({ random }: Effects): (token: TokenRecord) => Promise<string[]> {
  let expressions: Promise<Expressions> | undefined
  return async ({ data, search_indexes }) => {
    if (search_indexes === undefined || search_indexes.length === 0) return []
    expressions ??= loadExpressions(random)
    const errors = {}
    const scope = { data }
    const values = await renderSearchIndexes(
      { expressions: await expressions, errors, scope, budget: new Budget() },
      search_indexes,
    )
    if (Object.keys(errors).length === 0) return values
    throw new CofferError('internal', 'A search index of a token cannot be evaluated.')
  }
}
