import type { TokenRecord } from '../../domain/records/records.js'
import { suggestName } from '../../domain/text/nearest.js'
import { operation } from '../../framework/operation.js'
import { count, object, text, texts } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { readAll } from '../../storage/store.js'

/** A typed id is compared with so many ids, the newest. */
const MOST_READ = 200
const MOST_TENANTS = 50

/** Advises a person who did not find a token. It tells ids and names alone, so it is not in the log. */
export const adviseTokens = operation({
  name: 'vault advise-tokens',
  audience: 'owner',
  isInternal: true,
  summary: 'Tell what helps to find a token.',
  input: closedInput([], { ids: { type: 'array', items: { type: 'string' }, maxItems: 10 } }),
  output: object({
    tokens: count,
    /** Those that are not the id of a token. */
    missing: texts,
    /** `; did you mean …?`, or nothing. */
    nearest: text,
    /** The names of others that have a token with one of the ids. */
    tenants: texts,
    /** The newest token that no search of data finds. */
    'unindexed?': object({ id: text, index: text }),
  }),
  examples: [],
  async run({ store, caller }, { ids = [] }) {
    const { records, total } = await store.find('token', caller.tenant, { page: 1, size: MOST_READ })
    const missing: string[] = []
    for (const id of ids) if ((await store.get('token', caller.tenant, id)) === undefined) missing.push(id)
    const names = records.map(({ id }) => id)
    const tenants: string[] = []
    for (const { number, name } of (await readAll(store, 'tenant', 0)).slice(0, MOST_TENANTS))
      for (const id of missing)
        if (number !== caller.tenant && (await store.get('token', number, id)) !== undefined)
          tenants.push(name)
    const others = records.filter(({ search_indexes = [] }) => search_indexes.length === 0)
    const unindexed = others.find(({ type }) => type === 'card') ?? others[0]
    return {
      ...{ tokens: total, missing, tenants: [...new Set(tenants)] },
      nearest: missing.length === 0 ? '' : suggestName(missing[0]!, names),
      ...(unindexed && { unindexed: { id: unindexed.id, index: chooseIndex(unindexed) } }),
    }
  },
})

function chooseIndex({ type, data }: TokenRecord): string {
  if (type === 'card') return '{{ data.number | last4 }}'
  if (type === 'bank') return '{{ data.account_number | last4 }}'
  return typeof data === 'object' ? '{{ data.NAME }}' : '{{ data }}'
}
