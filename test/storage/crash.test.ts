/**
 * Deaths at every step: whatever moment a process or a machine ends at, the vault opens again with everything that was
 * acknowledged, and with the work under way either whole or not at all.
 */
import t, { type Test } from 'tap'
import type { Engine } from '../../src/storage/engine.js'
import { hasHeader } from '../../src/storage/vault-file.js'
import { draftOf } from './engine-suite.js'
import { asLog, createFileEngine, type FileEngine, openFileEngine } from './engines.js'
import { FakeFiles, type Fault } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

const KIND = 3
const idOf = (name: string) => digest(`id/${KIND}/1/${name}`, 16)

/** What a vault holds, by name; logs by their number. */
type Contents = Map<string, string>

interface Act {
  title: string
  run(engine: FileEngine): Promise<unknown>
  /** What the vault holds after it. */
  expect(contents: Contents): void
  /** Answered before it is stored. */
  isSoon?: boolean
  /** A name that must not be there before. */
  inserts?: string
}

const put = (name: string, text: string): Act => ({
  title: `put ${name}`,
  run: (engine) => engine.write((writer) => writer.put(draftOf({ name, text, keys: ['red'] }))),
  expect: (contents) => contents.set(name, text),
  inserts: name,
})

const replace = (name: string, text: string): Act => ({
  title: `replace ${name}`,
  run: (engine) =>
    engine.write(async (writer) => {
      const row = await writer.get(KIND, 1, idOf(name))
      await writer.put({ ...draftOf({ name, text, keys: ['blue'] }), seq: row!.seq, created: row!.created })
    }),
  expect: (contents) => contents.set(name, text),
})

const remove = (name: string): Act => ({
  title: `remove ${name}`,
  run: (engine) => engine.write((writer) => writer.remove(KIND, 1, idOf(name))),
  expect: (contents) => contents.delete(name),
})

const logEntry = (text: string) => {
  const shape = { kind: 255, tenant: 1, modified: 0, expires: 0, keys: digest('key/1/logs', 8) }
  return asLog({ ...shape, id: digest(`log/${text}`, 16), seal: () => Buffer.from(text) })
}

const logSoon = (text: string): Act => ({
  title: `log ${text}`,
  run: (engine) => engine.write((writer) => writer.append(logEntry(text)), 'soon'),
  expect: (contents) => contents.set(`log ${text}`, text),
  isSoon: true,
})

const flush: Act = { title: 'flush', run: (engine) => engine.flush(), expect: () => undefined }
const compact: Act = { title: 'compact', run: (engine) => engine.compact(), expect: () => undefined }

/** More than a frame takes: stored as a table. */
const putLarge = (name: string): Act => ({
  title: `put ${name}, large`,
  run: (engine) =>
    engine.write(async (writer) => {
      await writer.put(draftOf({ name, text: 'x'.repeat(4_200_000) }))
      await writer.remove(KIND, 1, idOf('a'))
      await writer.put(draftOf({ name: `${name}2`, text: 'beside' }))
    }),
  expect: (contents) => {
    contents.set(name, 'x'.repeat(4_200_000))
    contents.set(`${name}2`, 'beside')
    contents.delete('a')
  },
})

const drop: Act = {
  title: 'drop',
  run: (engine) => engine.write((writer) => writer.dropTenant(1)),
  expect: (contents) => contents.clear(),
}

let opened = 0

type Role = 'command' | 'server'

/** A server flushes after every few rows here, beside units of work. */
function optionsFor(files: FakeFiles, notices: string[] = [], role: Role = 'command') {
  const random = repeatableRandom(`opened ${opened++}`)
  const keys = engineKeys(random)
  const notice = (text: string) => void notices.push(text)
  const header = testHeader()
  return {
    files,
    directory: '/vault',
    header,
    keys,
    clock: createClock(),
    random,
    notice,
    role,
    ...(role === 'server' ? { flushAt: { bytes: 1_000_000, rows: 2 } } : {}),
  }
}

