/** Log entries on their way into chains, and who adds to which chain, as SQL. */
import { STATE, type Statement } from './query-sql.js'

/** Log entries of one tenant, sealed together. `id`: random, `owner`: of the process, `written`: µs. */
export interface Waiting {
  id: Uint8Array
  tenant: number
  owner: Uint8Array
  written: number
  sealed: Uint8Array
}

/** What lies in the table: of a tenant, or of a process what is older than `below` with what anybody left before `left`. */
export type WhichWaiting = { tenant: number } | { owner: Uint8Array; below: number; left: number }

/** The oldest first. */
export function readWaitingStatement(which: WhichWaiting, limit: number): Statement {
  const [name, where, ...values] =
    'tenant' in which
      ? (['of', 'tenant = $2', which.tenant] as const)
      : ([
          'below',
          '(owner = $2 and written < $3) or written < $4',
          which.owner,
          which.below,
          which.left,
        ] as const)
  return {
    name: `waiting ${name}`,
    text:
      `select ${STATE}, r.id, r.tenant, r.written, r.sealed from coffer_state s left join (select * from coffer_waiting` +
      ` where ${where} order by written, id limit $1) r on true where s.id = 1 order by r.written, r.id`,
    values: [limit, ...values],
  }
}

export function endWaitingStatement(ids: readonly Uint8Array[]): Statement {
  return { name: 'waited', text: 'delete from coffer_waiting where id = any($1::bytea[])', values: [ids] }
}

/** ms since the epoch by the database's clock. */
const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** The chain that the process has, else one whose lease has ended; no row where there is none. */
export function claimChainStatement(owner: Uint8Array, leaseMs: number): Statement {
  const free = `select id from coffer_chains where owner = $1 or until < ${NOW}`
  return {
    name: 'claim chain',
    text:
      `update coffer_chains set owner = $1, until = ${NOW} + $2 where id =` +
      ` (${free} order by (owner = $1) desc, id limit 1 for update skip locked) returning id`,
    values: [owner, leaseMs],
  }
}

/** A new chain. Of two processes that add one at once, one fails. */
export function addChainStatement(owner: Uint8Array, leaseMs: number): Statement {
  return {
    name: 'add chain',
    text: `insert into coffer_chains select coalesce(max(id), 0) + 1, $1, ${NOW} + $2 from coffer_chains returning id`,
    values: [owner, leaseMs],
  }
}

export function leaveChainStatement(owner: Uint8Array): Statement {
  return { name: 'leave chain', text: 'update coffer_chains set until = 0 where owner = $1', values: [owner] }
}
