/** The sentences about tenants whose keys are lost. */
import t from 'tap'
import {
  describeLostTenant,
  describeLostTenants,
  LostTenants,
} from '../../src/domain/records/lost-tenants.js'

t.test(
  'lost rows are counted by tenant, and a sentence for each tenant says how many rows are lost',
  async (t) => {
    const lost = new LostTenants()
    for (const tenant of [7, 2, 7]) lost.count(tenant)
    t.strictSame(lost.list(), [
      { tenant: 2, rows: 1 },
      { tenant: 7, rows: 2 },
    ])
    t.strictSame(lost.list().map(describeLostTenant), [
      'The keys of tenant number 2 are lost, so its only row cannot be read.',
      'The keys of tenant number 7 are lost, so none of its 2 rows can be read.',
    ])
  },
)

t.test('a message about many tenants with lost keys names ten tenants and counts the others', async (t) => {
  const many = Array.from({ length: 12 }, (_, index) => ({ tenant: index + 1, rows: 3 }))
  const text = describeLostTenants(many)
  t.match(text, /number 10 are lost/)
  t.notMatch(text, /number 11/)
  t.match(
    text,
    /The keys of 2 more tenants are lost too\. Restore a backup: coffer vault restore FILE --vault NEW$/,
  )
  t.match(describeLostTenants(many.slice(0, 11)), /The keys of 1 more tenant are lost too\. Restore/)
  t.equal(describeLostTenants([]), 'Restore a backup: coffer vault restore FILE --vault NEW')
})
