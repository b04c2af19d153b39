/**
 * The tests end the process or the machine at every operation on the disk. After the crash, the vault must open with every
 * acknowledged change. The interrupted unit of work must be stored completely or not at all.
 */
import t, { type Test } from 'tap'
import { type RekeyOptions, rekeyVault } from '../../src/storage/lsm/maintenance/rows.js'
import { hasHeader, readHeader } from '../../src/storage/vault-file.js'
import * as disk from './disk.js'
import { diskOptions, holds, rowsOf, walsOf } from './disk.js'
import {
  allOf,
  createFileEngine,
  draftOf,
  type FileEngine,
  idOf,
  KIND,
  LOG_KIND,
  logOf,
  openFileEngine,
  textOf,
} from './engines.js'
import { FakeFiles, type Fault } from './fake-files.js'
import { digest, engineKeys, testHeader } from './powers.js'

t.setTimeout(500_000)

/** The text of each row of a vault, by the name of the row. A log record has the name `log <number>`. */
type Contents = Map<string, string>

interface Act {
  run(engine: FileEngine): Promise<unknown>
  expect(contents: Contents): unknown
  /** If true, the engine acknowledges the act before the engine stores it. */
  isSoon?: boolean
  /** The name of a row that the act inserts, so the row must not exist before the act. */
  inserts?: string
}

const LARGE = 'x'.repeat(4_200_000)
const nothing = () => undefined

const ACTS: Record<string, (name: string, text: string) => Act> = {
  put: (name, text) => ({
    run: (engine) => disk.put(engine, name, text),
    expect: (contents) => contents.set(name, text),
    inserts: name,
  }),
  replace: (name, text) => ({
    run: (engine) => disk.replace(engine, name, text),
    expect: (contents) => contents.set(name, text),
  }),
  remove: (name) => ({
    run: (engine) => disk.remove(engine, name),
    expect: (contents) => contents.delete(name),
  }),
  log: (text) => ({
    run: (engine) => engine.write((writer) => writer.append(logOf(text)), 'soon'),
    expect: (contents) => contents.set(`log ${text}`, text),
    isSoon: true,
  }),
  flush: () => ({ run: (engine) => engine.flush(), expect: nothing }),
  compact: () => ({ run: (engine) => engine.compact(), expect: nothing }),
  'put-large': (name) => ({
    run: (engine) =>
      engine.write(async (writer) => {
        await writer.put(draftOf({ name, text: LARGE }))
        await writer.remove(KIND, 1, idOf('a'))
        await writer.put(draftOf({ name: `${name}2`, text: 'beside' }))
      }),
    expect: (contents) => {
      contents.set(name, LARGE).set(`${name}2`, 'beside').delete('a')
    },
  }),
  drop: () => ({
    run: (engine) => engine.write((writer) => writer.dropTenant(1)),
    expect: (contents) => contents.clear(),
  }),
}

/** Parses lines such as `put a one`. */
const actsOf = (lines: string) =>
  lines.split(/, /).map((line) => {
    const [act = '', name = '', text = ''] = line.split(' ')
    return ACTS[act]!(name, text)
  })

const scripts: Record<string, Act[]> = {
  'single works': actsOf(
    'put a one, put b two, log 1, replace a one+, log 2, flush, put c three, replace b two+, remove c, log 3, ' +
      'put c again, flush, remove a, replace c three+, flush, put a back',
  ),
  'large works': actsOf('put a one, put b two, put-large big, put c three, remove big'),
  'compacted tables': actsOf(
    'put a 1, log a, flush, put b 1, log b, flush, put c 1, log c, flush, replace a 2, remove b, put d 1, log 4, ' +
      'flush, put e 1, replace c 2, compact, remove d, put b 2, compact',
  ),
  'dropped tenants': actsOf('put a one, log 1, flush, put b two, drop, put c new, flush, put d x'),
}

type Role = 'command' | 'server'

/** For the role `server`, the engine flushes after every few rows, while units of work run. */
function optionsFor(files: FakeFiles, role: Role = 'command') {
  const options = diskOptions(files, role)
  return role === 'server' ? { ...options, flushAt: { bytes: 1_000_000, rows: 2 } } : options
}

const NAMES = ['a', 'b', 'c', 'd', 'e', 'big', 'big2', 'after']

