import t from 'tap'
import { describeConfinement, describeConfinementGaps } from '../../src/cli/context/sandbox.js'
import { describeSandbox, findConfinement, listWrappers } from '../../src/reactor/confinement.js'

const node = { path: process.execPath, version: '20.19.0', platform: 'linux' }

t.test('what holds reactor code is said, and what to do about what does not', async (t) => {
  const [best = ''] = listWrappers(node, false).filter((words) => words.includes('--user'))
  const whole = { wrapper: best.split(' '), descriptorLimiter: ['/usr/bin/prlimit'] }
  t.equal(describeConfinementGaps(describeSandbox(whole, { ...node, version: '25.0.0' })), undefined)
  t.notMatch(describeConfinement(describeSandbox(whole, { ...node, version: '25.0.0' })), 'Not available')
  t.equal(
    describeConfinement(describeSandbox({ wrapper: ['unshare', '--user', '--net'] }, node)),
    'Reactor code is confined by: node permissions, network namespace, user namespace. ' +
      'Not available: node network permission, process namespace, no new privileges, no new descriptors, ends with host.',
  )
  t.match(
    describeConfinementGaps(describeSandbox({ wrapper: ['unshare', '--user', '--net'] }, node)),
    /not confined by: process namespace, no new descriptors, ends with host\. .* util-linux /,
  )
})

t.test('other systems are asked for nothing, and what does not work here is not used', async (t) => {
  t.same(await findConfinement({ ...node, platform: 'darwin' }, '/guest.mjs', ['setpriv']), { wrapper: [] })
  t.same((await findConfinement(node, import.meta.filename, ['no-such-tool --net', ''])).wrapper, [])
  t.same((await findConfinement(node, '/no/such/guest.mjs', [''])).wrapper, [])
})

t.test('who has bundles that are theirs alone stays the user they are', async (t) => {
  const root = { ...node, isRoot: true }
  t.ok(listWrappers(root, false).some((words) => words.includes('--reuid 65534')))
  t.notOk(listWrappers(root, true).some((words) => words.includes('--reuid')))
  t.notOk(listWrappers(node, false).some((words) => words.includes('--reuid')))
})
