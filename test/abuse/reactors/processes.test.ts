/** The processes of a run: which process is measured, its limits, and that no process is left after a kill. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { ClientCall, ReactorRuntime } from '../../../src/framework/ports/reactors.js'
import { GuestProcess } from '../../../src/reactor/child.js'
import {
  confineThisNode,
  describeSandbox,
  findConfinement,
  findGuestFile,
  listWrappers,
  type NodeProgram,
} from '../../../src/reactor/confinement.js'
import { DEFAULT_LIMITS, guestSizeOf } from '../../../src/reactor/settings.js'
import { createReactorPool } from '../../../src/reactor/start.js'
import { openEphemeral } from '../../support/ephemeral.js'

const { execPath, versions, platform } = process
const node: NodeProgram = {
  path: execPath,
  version: versions.node,
  platform,
  isRoot: process.getuid?.() === 0,
}
const guestFile = findGuestFile()
const found = await confineThisNode()
const isLinux = platform === 'linux'
const options = { skip: !isLinux && 'needs /proc' }
const SPIN = 'module.exports = () => { for (;;); }'
const SOON_MS = 3_000

/** Returns the processes below `pid`, each with its start time, because a pid can be reused. */
function below(pid: number): { pid: number; parent: number; start: string }[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const known = all.flatMap((name) => readProcess(Number(name)) ?? [])
  const findBelow = (parent: number): typeof known =>
    known.filter((each) => each.parent === parent).flatMap((each) => [each, ...findBelow(each.pid)])
  return findBelow(pid)
}

function readProcess(pid: number) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /, '')
      .split(' ')
    return fields[0] === 'Z' ? undefined : { pid, parent: Number(fields[1]), start: fields[19]! }
  } catch {
    return undefined
  }
}

function readMiB(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

async function until(isTrue: () => boolean, withinMs = SOON_MS): Promise<boolean> {
  const endMs = performance.now() + withinMs
  while (!isTrue() && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 20))
  return isTrue()
}

const areGone = (processes: ReturnType<typeof below>) =>
  processes.every(({ pid, start }) => readProcess(pid)?.start !== start)

const run = (pool: ReactorRuntime, reactor: string, code: string, client: ClientCall | null = null) =>
  pool.run({ tenant: 1, reactor, code, args: {}, configuration: {}, client })

t.test(
  'the limits of time, and of memory outside the heap, apply to reactor code and not to the program around it',
  options,
  async (t) => {
    const limits = { ...DEFAULT_LIMITS, timeMs: 1_000, memoryMiB: 64 }
    const pool = createReactorPool({ confinement: found, settings: { limits } })
    const bomb =
      'module.exports = async () => { const all = []; for (;;) { all.push(new Uint8Array(4e6).fill(1)); await null } }'
    const bombed = await run(pool, 'bomb', bomb)
    t.match(bombed.outcome, { error: { errors: { error: [/more than 64 MiB of memory/] } } })
    t.ok(bombed.memoryMiB > 128 && bombed.memoryMiB < 1_024, 'the measured memory grew', bombed)
    t.match((await run(pool, 'spin', SPIN)).outcome, { error: { code: 'reactor_timeout' } })
    t.ok(await until(() => below(process.pid).length === 0), 'no process is left')
    await pool.close()
  },
)

t.test(
  'the limits of time and memory apply even while the event loop of the host is blocked',
  options,
  async (t) => {
    const limits = { ...DEFAULT_LIMITS, timeMs: 2_000, memoryMiB: 64 }
    const pool = createReactorPool({ confinement: found, settings: { limits } })
    const clock = new Int32Array(new SharedArrayBuffer(4))
    for (const [name, body, code] of [
      ['memory', 'const all = []; for (;;) all.push(new Uint8Array(4e6).fill(1))', 'reactor_failed'],
      ['time', 'for (;;);', 'reactor_timeout'],
    ] as const) {
      let seenMiB = 0
      let isLeft = true
      // The reactor code calls this function when the code starts. The function then blocks the event loop of the host.
      const client = async () => {
        setImmediate(() => {
          const guests = below(process.pid).filter(({ pid }) => readMiB(pid) > 30)
          for (
            const endMs = performance.now() + 3_000;
            performance.now() < endMs;
            Atomics.wait(clock, 0, 0, 5)
          )
            for (const { pid } of guests) seenMiB = Math.max(seenMiB, readMiB(pid))
          isLeft = guests.some(({ pid }) => readMiB(pid) > 0)
        })
        return {}
      }
      const begin = 'await svc.tokens.list({}); await new Promise((resolve) => setTimeout(resolve, 50))'
      const { outcome } = await run(
        pool,
        name,
        `module.exports = async ({ svc }) => { ${begin}; ${body} }`,
        client,
      )
      t.match(outcome, { error: { code } }, name)
      t.notOk(isLeft, `${name}: the child ended while the event loop was blocked`)
      t.ok(seenMiB > 0 && seenMiB < 350, `${name}: the child's memory was limited`, { seenMiB })
    }
    await pool.close()
  },
)