async function read(engine: FileEngine): Promise<Contents> {
  const contents: Contents = new Map()
  for (const { id } of await rowsOf(engine)) {
    const name = NAMES.find((each) => Buffer.from(idOf(each)).equals(id)) ?? 'unknown'
    contents.set(name, textOf((await disk.get(engine, name))!))
  }
  for (const row of await rowsOf(engine, LOG_KIND)) contents.set(`log ${textOf(row)}`, textOf(row))
  return contents
}

const print = (contents: Contents) =>
  [...contents.entries()]
    .map(([name, text]) => `${name.replace(' ', '_')}=${text.slice(0, 20)}/${text.length}`)
    .sort()
    .join(' ')

/**
 * Returns the states in which a crash after `done` acts may leave the vault, from the last act that must be stored to
 * the interrupted act.
 */
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

/**
 * Runs the acts until the fake disk stops them. Returns how many acts were acknowledged, and whether the vault was
 * created.
 */
async function runUntilStopped(files: FakeFiles, acts: readonly Act[], role: Role) {
  const result = { done: 0, isMade: false }
  try {
    const engine = await createFileEngine(optionsFor(files, role))
    result.isMade = true
    for (const act of acts) {
      await act.run(engine)
      result.done++
    }
    await engine.close()
  } catch {
    // The process has crashed, so nobody receives the answers of the last acts.
  }
  return result
}

async function countSteps(acts: readonly Act[], role: Role): Promise<number> {
  const files = new FakeFiles()
  const { done } = await runUntilStopped(files, acts, role)
  if (done !== acts.length) throw new Error('the acts fail even without a fault')
  return files.steps
}

/** Each row is a way to crash: one crash of the process, and two crashes of the machine. */
const DEATHS = [
  ['killed', false, false],
  ['power cut', true, false],
  ['power cut, renames kept', true, true],
] as const

type Death = (typeof DEATHS)[number]

async function crashAt(t: Test, acts: readonly Act[], fault: Fault, death: Death, role: Role) {
  const [how, isPowerCut, keepsRenames] = death
  const files = new FakeFiles()
  files.fault = fault
  const { done, isMade } = await runUntilStopped(files, acts, role)
  const left = files.afterCrash(isPowerCut, keepsRenames)
  const title = `step ${fault.at}${fault.isTorn ? ', torn' : ''}, ${how}`
  if (!isMade && !hasHeader(left, '/vault')) {
    const again = await createFileEngine(optionsFor(left))
    await disk.put(again, 'after')
    t.equal(
      print(await read(again)),
      'after=after/5',
      `${title}: a vault can be created after an earlier creation failed`,
    )
    await again.close()
    return
  }
  const engine = await openFileEngine(optionsFor(left))
  const found = print(await read(engine))
  const states = allowed(acts, done)
  if (!states.has(found))
    t.fail(`${title}, after ${done} acts: found ${found}, not one of ${[...states].join(' | ')}`)
  await disk.put(engine, 'after', 'works')
  await engine.compact()
  await engine.close()
  const reopened = await openFileEngine(optionsFor(left.afterCrash(true)))
  const expected = [...found.split(' ').filter(Boolean), 'after=works/5'].sort().join(' ')
  t.equal(print(await read(reopened)), expected, `${title}: the vault still accepts work`)
  await reopened.close()
  const strays = [...left.contents().keys()].filter((path) => /\.tmp-/.test(path))
  t.strictSame([strays, walsOf(left).length], [[], 1], `${title}: one log and no temporary file are left`)
}

for (const [title, acts] of Object.entries(scripts)) {
  t.test(`no acknowledged change is lost in a crash at any step: ${title}`, async (t) => {
    const steps = await countSteps(acts, 'command')
    t.ok(steps > 30, `${steps} steps`)
    for (let at = 1; at <= steps; at++)
      for (const death of DEATHS) {
        await crashAt(t, acts, { at, code: 'stop' }, death, 'command')
        if (title === 'single works')
          await crashAt(t, acts, { at, code: 'stop', isTorn: true }, death, 'command')
      }
  })
}

