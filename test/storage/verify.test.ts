/** Verification finds what was damaged, says where, and counts what is still readable. */
import t from 'tap'
import { type CheckRow, LOG_ROWS, type Verification } from '../../src/storage/engine.js'
import { verifyVault } from '../../src/storage/lsm/maintenance/verify.js'
import type { LsmOptions } from '../../src/storage/lsm/options.js'
import { draftOf } from './engine-suite.js'
import { asLog, createFileEngine, type DraftedEntry, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

const check: CheckRow = (row) =>
  Buffer.from(row.sealed).toString().startsWith('sealed')
    ? row.kind === LOG_ROWS
      ? { logs: [row.created] }
      : {}
    : { problem: 'its seal is broken' }

function optionsFor(files: FakeFiles) {
  const random = repeatableRandom()
  const shape = { files, directory: '/vault', header: testHeader(), random, notice: () => undefined }
  return {
    ...shape,
    keys: engineKeys(random),
    clock: createClock(),
    role: 'command' as const,
    cacheBytes: 100_000,
  }
}

async function makeVault() {
  const files = new FakeFiles()
  const engine = await createFileEngine(optionsFor(files))
  const put = (name: string) =>
    engine.write(async (writer) => {
      await writer.put(draftOf({ name, text: `sealed ${name}`, keys: ['red', name], expires: 70_000 }))
      for (const tenant of [1, 2]) {
        const { draft, ...entry } = asLog(
          draftOf({ name: `log ${name}`, text: `sealed log ${name}`, tenant }),
        )
        const logged: DraftedEntry = { ...entry, draft: { ...draft, kind: LOG_ROWS } }
        await writer.append(logged)
      }
    })
  await put('a')
  await put('b')
  await engine.flush()
  await put('c')
  await engine.flush()
  await engine.write((writer) => writer.remove(3, 1, digest('id/3/1/a', 16)))
  await engine.write((writer) => writer.dropTenant(2))
  await put('d')
  return { files, engine }
}

async function verify(files: FakeFiles): Promise<Verification> {
  const steps = verifyVault(optionsFor(files) as LsmOptions, check)
  let step = await steps.next()
  while (!step.done) step = await steps.next()
  return step.value
}

t.test('a sound vault has no findings, closed or open', async (t) => {
  const { files, engine } = await makeVault()
  const sound = { findings: [], readable: { records: 3, logs: 5 }, segments: 2 }
  const before = files.contents()
  const seen: number[] = []
  t.strictSame(await engine.verify(check, (rows) => void seen.push(rows)), sound)
  t.ok(seen.length > 0, 'progress was told')
  t.strictSame(files.contents(), before, 'nothing was changed')
  await engine.close()
  t.strictSame(await verify(files), sound)
  await (await openFileEngine(optionsFor(files))).close()
})

t.test('every damaged byte is found, or does no harm', async (t) => {
  const { files, engine } = await makeVault()
  await engine.close()
  let found = 0
  let harmless = 0
  for (const [path, bytes] of files.contents()) {
    // The header is read and judged before.
    if (path.endsWith('vault.json')) continue
    for (let at = 0; at < bytes.length; at += 3) {
      const copy = files.afterCrash(false)
      const changed = Buffer.from(bytes)
      changed[at]! ^= 0x20
      copy.plant(path, changed)
      const { findings } = await verify(copy)
      if (findings.length > 0) found++
      else harmless++
    }
  }
  t.ok(found > 900, `${found} found`)
  // What a removed row left behind was overwritten and is read by nobody,.
  t.ok(harmless < 60, `${harmless} harmless`)
})

t.test('says what is damaged and what is still readable', async (t) => {
  const { files, engine } = await makeVault()
  await engine.close()
  const pathOf = (part: string) => [...files.contents().keys()].filter((path) => path.includes(part))
  const damage = (path: string, at: number) => {
    const copy = files.afterCrash(false)
    const bytes = copy.contents().get(path)!
    bytes[at]! ^= 1
    copy.plant(path, bytes)
    return copy
  }
  t.match(await verify(damage('/vault/state', 60)), {
    findings: [
      { place: 'state', problem: /does not open/ },
      { place: 'the write-ahead log', problem: /broken frame/ },
      {
        place: 'the write-ahead log',
        problem: /^\d+ bytes from byte 64 on do not open; 0 frames before them and 2 after/,
      },
      { problem: 'Row 1: its seal is broken' },
    ],
    readable: { records: 3, logs: 5 },
    segments: 2,
  })
  t.match(await verify(damage(pathOf('journal-')[0]!, 100)), {
    findings: [
      { place: 'the write-ahead log', problem: /broken/ },
      { problem: /0 frames before them and 2 after/ },
    ],
    readable: { records: 3 },
  })
  const [records] = pathOf('/segments/')
  t.match(await verify(damage(records!, 9)), {
    findings: [{ place: /^segments\//, problem: 'Row 2: its seal is broken' }],
  })
  const missing = files.afterCrash(false)
  missing.plant(records!, undefined)
  t.match(await verify(missing), { findings: [{ place: /^segments\//, problem: /is missing/ }] })
})
