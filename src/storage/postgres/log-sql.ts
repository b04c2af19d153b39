/** Log entries on their way into chains, and who adds to which chain, as SQL. */
import { NOW_MS, STATE, type Statement } from './query-sql.js'

/** Log entries of one tenant, sealed together. `id`: random, `owner`: of the process, `written`: µs. */
export interface Waiting {
  id: Uint8Array
  tenant: number
  owner: Uint8Array
  written: number
  sealed: Uint8Array
}

/** Where one is in the order of those that wait, the oldest first. */
export type WaitingPlace = Pick<Waiting, 'written' | 'id'>

/**
 * What lies in the table: of a tenant, or of a process what is older than `below` with what dead servers left before `left`, and any server if that is the largest number;
 * `after`: behind that one.
 */
export type WhichWaiting =
  | { tenant: number }
  | { owner: Uint8Array; below: number; left: number; after?: WaitingPlace | undefined }

/** Its server has died: the lease of its chain is over. */
const IS_LEFT =
  'not exists (select 1 from coffer_chains c where c.owner = coffer_waiting.owner' +
  ` and c.until >= ${NOW_MS})`

const FIRST: WaitingPlace = { written: -1, id: new Uint8Array(0) }

/** The oldest first, and no more once they have `bytes`. */
export function readWaitingStatement(which: WhichWaiting, limit: number, bytes: number): Statement {
  const { written, id } = ('after' in which && which.after) || FIRST
  const [name, where, ...values] =
    'tenant' in which
      ? (['of', 'tenant = $3', which.tenant] as const)
      : ([
          'below',
          `((owner = $3 and written < $4) or (written < $5 and ($5 = ${Number.MAX_SAFE_INTEGER} or ${IS_LEFT}))) and (written, id) > ($6, $7)`,
          which.owner,
          which.below,
          which.left,
          written,
          id,
        ] as const)
  const before = 'sum(octet_length(sealed)) over (order by written, id) - octet_length(sealed) as before'
  const found = `select * from coffer_waiting where ${where} order by written, id limit $1`
  return {
    name: `waiting ${name}`,
    text:
      `select ${STATE}, r.id, r.tenant, r.written, r.sealed from coffer_state s left join (select *, ${before}` +
      ` from (${found}) w) r on r.before < $2 where s.id = 1 order by r.written, r.id`,
    values: [limit, bytes, ...values],
  }
}

export function endWaitingStatement(ids: readonly Uint8Array[]): Statement {
  return { name: 'waited', text: 'delete from coffer_waiting where id = any($1::bytea[])', values: [ids] }
}

/** The chain that the process has, else one whose lease has ended, else a new one; no row if another process took it. */
export function claimChainStatement(owner: Uint8Array, leaseMs: number): Statement {
  const chains = [
    '(select min(id) from coffer_chains where owner = $1)',
    `(select min(id) from coffer_chains where until < ${NOW_MS})`,
    '(select coalesce(max(id), 0) + 1 from coffer_chains)',
  ]
  return {
    name: 'claim chain',
    text:
      `insert into coffer_chains (id, owner, until) select coalesce(${chains.join(', ')}), $1::bytea, ${NOW_MS} + $2` +
      ' on conflict (id) do update set owner = excluded.owner, until = excluded.until' +
      ` where coffer_chains.owner = excluded.owner or coffer_chains.until < ${NOW_MS} returning id`,
    values: [owner, leaseMs],
  }
}

export function leaveChainStatement(owner: Uint8Array): Statement {
  return { name: 'leave chain', text: 'update coffer_chains set until = 0 where owner = $1', values: [owner] }
}
