/**
 * What each kind of record may be looked up by. The store turns every pair into a keyed digest, so nothing here is
 * ever on disk in the clear.
 */
import type { ContainersRecord, Kind, LogRecord, RecordOf, TenantRecord } from './records.js'
import { tokenLookups } from './token-lookups.js'

export interface Lookup {
  field: string
  value: string
}

const LOOKUPS: { [K in Kind]: (record: RecordOf[K]) => Lookup[] } = {
  tenant: tenantLookups,
  user: () => [],
  token: tokenLookups,
  containers: containersLookups,
  log: logLookups,
}

/** Every pair that a record of this kind is found by, besides its id. */
export function lookupsOf<K extends Kind>(kind: K, record: RecordOf[K]): Lookup[] {
  return LOOKUPS[kind](record)
}

function tenantLookups({ id, name }: TenantRecord): Lookup[] {
  return [
    { field: 'id', value: id },
    { field: 'name', value: name.toLowerCase() },
  ]
}

function containersLookups({ containers }: ContainersRecord): Lookup[] {
  return containers.map((value) => ({ field: 'container', value }))
}

/** `class` is what the filter `entity_type=token` matches: cards and banks are tokens too. */
function logLookups(record: LogRecord): Lookup[] {
  const { entity_type: type, entity_id: entity, actor_id: actor } = record
  const isToken = type === 'token' || type === 'card' || type === 'bank'
  const lookups = [
    { field: 'type', value: type },
    { field: 'class', value: isToken ? 'token' : type },
    { field: 'entity', value: entity },
    { field: 'type_entity', value: `${isToken ? 'token' : type}:${entity}` },
  ]
  return actor === undefined ? lookups : [...lookups, { field: 'actor', value: actor }]
}
