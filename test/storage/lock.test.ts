/** The vault's lock: one owner at a time, taken over from the dead without a race, waited for with a bound. */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import {
  acquireLock,
  type LockOptions,
  type ProcessIdentity,
  readLockHolder,
  readProcessIdentity,
} from '../../src/storage/lock.js'
import { FakeFiles } from './fake-files.js'
import { repeatableRandom } from './powers.js'

/** Living processes, such as `10a 11b`: each a number and when it started. */
const processes = (text: string) =>
  new Map(text.split(' ').map((each) => [Number.parseInt(each, 10), each.replace(/^\d+/, '')]))

/** Processes of one machine: those in `living`, each with its start. */
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
  return { files, directory: '/vault', identity, random, clock: () => 7, wait, timeoutMs: 100, ...part }
}

function makeDisk(): FakeFiles {
  const files = new FakeFiles()
  files.makeDirectory('/vault')
  return files
}

const locks = (files: FakeFiles) => files.list('/vault').filter((name) => name.startsWith('lock'))

t.test('is taken, told, let go, and leaves nothing behind', async (t) => {
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
})

t.test('waits for a living owner, and says whom it waited for', async (t) => {
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
  t.equal(readLockHolder(files, '/vault', machine(living, 10))?.holder?.pid, 11, 'not let go by the first')
})

t.test('takes over from the dead, from a number given again, and from before a restart', async (t) => {
  for (const [title, living, boot] of [
    ['dead', '11b', 'boot'],
    ['number given again', '10later 11b', 'boot'],
    ['restarted', '10a 11b', 'another boot'],
    ['left empty by a power cut', '10a 11b', 'boot'],
  ] as const) {
    const files = makeDisk()
    await acquireLock(optionsFor(files, machine(processes('10a'), 10)))
    const empty = title.startsWith('left') ? ['lock', 'lock.p-12-x'] : []
    for (const name of empty) files.plant(`/vault/${name}`, Buffer.alloc(0))
    const { holder } = await acquireLock(optionsFor(files, machine(processes(living), 11, 'here', boot)))
    t.equal(holder.pid, 11, title)
    t.strictSame(locks(files), ['lock'], title)
  }
})

t.test('does not judge an owner on another machine', async (t) => {
  const files = makeDisk()
  await acquireLock(optionsFor(files, machine(processes('10a'), 10, 'there')))
  const options = optionsFor(files, machine(processes('11b'), 11))
  await t.rejects(acquireLock(options), { code: 'unavailable', message: /on there.*remove \/vault\/lock/ })
})

t.test('one that has waited longest is served next, however many came before and after it', async (t) => {
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
    // Longer than `timeoutMs` for all together, shorter for one holder.
    for (let rounds = 0; rounds < 10; rounds++) await wait()
    lock.release()
  })
  first.release()
  await Promise.all(all)
  t.strictSame(order, pids)
})

t.test('whoever dies at whichever step of taking over, the next one owns alone', async (t) => {
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
    t.strictSame(locks(left), ['lock'], `after step ${step} nothing is left over`)
  }
})

t.test('of two who found the same owner dead, the slower takes nothing from the faster', async (t) => {
  const files = makeDisk()
  const living = processes('11b 12c')
  await acquireLock(optionsFor(files, machine(processes('10a'), 10)))
  // While 11 judges the dead owner, 12 takes the vault over.
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
})

t.test('knows of a real process when it began, and of an ended one nothing', (t) => {
  const pid = Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }))
  const identity = readProcessIdentity(process.pid)
  t.type(identity.startOf(process.pid), 'string')
  t.equal(identity.startOf(process.pid), identity.startOf(process.pid))
  t.equal(identity.startOf(pid), undefined)
  t.end()
})
