/**
 * Tests of the lock of a vault. At any time, the lock has at most one owner. If the owner has ended, another process
 * takes over the lock without a race. A process waits for the lock only a limited time.
 */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { storageError } from '../../src/storage/files.js'
import {
  acquireLock,
  type LockOptions,
  type ProcessIdentity,
  readLockHolder,
  readProcessIdentity,
} from '../../src/storage/lock.js'
import { FakeFiles } from './fake-files.js'
import { repeatableRandom } from './powers.js'

/**
 * Parses running processes, such as `10a 11b`: the pid 10 with the start time `a`, and the pid 11 with the start time
 * `b`.
 */
const processes = (text: string) =>
  new Map(text.split(' ').map((each) => [Number.parseInt(each, 10), each.replace(/^\d+/, '')]))

/**
 * Returns the identity of a process on a machine. `living` has the start time of each process that runs on this
 * machine, by pid.
 */
function machine(living: Map<number, string>, pid: number, host = 'here', boot = 'boot'): ProcessIdentity {
  return { pid, startOf: (other) => living.get(other), boot, host }
}

function optionsFor(
  files: FakeFiles,
  identity: ProcessIdentity,
  part: Partial<LockOptions> = {},
): LockOptions {
  const random = repeatableRandom(`pid ${identity.pid}`)
  const wait = async () => undefined
  const notice = (text: string) => t.fail(`no notice is expected: ${text}`)
  return {
    files,
    directory: '/vault',
    identity,
    random,
    clock: () => 7,
    notice,
    wait,
    timeoutMs: 100,
    ...part,
  }
}

function makeDisk(): FakeFiles {
  const files = new FakeFiles()
  files.makeDirectory('/vault')
  return files
}

const locks = (files: FakeFiles) => files.list('/vault').filter((name) => name.startsWith('lock'))

t.test(
  'a lock can be acquired and names its holder, and after its release there is no lock file',
  async (t) => {
    const files = makeDisk()
    const living = processes('10a')
    const identity = machine(living, 10)
    t.equal(readLockHolder(files, '/vault', identity), undefined)
    const lock = await acquireLock(optionsFor(files, identity))
    t.match(readLockHolder(files, '/vault', identity), { holder: { started: 'a', since: 7 }, state: 'alive' })
    t.strictSame(locks(files), ['lock'])
    lock.release()
    lock.release()
    t.strictSame(locks(files), [])
  },
)

t.test('if a lock cannot be removed, the release reports this and does not fail', async (t) => {
  const files = makeDisk()
  const notices: string[] = []
  const living = processes('10a')
  const options = optionsFor(files, machine(living, 10), { notice: (text) => void notices.push(text) })
  const lock = await acquireLock(options)
  files.fault = { at: files.steps + 1, code: 'EIO' }
  lock.release()
  t.equal(files.failed, 'remove')
  t.strictSame(locks(files), ['lock'])
  t.match(notices, [
    /^The lock \/vault\/lock was not removed\. .*the disk reports an error.* remove it: rm -r \/vault\/lock$/,
  ])
  files.fault = undefined
  await acquireLock(optionsFor(files, machine(processes('11b'), 11)))
  t.strictSame(locks(files), ['lock'], 'the next command removes the lock of the process that has ended')
})

/** A disk on which no file can be created. */
class UnwritableFiles extends FakeFiles {
  code = ''

  override create(path: string): number {
    if (this.code !== '') throw storageError('create', path, { code: this.code })
    return super.create(path)
  }
}

t.test('a vault on a read-only file system is refused with a command that makes a usable copy', async (t) => {
  const files = new UnwritableFiles()
  files.makeDirectory('/vault')
  const options = optionsFor(files, machine(processes('10a'), 10))
  for (const [code, message] of [
    ['EROFS', /^\/vault is on a read-only file system.* cp -a \/vault COPY, then --vault COPY\.$/],
    ['EACCES', /^You may not create files in \/vault.* `chmod u\+rwx \/vault`\./],
    ['ENOSPC', /no space is left/],
  ] as const) {
    files.code = code
    await t.rejects(acquireLock(options), { code: 'storage_failed', message }, code)
    await t.rejects(
      acquireLock({ ...options, name: 'x.lock' }),
      { message: /^Cannot create/ },
      'a lock beside a file',
    )
  }
  t.strictSame(locks(files), [])
})