t.test('a power cut after a crash of the process and a new start loses no acknowledged change', async (t) => {
  const acts = scripts['single works']!
  const steps = await countSteps(acts, 'command')
  for (let at = 1; at <= steps; at++) {
    const files = new FakeFiles()
    files.fault = { at, code: 'stop' }
    const { done, isMade } = await runUntilStopped(files, acts, 'command')
    const killed = files.afterCrash(false)
    if (!isMade) continue
    await openFileEngine(optionsFor(killed))
    for (const isStored of [() => false, (path: string) => path.includes('/head-')]) {
      const engine = await openFileEngine(optionsFor(killed.afterCrash(true, false, isStored)))
      const found = print(await read(engine))
      t.ok(allowed(acts, done).has(found), `step ${at}, after ${done} acts: ${found}`)
      await engine.close()
    }
  }
})

t.test('a server that flushes while units of work run loses no acknowledged change in a crash', async (t) => {
  const acts = scripts['compacted tables']!
  const steps = await countSteps(acts, 'server')
  t.ok(steps > 100, `${steps} steps`)
  for (let at = 1; at <= steps; at += 2)
    await crashAt(t, acts, { at, code: 'stop' }, DEATHS[(at >> 1) % 3]!, 'server')
})

t.test(
  'if units of work share a frame and a sync, all of them are stored or none of them is acknowledged',
  async (t) => {
    const works = ['a', 'b', 'c', 'd', 'e']
    const runAll = async (files: FakeFiles) => {
      const answered: string[] = []
      try {
        const engine = await createFileEngine(diskOptions(files, 'server'))
        const before = files.steps
        await Promise.all(works.map((name) => disk.put(engine, name).then(() => answered.push(name))))
        t.ok(files.steps - before <= 4, `${files.steps - before} steps for five units of work`)
        await engine.close()
      } catch {
        // The process has crashed as the test intended, so the error is expected.
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
      const found = (await rowsOf(engine)).length
      t.ok(found === 5 || (found === 0 && answered.length === 0), `${found} rows at step ${at}`)
      await engine.close()
    }
  },
)

t.test('an error of the disk at any step is reported, and no acknowledged change is lost', async (t) => {
  const runs = [
    ['single works', 'command'],
    ['compacted tables', 'command'],
    ['dropped tenants', 'command'],
    ['compacted tables', 'server'],
  ] as const
  for (const [script, role] of runs) {
    const acts = scripts[script]!
    const steps = await countSteps(acts, role)
    for (let at = 1; at <= steps; at++)
      await failAt(t, acts, { at, code: at % 2 === 0 ? 'EIO' : 'ENOSPC' }, role)
  }
})

/**
 * Lets the fake disk fail once. After the failure, the vault must have all acknowledged changes and no refused change,
 * and it must be possible to open the vault again.
 */
async function failAt(t: Test, acts: readonly Act[], fault: Fault, role: Role): Promise<void> {
  const files = new FakeFiles()
  files.fault = fault
  const options = optionsFor(files, role)
  const title = `${fault.code} at step ${fault.at} of a ${role}`
  let engine: FileEngine
  try {
    engine = await createFileEngine(options)
  } catch (error) {
    t.match(error, { code: 'storage_failed' }, `${title}: creating the vault fails`)
    t.strictSame(files.openFiles, [], `${title}: every file was closed`)
    return
  }
  const contents: Contents = new Map()
  // Rows of acts that the engine has acknowledged but not stored yet. These rows are lost if the disk keeps failing.
  let held: Contents = new Map()
  let refused = 0
  for (const act of acts) {
    // If a removal was refused, its row can still exist. Callers must never insert an id that exists, so the test skips
    // the act that would insert this row again.
    if (act.inserts !== undefined && contents.has(act.inserts)) continue
    try {
      await act.run(engine)
      act.expect(contents)
      if (!act.isSoon) held = new Map()
      else act.expect(held)
    } catch (error) {
      refused++
      // An act may need a row that an earlier act failed to store. The later act then fails with an error of the
      // test, and not with an error of the disk.
      const isOurs = error instanceof TypeError || (error as { code?: string }).code === 'internal'
      if (!isOurs) t.match(error, { code: 'storage_failed' }, title)
    }
  }
  await engine.close().catch(() => refused++)
  // If a file could not be removed, the next owner of the vault removes it. A server can take fewer steps than in the
  // run that counted the steps, so the fault does not always occur.
  const derivesNoEvent =
    refused > 0 || options.notices.length > 0 || [undefined, 'remove'].includes(files.failed)
  t.ok(derivesNoEvent, `${title}: the failed ${files.failed} is reported`)
  t.strictSame(files.openFiles, [], `${title}: every file was closed`)
  files.fault = undefined
  const again = await openFileEngine(optionsFor(files.afterCrash(false)))
  const found = await read(again)
  if (refused > 0) for (const [name, text] of held) if (!found.has(name)) found.set(name, text)
  t.equal(print(found), print(contents), `${title}: the vault has exactly the acknowledged changes`)
  await again.close()
}

// Section: single operations on a disk that stops or fails.

/** Lets the disk stop or fail at each step of `work`, and starts each time with a new copy of `vault`. */
async function atEachStep(
  vault: FakeFiles,
  code: 'stop' | 'EIO',
  work: (files: FakeFiles) => Promise<unknown>,
  check: (left: FakeFiles, isDone: boolean, title: string) => Promise<unknown>,
): Promise<void> {
  const whole = vault.afterCrash(false)
  await work(whole)
  const outcomes = code === 'stop' ? DEATHS : [['EIO', false, false] as const]
  for (let at = 1; at <= whole.steps + 1; at++)
    for (const [how, isPowerCut, keepsRenames] of outcomes) {
      const isTorn = at % 2 === 0
      const files = vault.afterCrash(false)
      files.fault = { at, code, isTorn }
      const isDone = await work(files).then(
        () => true,
        () => false,
      )
      const title = `step ${at}${isTorn ? ', torn' : ''}, ${how}`
      if (isDone && files.failed !== undefined && files.failed !== 'remove')
        throw new Error(`${title}: untold`)
      await check(files.afterCrash(isPowerCut, keepsRenames), isDone, title)
    }
}

const [OLD, NEW] = [testHeader('old'), testHeader('new')]

t.test('a vault header is replaced completely, and then the vault refuses the older header', async (t) => {
  const vault = new FakeFiles()
  const first = await createFileEngine({ ...diskOptions(vault), header: OLD })
  await disk.put(first, 'a', 'kept')
  await first.close()
  const oldHeader = vault.contents().get('/vault/vault.json')!
  const oldState = vault.contents().get('/vault/state')!
  const change = async (files: FakeFiles) => {
    const engine = await openFileEngine({ ...diskOptions(files), header: OLD })
    try {
      await engine.replaceHeader(NEW)
    } finally {
      await engine.close()
    }
  }
  const seen = new Set<boolean>()
  for (const code of ['stop', 'EIO'] as const)
    await atEachStep(vault, code, change, async (left, isDone, title) => {
      const header = await readHeader(left, '/vault')
      const isNew = JSON.stringify(header).includes('new')
      seen.add(isNew)
      const engine = await openFileEngine({ ...diskOptions(left), header })
      t.strictSame([textOf((await disk.get(engine, 'a'))!), isNew || !isDone], ['kept', true], title)
      await engine.close()
      await t.rejects(openFileEngine({ ...diskOptions(left), header: isNew ? OLD : NEW }), {
        code: 'vault_damaged',
        message: /vault\.json is not the newest/,
      })
      if (!isNew) return
      left.plant('/vault/vault.json', oldHeader)
      await t.rejects(openFileEngine({ ...diskOptions(left), header: OLD }), { code: 'vault_damaged' })
      left.plant('/vault/state', oldState)
      await t.rejects(
        openFileEngine({ ...diskOptions(left), header: OLD }),
        { code: 'vault_damaged', message: /journal-\w+ is missing/ },
        `${title}: the older state is refused too`,
      )
    })
  t.equal(seen.size, 2, 'some crashes leave the old header, and some leave the new header')
})

t.test('after a crash during a rekey, the vault has either all old keys or all new keys', async (t) => {
  const optionsOf = (files: FakeFiles, isChanged: boolean) => {
    const options = { ...diskOptions(files), header: isChanged ? NEW : OLD }
    return { ...options, keys: engineKeys(options.random, isChanged ? 'second' : 'first') }
  }
  const newIdOf = (id: Uint8Array) => digest(`second/${Buffer.from(id).toString('hex')}`, 16)
  const rekeyOf = (files: FakeFiles): RekeyOptions => ({
    ...optionsOf(files, true),
    present: optionsOf(files, false),
    prepare: async () => async (row) => ({
      id: newIdOf(row.id),
      keys: allOf(row.kind),
      sealed: Buffer.from(`${textOf(row)} anew at ${row.rev}`),
    }),
    progress: () => undefined,
  })
  const vault = new FakeFiles()
  const first = await createFileEngine(optionsOf(vault, false))
  for (const name of ['a', 'b', 'c', 'd']) {
    await first.write(async (writer) => {
      await writer.put(draftOf({ name, expires: name === 'b' ? 80_000 : 0 }))
      await writer.append(logOf(`log ${name}`))
    })
    if (name === 'b' || name === 'c') await first.flush()
    if (name === 'c') await disk.remove(first, 'a')
  }
  await first.close()
  const tell = async (files: FakeFiles) => {
    const header = await readHeader(files, '/vault')
    const isChanged = JSON.stringify(header).includes('new')
    const engine = await openFileEngine(optionsOf(files, isChanged))
    const rows = [...(await rowsOf(engine)), ...(await rowsOf(engine, LOG_KIND))]
    const id = idOf('c')
    const row = await engine.read((reader) => reader.get(KIND, 1, isChanged ? newIdOf(id) : id))
    t.strictSame((await engine.verify(() => ({}))).findings, [])
    await engine.close()
    const told = rows.map((each) => `${each.seq}/${each.rev}/${each.expires}/${textOf(each)}`)
    return { told: [row?.seq, ...told].join('\n'), isChanged }
  }
  const { told: before } = await tell(vault.afterCrash(false))
  const after = before.replace(/^(\d+\/(\d+)\/.*)$/gm, '$1 anew at $2')
  const work = (files: FakeFiles) => rekeyVault(rekeyOf(files))
  await atEachStep(vault, 'stop', work, async (left, isDone, title) => {
    const { told, isChanged } = await tell(left)
    t.strictSame([told, isChanged || !isDone], [isChanged ? after : before, true], title)
    if (!isChanged) await rekeyVault(rekeyOf(left))
    t.strictSame(await tell(left), { told: after, isChanged: true }, `${title}: the change can be repeated`)
    const kept = [...left.contents().keys()].filter((path) => vault.contents().has(path)).sort()
    t.strictSame(kept, ['/vault/state', '/vault/vault.json'], 'no old log or table is left')
    await t.rejects(openFileEngine(optionsOf(left, false)), { code: 'vault_damaged' })
  })
})

t.test('a rekey names the copies of damaged logs, which the old keys still open', async (t) => {
  const files = new FakeFiles()
  const present = { ...diskOptions(files, 'command', 'first'), header: OLD }
  const engine = await createFileEngine(present)
  await disk.put(engine, 'a')
  await engine.close()
  const [wal] = walsOf(files)
  files.plant(wal!, Buffer.concat([files.contents().get(wal!)!, Buffer.alloc(9, 1)]))
  await rekeyVault({
    ...{ ...diskOptions(files, 'command', 'second'), header: NEW, present },
    prepare: async () => async (row) => ({
      id: row.id,
      keys: allOf(row.kind),
      sealed: Buffer.from(textOf(row)),
    }),
    progress: () => undefined,
  })
  const [aside] = disk.pathsOf(files, '/aside-')
  const notice = present.notices.find((text) => text.startsWith('The old keys still open'))
  t.match(notice, aside!.slice('/vault/'.length))
})

t.test('a vault that is opened again completes an overwrite that a crash interrupted', async (t) => {
  const secret = `sealed bytes of a, ${'x'.repeat(40)}`
  const vault = new FakeFiles()
  const first = await createFileEngine(diskOptions(vault))
  await disk.put(first, 'a', secret)
  await first.flush()
  await disk.replace(first, 'a', 'new')
  await first.close()
  let later = 0
  const work = async (files: FakeFiles) => (await openFileEngine(diskOptions(files))).flush()
  await atEachStep(vault, 'stop', work, async (left, _isDone, title) => {
    const hadOld = holds(left, secret).length > 0
    const engine = await openFileEngine(diskOptions(left))
    const isFlushed = walsOf(left).length === 1 && (await engine.status()).walBytes === 0
    if (isFlushed && hadOld) later++
    if (isFlushed) t.strictSame(holds(left, secret), [], title)
    await engine.close()
  })
  t.ok(later > 0, 'some crashes leave the overwrite to the next opening of the vault')
})