async function read(engine: Engine): Promise<Contents> {
  const contents: Contents = new Map()
  await engine.read(async (reader) => {
    const shape = { tenant: 1, page: 1, size: 100 } as const
    const rows = await reader.find({ ...shape, kind: KIND, all: digest('key/1/all', 8) })
    for (const row of rows.rows) {
      const found = await reader.get(KIND, 1, row.id)
      const text = Buffer.from(found!.sealed).toString()
      contents.set(nameOf(row.id), text)
    }
    const logs = await reader.find({ ...shape, kind: 255, all: digest('key/1/logs', 8) })
    for (const row of logs.rows)
      contents.set(`log ${Buffer.from(row.sealed)}`, Buffer.from(row.sealed).toString())
  })
  return contents
}

const NAMES = ['a', 'b', 'c', 'd', 'e', 'big', 'big2', 'after']

function nameOf(id: Uint8Array): string {
  return NAMES.find((name) => Buffer.from(idOf(name)).equals(id)) ?? 'unknown'
}

const print = (contents: Contents) =>
  [...contents]
    .map(
      ([name, text]) => `${name.replace(' ', '_')}=${text.slice(0, 20).replaceAll(' ', '_')}/${text.length}`,
    )
    .sort()
    .join(' ')

/** The states that a crash after `done` acts may leave: from the last that was stored to the one under way. */
function allowed(acts: readonly Act[], done: number): Set<string> {
  let first = done
  while (first > 0 && acts[first - 1]?.isSoon) first--
  const states = new Set<string>()
  const contents: Contents = new Map()
  for (let index = 0; index <= Math.min(done + 1, acts.length); index++) {
    if (index > 0) acts[index - 1]!.expect(contents)
    if (index >= first) states.add(print(contents))
  }
  return states
}

/** Runs the acts until the disk stops them; tells how many were answered, and whether the vault was made at all. */
async function runUntilStopped(
  files: FakeFiles,
  acts: readonly Act[],
  role: Role,
): Promise<{ done: number; isMade: boolean }> {
  let done = 0
  let isMade = false
  try {
    const engine = await createFileEngine(optionsFor(files, [], role))
    isMade = true
    for (const act of acts) {
      await act.run(engine)
      done++
    }
    await engine.close()
  } catch {
    // The process is dead: what it would have said no longer matters.
  }
  return { done, isMade }
}

async function countSteps(acts: readonly Act[], role: Role = 'command'): Promise<number> {
  const files = new FakeFiles()
  const { done } = await runUntilStopped(files, acts, role)
  if (done !== acts.length) throw new Error('the acts do not run without a fault')
  return files.steps
}

async function crashAt(
  t: Test,
  acts: readonly Act[],
  fault: Fault,
  isPowerCut: boolean,
  role: Role = 'command',
): Promise<void> {
  const files = new FakeFiles()
  files.fault = fault
  const { done, isMade } = await runUntilStopped(files, acts, role)
  const left = files.afterCrash(isPowerCut)
  const title = `step ${fault.at}${fault.isTorn ? ', torn' : ''}${isPowerCut ? ', power cut' : ''}`
  if (!isMade && !hasHeader(left, '/vault')) {
    const again = await createFileEngine(optionsFor(left))
    await put('after', 'again').run(again)
    t.equal(
      print(await read(again)),
      'after=again/5',
      `${title}: a vault can be made where making one failed`,
    )
    await again.close()
    return
  }
  const engine = await openFileEngine(optionsFor(left))
  const found = print(await read(engine))
  const states = allowed(acts, done)
  if (!states.has(found))
    t.fail(`${title}, after ${done} acts: found ${found}, not one of ${[...states].join(' | ')}`)
  await put('after', 'works').run(engine)
  await engine.compact()
  await engine.close()
  const reopened = await openFileEngine(optionsFor(left.afterCrash(true)))
  const expected = [...found.split(' ').filter(Boolean), 'after=works/5'].sort().join(' ')
  t.equal(print(await read(reopened)), expected, `${title}: goes on working`)
  await reopened.close()
  const strays = [...left.contents().keys()].filter((path) => /\.tmp-/.test(path))
  t.strictSame(strays, [], `${title}: leaves nothing behind`)
  t.equal(left.list('/vault').filter((name) => name.startsWith('journal-')).length, 1, title)
}