t.test(
  'a process that acquires a lock waits for a running owner, and reports the owner for which it waits',
  async (t) => {
    const files = makeDisk()
    const living = processes('10a 11b')
    const first = await acquireLock(optionsFor(files, machine(living, 10)))
    let waitedMs = 0
    const wait = async (ms: number) => {
      waitedMs += ms
    }
    const impatient = optionsFor(files, machine(living, 11), { wait, timeoutMs: 10_000 })
    await t.rejects(acquireLock(impatient), { code: 'unavailable', message: /process 10\. Waited 10 s/ })
    t.ok(waitedMs >= 10_000 && waitedMs <= 10_020, `waited ${waitedMs}`)
    t.strictSame(locks(files), ['lock'])
    await acquireLock(optionsFor(files, machine(living, 11), { wait: async () => first.release() }))
    first.release()
    t.equal(
      readLockHolder(files, '/vault', machine(living, 10))?.holder?.pid,
      11,
      "the first owner's second release does not release the lock of the second owner",
    )
  },
)

t.test(
  'a lock can be taken over from a dead process, even if its pid is in use again or the machine has restarted',
  async (t) => {
    for (const [title, living, boot] of [
      ['dead', '11b', 'boot'],
      ['reused pid', '10later 11b', 'boot'],
      ['restarted', '10a 11b', 'another boot'],
      ['emptied by a power cut', '10a 11b', 'boot'],
    ] as const) {
      const files = makeDisk()
      await acquireLock(optionsFor(files, machine(processes('10a'), 10)))
      const empty = title.startsWith('emptied') ? ['lock', 'lock.p-12-x'] : []
      for (const name of empty) files.plant(`/vault/${name}`, Buffer.alloc(0))
      const { holder } = await acquireLock(optionsFor(files, machine(processes(living), 11, 'here', boot)))
      t.equal(holder.pid, 11, title)
      t.strictSame(locks(files), ['lock'], title)
    }
  },
)

t.test('a lock that another machine holds is not taken over', async (t) => {
  const files = makeDisk()
  await acquireLock(optionsFor(files, machine(processes('10a'), 10, 'there', 'their boot')))
  const options = optionsFor(files, machine(processes('11b'), 11))
  await t.rejects(acquireLock(options), { code: 'unavailable', message: /on there.*remove \/vault\/lock/ })
})

t.test('an owner in another container keeps the lock until that owner is known to have ended', async (t) => {
  for (const [host, otherHost] of [
    ['here', 'here'],
    ['one', 'other'],
  ] as const) {
    const files = makeDisk()
    const owner = machine(processes('10a'), 10, host, 'boot/pid:[1]')
    const { holder } = await acquireLock(optionsFor(files, owner, { isServer: true }))
    const other = machine(processes('11b'), 11, otherHost, 'boot/pid:[2]')
    t.equal(readLockHolder(files, '/vault', other)?.state, 'unknown')
    await t.rejects(acquireLock(optionsFor(files, other)), { code: 'unavailable', message: /container/ })
    const living = optionsFor(files, other, { hasEnded: async () => false })
    await t.rejects(acquireLock(living), { code: 'unavailable' })
    t.strictSame(
      readLockHolder(files, '/vault', owner),
      { holder, state: 'alive' },
      'the owner still has the lock',
    )
    const ended = optionsFor(files, other, { hasEnded: async ({ nonce }) => nonce === holder.nonce })
    t.equal((await acquireLock(ended)).holder.pid, 11)
  }
})

