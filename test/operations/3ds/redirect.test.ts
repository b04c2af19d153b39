/**
 * The redirect page refuses sessions that were created without a redirect page. The file `http/bank-pages.test.ts`
 * tests the pages themselves.
 */
import t from 'tap'
import type { ThreeDsSessionRecord } from '../../../src/domain/records/records.js'
import {
  authenticateByPage,
  finishByPage,
  hasSucceeded,
  isDecoupled,
  openRedirect,
} from '../../../src/operations/3ds/redirect.js'
import { openTestVault } from '../../support/test-vault.js'

t.test(
  'the redirect page can open, authenticate or end only a session that has a redirect page',
  async (t) => {
    const { app, ask } = await openTestVault()
    t.teardown(() => app.close())
    const card = (await ask('token create', { type: 'card', data: { number: '4200000000000002' } })) as {
      id: string
    }
    const merchant = (await ask('3ds create', { token_id: card.id, type: 'merchant' })) as { id: string }
    for (const id of [merchant.id, 'nope']) {
      await t.rejects(openRedirect(app, id, undefined), { code: 'not_found' }, 'open')
      const page = { id, traceId: 'trace' }
      await t.rejects(
        authenticateByPage(app, { ...page, deviceInfo: {} }),
        { code: 'not_found' },
        'authenticate',
      )
      await t.rejects(finishByPage(app, page), { code: 'not_found' }, 'finish')
    }
    t.same((await ask('3ds get', { id: merchant.id })).authentication, undefined)
  },
)

t.test('a session that is not authenticated yet does not count as successful or as decoupled', async (t) => {
  const session = {} as ThreeDsSessionRecord
  t.equal(hasSucceeded(session), false)
  t.equal(isDecoupled(session), false)
})