t.setTimeout(500_000)

const scripts: Record<string, Act[]> = {
  'single works': [
    put('a', 'one'),
    put('b', 'two'),
    logSoon('1'),
    replace('a', 'one+'),
    logSoon('2'),
    flush,
    put('c', 'three'),
    replace('b', 'two+'),
    remove('c'),
    logSoon('3'),
    put('c', 'three again'),
    flush,
    remove('a'),
    replace('c', 'three+'),
    flush,
    put('a', 'back'),
  ],
  'large works': [put('a', 'one'), put('b', 'two'), putLarge('big'), put('c', 'three'), remove('big')],
  'compacted tables': [
    ...['a', 'b', 'c'].flatMap((name) => [put(name, `${name} 1`), logSoon(name), flush]),
    replace('a', 'a 2'),
    remove('b'),
    put('d', 'd 1'),
    logSoon('4'),
    flush,
    put('e', 'e 1'),
    replace('c', 'c 2'),
    compact,
    remove('d'),
    put('b', 'b 2'),
    compact,
  ],
  'dropped tenants': [
    put('a', 'one'),
    logSoon('1'),
    flush,
    put('b', 'two'),
    drop,
    put('c', 'new'),
    flush,
    put('d', 'x'),
  ],
}

for (const [title, acts] of Object.entries(scripts)) {
  t.test(`nothing acknowledged is lost at any step: ${title}`, async (t) => {
    const steps = await countSteps(acts)
    t.ok(steps > 30, `${steps} steps`)
    for (let at = 1; at <= steps; at++) {
      for (const isPowerCut of [false, true]) {
        await crashAt(t, acts, { at, code: 'stop' }, isPowerCut)
        if (title === 'single works') await crashAt(t, acts, { at, code: 'stop', isTorn: true }, isPowerCut)
      }
    }
  })
}

t.test(
  'nothing acknowledged is lost at any step of a server that flushes beside units of work',
  async (t) => {
    const acts = scripts['compacted tables']!
    const steps = await countSteps(acts, 'server')
    t.ok(steps > 100, `${steps} steps`)
    for (let at = 1; at <= steps; at += 2)
      await crashAt(t, acts, { at, code: 'stop' }, at % 4 === 1, 'server')
  },
)

t.test(
  'a log that is flushed beside units of work is read together with the one that follows it',
  async (t) => {
    const files = new FakeFiles()
    const engine = await createFileEngine(optionsFor(files, [], 'server'))
    // All in one turn: the third begins a new log, and the others find it so.
    await Promise.all(['a', 'b', 'c'].map((name) => put(name, `${name} 1`).run(engine)))
    const wals = (disk: FakeFiles) => disk.list('/vault').filter((name) => name.startsWith('journal-')).length
    let between: FakeFiles | undefined
    for (let turn = 0; turn < 50 && between === undefined; turn++) {
      if (wals(files) === 2) between = files.afterCrash(false)
      await Promise.resolve()
    }
    await engine.close()
    t.ok(between, 'both were there for a moment')
    const opened = await openFileEngine(optionsFor(between!))
    t.equal(print(await read(opened)), 'a=a_1/3 b=b_1/3 c=c_1/3')
    t.strictSame((await opened.verify(() => ({}))).findings, [])
    await remove('a').run(opened)
    t.equal(wals(between!), 1, 'a removal flushes both away')
    await opened.close()
  },
)