t.test(
  'the lock of an owner on another machine is kept, without a check whether this owner has ended',
  async (t) => {
    const files = makeDisk()
    await acquireLock(optionsFor(files, machine(processes('10a'), 10, 'there', 'their boot')))
    const options = optionsFor(files, machine(processes('11b'), 11), { hasEnded: async () => true })
    await t.rejects(acquireLock(options), { code: 'unavailable', message: /on there/ })
  },
)

t.test('a lock recognizes its machine even after the name of the machine has changed', async (t) => {
  const files = makeDisk()
  await acquireLock(optionsFor(files, machine(processes('10a'), 10, 'before', 'boot/pid:[1]')))
  const renamed = machine(processes('11b'), 11, 'after', 'boot/pid:[1]')
  t.equal((await acquireLock(optionsFor(files, renamed))).holder.pid, 11)
})

t.test('the process that has waited longest for a lock acquires the lock next', async (t) => {
  const files = makeDisk()
  const pids = Array.from({ length: 30 }, (_, index) => 10 + index)
  const living = new Map(pids.map((pid) => [pid, 'a']))
  const order: number[] = []
  let time = 0
  const first = await acquireLock(optionsFor(files, machine(living, 99)))
  const clock = () => ++time
  const all = pids.map(async (pid) => {
    const wait = () => new Promise<void>((resolve) => setImmediate(resolve))
    const lock = await acquireLock(optionsFor(files, machine(living, pid), { clock, wait, timeoutMs: 500 }))
    order.push(pid)
    // All rounds together take longer than `timeoutMs`, but each holder keeps the lock for less than `timeoutMs`.
    for (let rounds = 0; rounds < 10; rounds++) await wait()
    lock.release()
  })
  first.release()
  await Promise.all(all)
  t.strictSame(order, pids)
})

t.test('after a crash at any step of a takeover, exactly one process acquires the lock next', async (t) => {
  const living = processes('11b 12c')
  const prepared = async () => {
    const files = makeDisk()
    await acquireLock(optionsFor(files, machine(processes('10a'), 10)))
    return files
  }
  const whole = await prepared()
  const before = whole.steps
  await acquireLock(optionsFor(whole, machine(living, 11)))
  const steps = whole.steps - before
  t.ok(steps >= 6, `${steps} steps`)
  for (let step = 1; step <= steps; step++) {
    const files = await prepared()
    files.fault = { at: files.steps + step, code: 'stop' }
    await t.rejects(acquireLock(optionsFor(files, machine(living, 11))), { message: /^stopped/ })
    const left = files.afterCrash(false)
    const { holder } = await acquireLock(optionsFor(left, machine(processes('12c'), 12)))
    t.equal(holder.pid, 12, `after step ${step}`)
    t.strictSame(locks(left), ['lock'], `after step ${step} no other file is left`)
  }
})

t.test(
  'if two processes find that the owner of a lock is dead, they never both acquire the lock',
  async (t) => {
    const files = makeDisk()
    const living = processes('11b 12c')
    await acquireLock(optionsFor(files, machine(processes('10a'), 10)))
    // While process 11 checks the dead owner, process 12 takes the lock.
    let fast: Promise<unknown> | undefined
    const identity = machine(living, 11)
    const slow: ProcessIdentity = {
      ...identity,
      startOf: (pid) => {
        if (pid === 10) fast ??= acquireLock(optionsFor(files, machine(living, 12)))
        return living.get(pid)
      },
    }
    await t.rejects(acquireLock(optionsFor(files, slow)), { code: 'unavailable', message: /process 12/ })
    await fast
    t.match(readLockHolder(files, '/vault', identity), { holder: { pid: 12 }, state: 'alive' })
  },
)

t.test('the start time of a running process is known, and an ended process has no start time', (t) => {
  const pid = Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }))
  const identity = readProcessIdentity(process.pid)
  t.type(identity.startOf(process.pid), 'string')
  t.equal(identity.startOf(process.pid), identity.startOf(process.pid))
  t.equal(identity.startOf(pid), undefined)
  t.end()
})
