/** `coffer doctor`: each check finds its problem, and then says what to do. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { judgeSandbox } from '../../src/cli/commands/doctor.js'
import { describeSandbox, findConfinement, listWrappers } from '../../src/reactor/confinement.js'
import { createVaultHome, testHome, testVault } from './home.js'

interface Finding {
  check: string
  state: string
  found: string
  advice?: string
}

testVault('a healthy vault passes every check of doctor', async (t, home) => {
  await home.createToken()
  const findings: Finding[] = await home.json('doctor')
  const checks = 'node permissions lock vault no_reveal chain dumps sandbox'
  t.equal(findings.map(({ check }) => check).join(' '), checks)
  for (const { state, check } of findings) if (check !== 'sandbox') t.equal(state, 'ok', check)
  t.match(findings[3], { found: 'The vault opens, and has 1 token.' })
  const { code, stdout } = await home.run('doctor', { columns: 100 })
  t.match({ code, stdout }, { code: 0, stdout: /^check +state +found/ })
  const isAdvised = /^\S+ +(warning|wrong) /m.test(stdout)
  t.equal(stdout.split('\n')[0]!.includes('advice'), isAdvised, 'no column of the table is empty')
})

testVault(
  'a failed check of doctor names the problem and a remedy, and the exit code is 1',
  async (t, home) => {
    const vault = join(home.place, '.coffer')
    const examine = async (options: object = {}) => {
      const { code, stdout, stderr } = await home.run('doctor', options)
      const wrong = (JSON.parse(stdout) as Finding[]).filter(({ state }) => state === 'wrong')
      t.match({ code, stderr }, { code: 1, stderr: /Checks that failed: \d of \d/ })
      for (const { found, advice = '' } of wrong) t.match(stderr, `${found} ${advice}`.trim())
      return wrong
    }
    const found = 'Node v20.18.1 is too old.'
    const advice = 'Install Node 20.19 or newer.'
    t.match(await examine({ version: 'v20.18.1' }), [{ check: 'node', found, advice }])
    chmodSync(join(vault, 'state'), 0o644)
    const exposed = { check: 'permissions', found: /state/, advice: `Run: chmod -R go= ${vault}` }
    t.match(await examine(), [exposed])
    chmodSync(join(vault, 'state'), 0o600)
    const other = { pid: 1, started: '1', boot: 'other', host: 'elsewhere', since: 0, nonce: 'n' }
    writeFileSync(join(vault, 'lock'), JSON.stringify(other), { mode: 0o600 })
    const held = await home.run('doctor --quiet')
    t.match(held, { code: 1, stdout: `If the process has ended: rm ${vault}/lock` })
    rmSync(join(vault, 'lock'))
    t.equal((await home.run('doctor')).code, 0)
  },
)

testHome(
  'doctor runs its other checks even if there is no vault or the vault cannot be opened',
  async (t, home) => {
    t.match(await home.run('doctor'), {
      code: 1,
      stdout: /^\[{"check":"node","state":"ok".*},{"check":"vault",[^}]*}\]\n$/,
    })
    t.equal((await home.run('doctor --vault nowhere')).code, 1)
    const vaulted = await createVaultHome(t)
    const locked = await vaulted.run('doctor', { env: { COFFER_KEY_FILE: vaulted.write('not.key', 'x') } })
    t.equal(locked.code, 1)
    const states = (JSON.parse(locked.stdout) as Finding[]).map(({ check, state }) => `${check} ${state}`)
    t.match(states, ['node ok', 'permissions ok', 'lock ok', 'vault wrong'])
  },
)

const node = { path: process.execPath, version: '20.19.0', platform: 'linux' }

t.test('doctor reports how reactor code is confined, and names a remedy for each missing part', async (t) => {
  const [best = ''] = listWrappers(node, false).filter((words) => words.includes('--user'))
  const whole = { wrapper: best.split(' '), descriptorLimiter: ['/usr/bin/prlimit'] }
  const [state, found] = judgeSandbox(describeSandbox(whole, { ...node, version: '25.0.0' }))
  t.equal(state, 'ok')
  t.match(found, /^Reactor code is confined by: node permissions, .*ends with host\.$/)
  t.match(judgeSandbox(describeSandbox(whole, node)), ['ok', / Not available: node network permission\.$/])
  t.match(judgeSandbox(describeSandbox({ wrapper: ['unshare', '--user', '--net'] }, node)), [
    'warning',
    'Reactor code is not confined by: process namespace, no new descriptors, ends with host. Reactor code is confined by: node permissions, network namespace, user namespace. Not available: node network permission, no new privileges.',
    /util-linux/,
  ])
})

testVault('doctor reports every part of the confinement that vault status reports', async (t, home) => {
  const { reactor_sandbox } = await home.json('vault status')
  const { found } = ((await home.json('doctor')) as Finding[]).find(({ check }) => check === 'sandbox')!
  for (const name of Object.keys(reactor_sandbox)) t.ok(found.includes(name.replaceAll('_', ' ')), name)
})

t.test('a confinement tool that is missing is not used, and on macOS no tool is used', async (t) => {
  t.same(await findConfinement({ ...node, platform: 'darwin' }, '/guest.mjs', ['setpriv']), { wrapper: [] })
  t.same((await findConfinement(node, import.meta.filename, ['no-such-tool --net', ''])).wrapper, [])
  t.same((await findConfinement(node, '/no/such/guest.mjs', [''])).wrapper, [])
})

t.test(
  'a host that root started changes the user of the child, except if the bundles are private',
  async (t) => {
    const root = { ...node, isRoot: true }
    t.ok(listWrappers(root, false).some((words) => words.includes('--reuid 65534')))
    t.notOk(listWrappers(root, true).some((words) => words.includes('--reuid')))
    t.notOk(listWrappers(node, false).some((words) => words.includes('--reuid')))
  },
)