t.test('works that share a frame and a sync are all there or were not answered', async (t) => {
  const works = ['a', 'b', 'c', 'd', 'e']
  const runAll = async (files: FakeFiles) => {
    const answered: string[] = []
    try {
      const engine = await createFileEngine({ ...optionsFor(files), role: 'server' })
      const before = files.steps
      await Promise.all(
        works.map((name) =>
          put(name, name)
            .run(engine)
            .then(() => answered.push(name)),
        ),
      )
      t.ok(files.steps - before <= 4, `${files.steps - before} steps for five works`)
      await engine.close()
    } catch {
      // Dead.
    }
    return answered
  }
  const whole = new FakeFiles()
  t.strictSame(await runAll(whole), works)
  for (let at = 1; at <= whole.steps; at++) {
    const files = new FakeFiles()
    files.fault = { at, code: 'stop' }
    const answered = await runAll(files)
    const left = files.afterCrash(true)
    if (!hasHeader(left, '/vault')) continue
    const engine = await openFileEngine(optionsFor(left))
    const found = [...(await read(engine)).keys()].sort()
    t.ok(found.length === 0 || found.length === 5, `all or none at step ${at}`)
    t.ok(answered.length === 0 || found.length === 5, `every answered one at step ${at}`)
    await engine.close()
  }
})

t.test('an error of the disk at any step is told, and loses nothing', async (t) => {
  const runs = [
    ['single works', 'command'],
    ['compacted tables', 'command'],
    ['dropped tenants', 'command'],
    ['compacted tables', 'server'],
  ] as const
  for (const [script, role] of runs) {
    const acts = scripts[script]!
    const steps = await countSteps(acts, role)
    for (let at = 1; at <= steps; at++) {
      await failAt(t, acts, { at, code: at % 2 === 0 ? 'EIO' : 'ENOSPC' }, role)
    }
  }
})

/** The disk fails once; what was answered stays, what was refused is not there, and opened anew the vault works. */
async function failAt(t: Test, acts: readonly Act[], fault: Fault, role: Role): Promise<void> {
  const files = new FakeFiles()
  files.fault = fault
  const notices: string[] = []
  const title = `${fault.code} at step ${fault.at} of a ${role}`
  let engine: FileEngine
  try {
    engine = await createFileEngine(optionsFor(files, notices, role))
  } catch (error) {
    t.match(error, { code: 'storage_failed' }, `${title}: making the vault fails`)
    t.strictSame(files.openFiles, [], `${title}: every file was closed`)
    return
  }
  const contents: Contents = new Map()
  // Answered, and stored only with what comes after them: a disk that fails for good loses them.
  let held: Contents = new Map()
  let refused = 0
  for (const act of acts) {
    // What a refused removal left is not put as new by anybody who keeps to the contract.
    if (act.inserts !== undefined && contents.has(act.inserts)) continue
    try {
      await act.run(engine)
      act.expect(contents)
      if (!act.isSoon) held = new Map()
      else act.expect(held)
    } catch (error) {
      refused++
      // A later act may miss what an earlier one failed to make; that is the script's error, not the disk's.
      const isOurs = error instanceof TypeError || (error as { code?: string }).code === 'internal'
      if (!isOurs) t.match(error, { code: 'storage_failed' }, title)
    }
  }
  await engine.close().catch(() => refused++)
  // A file that could not be removed is swept by the next owner: nobody needs to know.
  t.ok(refused > 0 || notices.length > 0 || files.failed === 'remove', `${title}: somebody was told`)
  t.strictSame(files.openFiles, [], `${title}: every file was closed`)
  files.fault = undefined
  const again = await openFileEngine(optionsFor(files.afterCrash(false), notices))
  const found = await read(again)
  if (refused > 0) for (const [name, text] of held) if (!found.has(name)) found.set(name, text)
  t.equal(print(found), print(contents), `${title}: what was answered is there, and nothing else`)
  await again.close()
}
