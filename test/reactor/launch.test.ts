import t from 'tap'
import { startGuest } from '../../src/reactor/child.js'
import { describeLaunch } from '../../src/reactor/launch.js'
import { DEFAULT_LIMITS } from '../../src/reactor/limits.js'

const launch = (version: string, platform = 'linux', modulesDirectory?: string, wrapper: string[] = []) =>
  describeLaunch({
    node: { path: '/usr/bin/node', version, platform },
    guestFile: '/app/guest.mjs',
    modulesDirectory,
    limits: DEFAULT_LIMITS,
    confinement: { wrapper },
  })

t.test('each version of Node is given the flags that it knows', async (t) => {
  const permission = (version: string) => launch(version).args.find((arg) => arg.endsWith('permission'))
  t.equal(permission('20.19.0'), '--experimental-permission')
  t.equal(permission('22.12.0'), '--experimental-permission')
  t.equal(permission('22.13.0'), '--permission')
  t.equal(permission('24.0.0'), '--permission')
  t.equal(permission('26.1.0'), '--permission')
  t.notOk(launch('22.13.1').args.includes('--disable-sigusr1'))
  t.ok(launch('22.14.0').args.includes('--disable-sigusr1'))
  t.notOk(launch('22.4.1').args.includes('--no-experimental-sqlite'))
  t.ok(launch('22.5.0').args.includes('--no-experimental-sqlite'))
})

t.test('the guest may read its own file, and the bundles when there are some', async (t) => {
  t.same(launch('20.19.0').args.slice(2), [
    'sh',
    '50',
    '/usr/bin/env',
    '-i',
    'TZ=UTC',
    '/usr/bin/node',
    '--experimental-permission',
    '--max-old-space-size=128',
    '--no-addons',
    '--disable-proto=delete',
    '--zero-fill-buffers',
    '--no-warnings',
    '--allow-fs-read=/app/guest.mjs',
    '/app/guest.mjs',
  ])
  t.same(launch('20.19.0', 'linux', '/bundles').args.slice(-4), [
    '--allow-fs-read=/app/guest.mjs',
    '--allow-fs-read=/bundles/*',
    '/app/guest.mjs',
    '/bundles',
  ])
})

t.test('a shell limits the child where there is one', async (t) => {
  t.equal(launch('20.19.0').command, '/bin/sh')
  t.match(launch('20.19.0').args[1], /ulimit -c 0\nulimit -t "\$1"/)
  t.match(launch('20.19.0').args[1], '\nexec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-\nexec "$@"')
  const held = launch('20.19.0', 'linux', undefined, ['unshare', '--net']).args
  t.same(held.slice(3, 7), ['50', 'unshare', '--net', '/usr/bin/env'])
  t.equal(launch('20.19.0', 'win32').command, '/usr/bin/node')
})

t.test('a message that cannot be written ends its guest, and nothing else', async (t) => {
  const node = { path: process.execPath, version: process.versions.node, platform: process.platform }
  const guest = startGuest({
    node,
    guestFile: '/none.mjs',
    limits: DEFAULT_LIMITS,
    confinement: { wrapper: [] },
  })
  // As text that is too long, no JSON has it.
  await guest.send({ kind: 'check', code: 1n as unknown as string })
  await guest.ended
  t.equal(await guest.ready, false)
})
