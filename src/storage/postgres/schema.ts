/**
 * The tables of a vault in PostgreSQL. They hold sealed rows and keyed digests, as the files of a vault do. The SQL is
 * portable: engines that speak PostgreSQL's protocol (CockroachDB, YugabyteDB) take it.
 */

/**
 * `seq` and `created` are times: 10 µs since 2026 by the database's clock, and ms since the epoch by the server's.
 * Of `coffer_rows` the index by id is the newer one: the planner takes it of two that cost the same, as they do until the
 * table was analyzed; by the other one it would read, and lock, all rows of a kind. The index begins with the id, because by
 * one that begins as the primary key does the planner would also look for a `seq` in a table that has grown since.
 * `closed`: until when, in ms by the database's clock, one unit of work alone may write, because it has collided too often.
 * `keys`: 8 bytes each, the first of them that of the kind. `coffer_waiting` has log entries that are in no log yet, and
 * `coffer_chains` which process adds to which chain of every log, until when, ms by the database's clock.
 */
const TABLES = `
create table coffer_state (
  id smallint primary key, header text not null, generation bigint not null, changes bigint not null,
  time bigint not null, last bigint not null, since bigint not null, until bigint not null,
  closed bigint not null default 0
);
create table coffer_rows (
  tenant integer not null, kind smallint not null, id bytea not null, seq bigint not null, rev bigint not null,
  created bigint not null, modified bigint not null, expires bigint not null, keys bytea not null,
  sealed bytea not null, constraint coffer_rows_seq primary key (tenant, kind, seq)
);
create unique index coffer_rows_id on coffer_rows (id, tenant, kind);
create index coffer_rows_expires on coffer_rows (expires) where expires > 0;
create table coffer_keys (
  tenant integer not null, kind smallint not null, key bytea not null, seq bigint not null,
  primary key (tenant, kind, key, seq)
);
create table coffer_waiting (
  id bytea primary key, tenant integer not null, owner bytea not null, written bigint not null, sealed bytea not null
);
create index coffer_waiting_tenant on coffer_waiting (tenant);
create index coffer_waiting_owner on coffer_waiting (owner, written);
create table coffer_chains (id integer primary key, owner bytea not null, until bigint not null)`

/** The n-th makes the tables of version n out of those of the version before. */
export const MIGRATIONS: readonly string[] = [TABLES]

/** The version of the tables that this program reads and writes. */
export const SCHEMA = MIGRATIONS.length

/** Exists from the first migration on; its one row is locked while others run. */
export const VERSION_TABLE =
  'create table if not exists coffer_schema (id smallint primary key, version integer not null)'
export const FIRST_VERSION = 'insert into coffer_schema values (1, 0) on conflict (id) do nothing'
export const LOCK_VERSION = 'select version from coffer_schema where id = 1 for update'
export const READ_VERSION = 'select version from coffer_schema where id = 1'
export const SET_VERSION = 'update coffer_schema set version = $1 where id = 1'
