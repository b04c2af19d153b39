/** `coffer unlock` and `vault lock`, as processes of their own. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { createMachine } from './binary.js'

t.setTimeout(400_000)

t.test('a vault with a passphrase stays open until it is locked', async (t) => {
  const machine = await createMachine()
  t.teardown(() => machine.remove())
  const { place } = machine
  writeFileSync(join(place, 'pass'), 'correct horse battery\n', { mode: 0o600 })
  writeFileSync(join(place, 'wrong'), 'incorrect horse\n', { mode: 0o600 })
  const run = async (line: string, stdin?: string) => machine.coffer(line.split(' '), stdin)
  const sessions = join(place, '.config/coffer/coffer-unlocked')
  const byPass = '--vault locked --passphrase-file pass'
  t.equal((await run(`init ${byPass}`)).code, 0)
  t.teardown(() => run('vault lock --vault locked'))

  const wrong = await run('unlock --vault locked --passphrase-file wrong')
  t.match([wrong.code, wrong.stderr], [6, /Wrong passphrase/])
  const keyed = await run('unlock')
  t.match([keyed.code, keyed.stderr], [2, /nothing to unlock/])
  t.equal((await run(`unlock --for 25h ${byPass}`)).code, 2)
  t.match((await run('vault lock --vault locked')).stderr, 'The vault is locked.')

  // That it returns shows that the process in the background has none of its streams.
  const unlocked = await run(`unlock --for 5m ${byPass}`)
  t.match(
    [unlocked.code, unlocked.stderr],
    [0, /open until .*\. To lock it before: coffer vault lock --vault \/.*locked$/m],
    unlocked.stderr,
  )
  const [name = ''] = readdirSync(sessions)
  t.equal(statSync(sessions).mode & 0o777, 0o700)
  t.equal(statSync(join(sessions, name)).mode & 0o777, 0o600)
  const token = '{"id":"kept","type":"token","data":"a"}'
  t.equal((await run('token create --vault locked', token)).code, 0, 'without the passphrase')
  const status = JSON.parse((await run('vault status --vault locked')).stdout)
  t.equal(
    (await run('completion words -- tenant use --vault locked defau')).stdout,
    'default\n',
    'also for completion',
  )
  t.match(status, { tokens: 1, unlocked_until: String, held_by: { state: 'alive' } })
  const { pid } = status.held_by
  if (existsSync('/proc/self/stat')) {
    const after = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    t.equal(Number(after[3]), pid, 'its own session')
    t.equal(Number(after[4]), 0, 'without a terminal')
    t.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max core file size +0 /m)
    t.notMatch(
      readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'utf8'),
      'horse',
    )
  }
  const second = await run(`unlock ${byPass}`)
  t.match([second.code, second.stderr], [9, /has this vault open/])
  t.equal((await run('token list --vault locked')).code, 0, 'the first is not disturbed')

  const unseen = await machine.bash('XDG_RUNTIME_DIR=$PWD coffer vault lock --vault locked')
  t.match(
    [unseen.code, unseen.stderr],
    [9, new RegExp(`Process ${pid} still has the vault open.*kill ${pid}`)],
  )
  t.match((await run('vault lock --vault locked')).stderr, 'The vault is locked.')
  t.same(readdirSync(sessions), [])
  const locked = await run('token list --vault locked')
  t.match([locked.code, locked.stderr], [6, /needs a passphrase/])
  t.equal(existsSync(join(place, 'locked/lock')), false)

  t.equal((await run(`unlock --for 1s ${byPass}`)).code, 0)
  while (existsSync(join(place, 'locked/lock'))) await setTimeout(50)
  t.equal((await run('token list --vault locked')).code, 6, 'its time is over')

  t.equal((await run(`unlock --for 5m ${byPass}`)).code, 0)
  rmSync(sessions, { recursive: true })
  while (existsSync(join(place, 'locked/lock'))) await setTimeout(50)
  t.equal((await run('token list --vault locked')).code, 6, 'the log-out removed the session')
})
