import type { RecordOf } from '../../domain/records/records.js'
import { type EventTools, writeEntries } from '../../framework/events.js'
import type { Waiting } from '../../framework/ports/deliveries.js'

/**
 * If the key has expired, removes the key from its application, and logs the removal. Returns the deliveries to enqueue
 * after the commit.
 */
export async function purgeKey(tools: EventTools, { id: hash }: RecordOf['api_key']): Promise<Waiting[]> {
  const { store, createUuid } = tools
  const { tenant = 0, application_id: id = '' } = (await store.purge('api_key', 0, hash)) ?? {}
  const owner = await store.get('tenant', 0, String(tenant))
  // The applications of a deleted tenant are deleted with the tenant.
  const application = owner && (await store.get('application', tenant, id))
  const key = application?.keys.find((each) => each.hash === hash)
  if (owner === undefined || application === undefined || key === undefined) return []
  const keys = application.keys.filter((each) => each !== key)
  await store.replace('application', tenant, { ...application, keys })
  const as = { operation: 'update', message: 'Application key expired', derivesNoEvent: true } as const
  const event = { type: 'application.key.deleted', about: { ...key, application_id: id } } as const
  return writeEntries(
    tools,
    owner,
    [{ type: 'application', id, as, actor: { type: 'system' }, event }],
    createUuid(),
  )
}
