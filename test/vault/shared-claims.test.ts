import t from 'tap'
import { createSharedClaims, LEASE_MS } from '../../src/vault/shared-claims.js'
import { openEphemeral } from '../support/ephemeral.js'

t.test(
  'if a server has lost the lease of a claim, renewing the claim does not restore the lease',
  async (t) => {
    let now = Date.now()
    const app = await openEphemeral({ tenantName: 'first', clock: () => now })
    const { number } = await app.tenant()
    const { setInterval } = globalThis
    const renewals: (() => void)[] = []
    t.teardown(async () => {
      globalThis.setInterval = setInterval
      await app.close()
    })
    globalThis.setInterval = ((renew: () => void) => {
      renewals.push(renew)
      return setInterval(() => undefined, 2 ** 30)
    }) as typeof setInterval
    let written: Promise<unknown> | undefined
    const store: typeof app.store = {
      ...app.store,
      write: (work, durability) => {
        const writing = app.store.write(work, durability)
        written = writing
        return writing
      },
    }
    const [one, two] = [1, 2].map(() => createSharedClaims({ ...app, store }))
    const first = await one!.take(number, 'work', { isLong: true })
    const renew = async () => {
      renewals[0]!()
      await written
    }
    now += LEASE_MS - 1
    await renew()
    now += LEASE_MS - 1
    t.equal(
      await two!.take(number, 'work', { isLong: true }),
      undefined,
      'the claim was renewed, so it cannot be claimed by others',
    )
    now += 2
    const second = await two!.take(number, 'work', { isLong: true })
    await renew()
    await second!.end()
    await renew()
    t.equal(await two!.has(number, 'work'), false)
    await first!.end()
  },
)
