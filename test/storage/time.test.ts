/**
 * The stored state of the clock survives flushes, crashes and a new opening of the vault. A running server also detects
 * a jump of its clock.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { advanceTimes, clockStatus, describeAhead, type Times } from '../../src/storage/time.js'
import { createVault, openVault } from '../../src/vault/open.js'
import { createKey, locate } from '../support/vault.js'
import { diskOptions } from './disk.js'
import { createFileEngine, draftOf, type FileEngine, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock } from './powers.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const START = Date.parse('2030-01-15T12:00:00Z')

t.test(
  'a clock has jumped if it moved more than a day forward or 5 minutes back, and the jump ends after an hour',
  async (t) => {
    const steady: Times = { time: START, last: START, since: 0, until: 0 }
    const cases: [number, boolean, number][] = [
      [0, false, 0],
      [DAY, false, DAY],
      [DAY + 1, true, 0],
      [-5 * MINUTE, false, -5 * MINUTE],
      [-5 * MINUTE - 1, true, -START],
    ]
    for (const [by, isJump, until] of cases)
      t.strictSame(clockStatus(steady, START + by), { isJump, purgeBefore: START + until }, `by ${by}`)
    const none = { time: 0, last: 0, since: 0, until: 0 }
    t.match(clockStatus(none, START), { isJump: false }, 'a new vault has no jump')
    const jumped = advanceTimes(steady, START + 2 * DAY)
    t.strictSame(jumped, {
      time: START + 2 * DAY,
      last: START + 2 * DAY,
      since: START + 2 * DAY,
      until: START,
    })
    const almost = START + 2 * DAY + HOUR - 1
    t.strictSame(clockStatus(jumped, almost), { isJump: false, purgeBefore: START })
    t.strictSame(clockStatus(jumped, almost + 1), { isJump: false, purgeBefore: almost + 1 })
    const again = clockStatus(jumped, START + 4 * DAY)
    t.strictSame(
      again,
      { isJump: true, purgeBefore: START + 2 * DAY },
      'the time before which records may be purged is kept',
    )
    t.equal(advanceTimes(jumped, START + 2 * DAY + HOUR).since, 0)
    t.match(advanceTimes(jumped, START), { last: START, since: START, until: 0 }, 'back again')
    t.equal(describeAhead(START + 5 * MINUTE, START), undefined)
    t.match(describeAhead(START + 6 * MINUTE, START), / 6 minutes ahead/)
    t.match(describeAhead(START + 5 * HOUR, START), / 5 hours ahead/)
  },
)

t.test('a jump of the clock is stored both in the log and in the state file', async (t) => {
  const clock = createClock(START)
  const notices: string[] = []
  const notice = (text: string) => void notices.push(text)
  const optionsFor = (files: FakeFiles) => ({ ...diskOptions(files), clock, notice })
  let files = new FakeFiles()
  let engine = await createFileEngine(optionsFor(files))
  const reopen = async (isFlushed: boolean): Promise<FileEngine> => {
    if (isFlushed) await engine.flush()
    // Copies the disk without closing the engine, as if the process had been killed.
    files = files.afterCrash(false)
    return openFileEngine(optionsFor(files))
  }
  const state = () =>
    engine.read(async ({ now, clock: { isJump, purgeBefore } }) => {
      if (isJump) return 'jumped'
      return purgeBefore === now ? 'steady' : 'settling'
    })
  for (const isFlushed of [false, true]) {
    const name = `${isFlushed}`
    clock.set(clock() + HOUR)
    await engine.write((writer) => writer.put(draftOf({ name })))
    clock.set(clock() + 2 * DAY)
    t.equal(await state(), 'jumped')
    await engine.write((writer) => writer.storeTime())
    t.equal(await state(), 'settling')
    engine = await reopen(isFlushed)
    t.equal(await state(), 'settling', 'the jump is known after the vault was opened again')
    clock.set(clock() + HOUR)
    t.equal(await state(), 'steady')
    clock.set(clock() - DAY)
    t.equal(await state(), 'jumped')
    await engine.write((writer) => writer.put(draftOf({ name: `${name} back` })))
    engine = await reopen(isFlushed)
    t.equal(await state(), 'settling', 'a jump back is stored too')
    t.match(notices.splice(0), [/23 hours ahead of the clock/])
    await engine.write((writer) => writer.storeTime({ isTrusted: true }))
    t.equal(await state(), 'steady')
    await engine.flush()
    engine = await reopen(isFlushed)
    t.equal(await state(), 'steady', 'confirming the clock ends the jump')
    t.strictSame(notices, [])
    clock.set(clock() + 2 * DAY)
    await engine.write((writer) => writer.storeTime({ isTrusted: true }))
  }
  await engine.close()
})

t.test(
  'if the clock of a server jumps while it runs, the server purges expired tokens an hour later',
  async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'coffer-time-'))
    t.teardown(() => rmSync(directory, { recursive: true, force: true }))
    let now = START
    const notices: string[] = []
    const notice = (text: string) => void notices.push(text)
    const place = { ...locate(join(directory, 'vault'), () => now), notice, role: 'server' as const }
    const key = createKey()
    const app = await createVault(place, 'time', key.create)
    const ask = async (operation: string, input: Record<string, unknown>) =>
      (await app.ask({ operation, input, as: { reveal: true } })).result as { data: unknown[]; id: string }
    for (const id of ['short', 'long']) {
      const expires_at = new Date(START + (id === 'short' ? HOUR : 100 * DAY)).toISOString()
      await ask('token create', { id, type: 'token', data: id, expires_at })
    }
    now += 2 * HOUR
    t.equal(await app.sweep(), 1, 'time that passes is not a jump')
    now += 200 * DAY
    t.equal(await app.sweep(), 0)
    t.equal((await ask('token list', {})).data.length, 0, 'expired tokens are hidden at once')
    now += 30 * MINUTE
    t.equal(await app.sweep(), 0)
    now -= 200 * DAY
    t.equal(await app.sweep(), 0)
    t.equal(
      (await ask('token get', { id: 'long' })).id,
      'long',
      'nothing is lost if the clock jumps and then jumps back',
    )
    now += 200 * DAY
    t.equal(await app.sweep(), 0)
    now += HOUR
    t.equal(await app.sweep(), 1)
    await app.close()
    now -= DAY
    const again = await openVault(place, key.choose)
    t.match(
      notices,
      [/23 hours ahead|24 hours ahead|1 days ahead/],
      'the server reports the jump when it starts',
    )
    await again.close()
  },
)
