import t from 'tap'
import { shortenIds } from '../../../src/domain/token/short-id.js'

const UUID = '1ec69a3f-0f4c-4b0e-8a0f-3f1f3a4dba11'

t.test(
  'random ids are shortened to as few groups as distinguish them, and ids that callers chose are not shortened',
  async (t) => {
    const near = UUID.replace('0f4c', '0f4d')
    const short = ['1ec69a3f-0f4c', '1ec69a3f-0f4d', 'customer-42', '2ec69a3f']
    t.same(shortenIds([UUID, near, 'customer-42', UUID.replace('1e', '2e')]), short)
  },
)
