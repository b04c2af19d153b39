/**
 * By which facts a token can be found. The store turns each into a keyed digest; search index values, which are not in
 * the record, come on top.
 */

import type { TokenRecord } from './records.js'
import { containerAncestors, containerSetId } from './token/container.js'

export interface Lookup {
  field: string
  value: string
}

/** The look-up of one metadata entry: exact on the name, case aside on the value. */
export function metadataLookup(name: string, value: string): Lookup {
  return { field: `metadata.${name}`, value: value.toLowerCase() }
}

/** The look-up of a search index value: case aside. */
export function searchLookup(value: string): Lookup {
  return { field: 'search', value: value.toLowerCase() }
}

/**
 * Every look-up of a record, each once: `type`; `metadata.<name>`; `container` (exactly this one); `ancestor` (this one
 * or one below); `containers` (exactly this set); `fingerprint`; `created_by`; `modified_by`. With the limits on
 * metadata, containers and search indexes a token has fewer than 255.
 */
export function tokenLookups(record: TokenRecord): Lookup[] {
  const ancestors = new Set(record.containers.flatMap(containerAncestors))
  return [
    { field: 'type', value: record.type },
    ...Object.entries(record.metadata ?? {}).map(([name, value]) => metadataLookup(name, value)),
    ...[...new Set(record.containers)].map((value) => ({ field: 'container', value })),
    ...[...ancestors].map((value) => ({ field: 'ancestor', value })),
    { field: 'containers', value: containerSetId(record.containers) },
    { field: 'fingerprint', value: record.fingerprint },
    { field: 'created_by', value: record.created_by },
    ...(record.modified_by === undefined ? [] : [{ field: 'modified_by', value: record.modified_by }]),
  ]
}
