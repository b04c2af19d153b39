/**
 * What each kind of record may be looked up by. The store turns every pair into a keyed digest, so nothing here is
 * ever on disk in the clear.
 */
import { normalizeEmail } from './email.js'
import type {
  ActivityRecord,
  ApplicationRecord,
  AssociationRecord,
  ContainersRecord,
  Kind,
  LogRecord,
  RecordOf,
  TenantRecord,
} from './records.js'
import { type Lookup, tokenLookups } from './token-index-fields.js'

const LOOKUPS: { [K in Kind]: (record: RecordOf[K]) => Lookup[] } = {
  tenant: tenantLookups,
  user: ({ email }) => (email === undefined ? [] : [{ field: 'email', value: normalizeEmail(email) }]),
  token: tokenLookups,
  containers: containersLookups,
  settings: () => [],
  application: applicationLookups,
  api_key: ({ application_id }) => [{ field: 'application', value: application_id }],
  association: associationLookups,
  activity: activityLookups,
  member: ({ user_id, role }) => [
    { field: 'user', value: user_id },
    { field: 'role', value: role },
  ],
  invitation: () => [],
  link: ({ tenant }) => [{ field: 'tenant', value: String(tenant) }],
  mail: ({ invitation_id, state }) => [
    { field: 'invitation', value: invitation_id },
    { field: 'state', value: state },
  ],
  formula: () => [],
  reactor: ({ formula_id, application_id }) => [
    { field: 'formula', value: formula_id },
    ...(application_id === undefined ? [] : [{ field: 'application', value: application_id }]),
  ],
  reactor_log: ({ reactor_id }) => [{ field: 'reactor', value: reactor_id }],
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

function applicationLookups({ type, name }: ApplicationRecord): Lookup[] {
  return [
    { field: 'type', value: type },
    { field: 'name', value: name.toLowerCase() },
  ]
}

function associationLookups({ parent_id, child_id }: AssociationRecord): Lookup[] {
  return [
    { field: 'parent', value: parent_id },
    { field: 'child', value: child_id },
  ]
}

/** `created` finds the newest token ever created of a type, deleted ones included. */
function activityLookups({ month, created }: ActivityRecord): Lookup[] {
  const lookups = [{ field: 'month', value: month }]
  return created === undefined ? lookups : [...lookups, { field: 'created', value: created }]
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