/** Starts a host with two runs that loop forever. `uid` is the user of the host. */
async function startHost(t: Test, uid?: number): Promise<ChildProcess> {
  const program = join(fileURLToPath(new URL('.', import.meta.url)), 'spinning-host.js')
  const user = uid === undefined ? {} : { uid, gid: uid }
  const host = spawn(execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'], ...user })
  t.teardown(() => host.kill('SIGKILL'))
  await new Promise((resolve) => host.stdout!.once('data', resolve))
  return host
}

/**
 * Some systems cannot end a child together with its parent. On these systems, the limit of CPU time ends the child. The
 * limit of CPU time is 14 s for the host of this test.
 */
const killMs = describeSandbox(found, node).ends_with_host ? SOON_MS : 30_000

t.test('if a host is killed with SIGKILL while its runs loop, no process is left', options, async (t) => {
  for (const uid of node.isRoot ? [undefined, 65_534] : [undefined]) {
    const host = await startHost(t, uid)
    const processes = below(host.pid!)
    t.ok(processes.length >= 2, `two runs have ${processes.length} processes`)
    host.kill('SIGKILL')
    t.ok(await until(() => areGone(processes), killMs), 'all processes end soon', { uid })
  }
})

t.test('every confinement that this system supports can run, measure and end a guest', options, async (t) => {
  const tried: string[] = []
  for (const words of listWrappers(node, false)) {
    const confinement = await findConfinement(node, guestFile, [words])
    if (confinement.wrapper.join(' ') !== words) continue
    tried.push(words)
    const guest = new GuestProcess({
      node,
      guestFile,
      size: guestSizeOf(DEFAULT_LIMITS, false),
      confinement,
    })
    t.ok(await guest.ready, words)
    t.equal(
      readlinkSync(`/proc/${guest.pid}/exe`),
      realpathSync(execPath),
      'the measured process is the process that runs the code',
    )
    const limits = readFileSync(`/proc/${guest.pid}/limits`, 'latin1')
    t.match(limits, /^Max cpu time +130 +130 /m)
    t.match(limits, /^Max core file size +0 +0 /m)
    if (confinement.descriptorLimiter !== undefined) t.match(limits, /^Max open files +0 +0 /m)
    const status = readFileSync(`/proc/${guest.pid}/status`, 'latin1')
    if (words.includes('--no-new-privs')) t.match(status, /^NoNewPrivs:\t1$/m)
    if (words.includes('--user')) t.match(status, /^CapEff:\t0+$/m)
    const processes = below(process.pid)
    t.ok(processes.some(({ pid }) => pid === guest.pid))
    guest.kill()
    await guest.ended
    t.ok(await until(() => areGone(processes)), 'no process is left')
  }
  t.ok(tried.includes(''), 'the list also contains the case without confinement')
})

t.test(
  'a change of version, configuration or application starts another child and ends the old child',
  options,
  async (t) => {
    const vault = await openEphemeral({ tenantName: 'test' })
    t.teardown(() => vault.close())
    const ask = async (operation: string, input: Record<string, unknown>) =>
      (await vault.ask({ operation, input, as: { reveal: true } })).result as { id: string }
    const code = 'module.exports = async () => ({ raw: 1 })'
    const body = { name: 'f', type: 'private', code, configuration: [{ name: 'KEY', type: 'string' }] }
    const formula = await ask('formula create', body)
    const reactorBody = { name: 'r', formula: { id: formula.id }, configuration: { KEY: 'one' } }
    const { id } = await ask('reactor create', reactorBody)
    const application = await ask('app create', { name: 'a', type: 'private', permissions: ['token:use'] })
    const seen = new Set<number>()
    const react = async () => {
      await ask('reactor react', { id })
      const children = () => below(process.pid).filter(({ parent }) => parent === process.pid)
      t.ok(await until(() => children().length === 1), 'one child is running')
      return children()[0]!.pid
    }
    const configured = { id, ...reactorBody, configuration: { KEY: 'two' } }
    const changes: (() => Promise<unknown>)[] = [
      async () => undefined,
      () => ask('formula update', { id: formula.id, ...body, code: `${code} // 2` }),
      () => ask('reactor update', configured),
      () => ask('reactor update', { ...configured, application }),
    ]
    for (const [at, change] of changes.entries()) {
      await change()
      const pid = await react()
      t.notOk(seen.has(pid), `change ${at} starts another child`)
      seen.add(pid)
      t.equal(await react(), pid, 'the child is kept until the next change')
    }
  },
)
