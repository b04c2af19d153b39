/**
 * A vault of format 1 is read as it is, and brought to format 2 by the first write: killed at any step it is of one
 * format or the other and whole, and what fails leaves it as it was.
 */
import t from 'tap'
import { createRandom } from '../../src/crypto/random.js'
import { restoreBackup } from '../../src/storage/lsm/maintenance/restore.js'
import { readHeader } from '../../src/storage/vault-file.js'
import { DIRECTORY, keysOf, loadOld, openOld, tell, write } from './upgrade.js'
import { killUpgrades } from './upgrade-kill.js'

t.setTimeout(400_000)

const BACKUP = `${DIRECTORY}-format-1.backup`

t.test('reading changes nothing, also what a sweep would do', async (t) => {
  const files = loadOld()
  const before = files.contents()
  const vault = await openOld(files)
  await tell(vault)
  t.equal(await vault.store.read(async (reader) => (await reader.findExpired(9)).length), 0)
  t.equal(await vault.store.write((writer) => writer.dropLogs(Number.MAX_SAFE_INTEGER, 9)), 0)
  await vault.store.close()
  t.strictSame(files.contents(), before)
  t.strictSame(vault.notices, [])
})

t.test('the first write brings it to format 2, after a backup that restores it', async (t) => {
  const files = loadOld()
  const vault = await openOld(files)
  const before = await tell(vault)
  await write(vault, 'new')
  t.match(vault.notices, [
    /format 1 and is brought to format 2 now \(0\.\d MiB, about 1 s\).*vault-format-1\.backup/,
  ])
  t.equal(vault.notices.length, 1)
  t.match(await readHeader(files, DIRECTORY), { format: 2 })
  t.equal(vault.engine.header.format, 2)
  const names = [...files.contents().keys()]
  t.strictSame(
    names.filter((name) => name.includes('/l-')),
    [],
    'no table of logs is left',
  )
  await vault.store.close()
  const again = await openOld(files)
  const found = await again.store.read((reader) => reader.find('log', 1, { page: 1, size: 1 }))
  t.match(found, { total: 23, records: [{ entity_id: 'new' }] })
  t.strictSame((await again.engine.verify(() => ({}))).findings, [])
  await again.store.close()
  files.makeDirectory('/copy')
  const context = { files, keys: await keysOf(files), random: createRandom() }
  await restoreBackup(context, BACKUP, '/copy')
  const restored = await openOld(files, '/copy')
  t.equal(await tell(restored), before, 'the backup is the vault as it was')
  t.equal(restored.header.format, 1)
  await restored.store.close()
})

t.test('killed at any step, it opens as it was or upgraded, and the next write goes on', async (t) => {
  const whole = loadOld()
  const before = await openOld(whole).then(async (vault) => {
    const told = await tell(vault)
    await vault.store.close()
    return told
  })
  const probe = loadOld()
  const first = probe.steps
  const vault = await openOld(probe)
  await write(vault, 'new')
  const after = await tell(vault)
  await vault.store.close()
  const steps = probe.steps - first
  t.ok(steps > 25, `${steps} steps`)
  const seen = { old: 0, unfinished: 0, done: 0 }
  for (let at = 1; at <= steps; at++) {
    const files = loadOld()
    files.fault = { at: files.steps + at, code: 'stop', isTorn: at % 3 === 0 }
    await openOld(files)
      .then(async (vault) => {
        await write(vault, 'new')
        await vault.store.close()
      })
      .catch(() => undefined)
    const left = files.afterCrash(at % 2 === 0)
    const opened = await openOld(left)
    const told = await tell(opened)
    t.ok([before, after].includes(told), `step ${at}: nothing is lost or half there`)
    if (told === before) {
      seen[opened.header.format === 1 ? 'old' : 'unfinished']++
      await write(opened, 'new')
      t.equal(await tell(opened), after, `step ${at}: gone on with`)
    } else seen.done++
    await opened.store.close()
    const last = await openOld(left)
    t.equal(await tell(last), after, `step ${at}: and opened again`)
    t.equal(last.header.format, 2)
    t.notOk(
      [...left.contents().keys()].some((name) => /\/l-|unfinished/.test(name)),
      'nothing is left behind',
    )
    await last.store.close()
  }
  t.ok(seen.old > 5 && seen.unfinished > 2 && seen.done > 0, JSON.stringify(seen))
})

t.test('a disk that fails at any step refuses the write and keeps the vault', async (t) => {
  const probe = loadOld()
  const first = probe.steps
  const vault = await openOld(probe)
  const before = await tell(vault)
  await write(vault, 'new')
  const after = await tell(vault)
  await vault.store.close()
  for (let at = 1; at <= probe.steps - first; at++) {
    const files = loadOld()
    files.fault = { at: files.steps + at, code: at % 2 === 0 ? 'EIO' : 'ENOSPC' }
    const opened = await openOld(files)
    const refusal = await write(opened, 'new').catch((error: unknown) => error)
    if (refusal !== undefined) t.match(refusal, { code: 'storage_failed' }, `step ${at}`)
    await opened.store.close().catch(() => undefined)
    files.fault = undefined
    const again = await openOld(files.afterCrash(false))
    t.ok([before, after].includes(await tell(again)), `step ${at}: as it was, or upgraded`)
    await again.store.close()
  }
})

t.test('where there is no room it is refused, and nothing is touched', async (t) => {
  const files = loadOld()
  const before = files.contents()
  files.room = 1000
  const vault = await openOld(files)
  await t.rejects(write(vault, 'new'), {
    code: 'storage_failed',
    message: /needs 1\.\d MiB of room.*there are 0\.0 MiB\. Nothing was changed\..*coffer vault upgrade/,
  })
  await tell(vault)
  await vault.store.close()
  t.strictSame(files.contents(), before)
})

t.test('a log whose chain is broken says so afterwards', async (t) => {
  const files = loadOld()
  const [path] = [...files.contents().keys()].filter((name) => name.includes('/l-'))
  const bytes = files.contents().get(path!)!
  // Of the first record's chain value.
  bytes[3]! ^= 1
  files.plant(path!, bytes)
  const vault = await openOld(files)
  t.match(await vault.store.verifyLogs(1), { brokenAt: 1 })
  await write(vault, 'new')
  t.match(await vault.store.verifyLogs(1), { count: 24 })
  const { records } = await vault.store.read((reader) => reader.find('log', 1, { page: 1, size: 2 }))
  t.match(records, [{ entity_id: 'new' }, { message: 'Log upgraded; its chain was broken at record 1' }])
  await vault.store.close()
})

t.test('a header of keys cannot be changed before the upgrade', async (t) => {
  const vault = await openOld(loadOld())
  await t.rejects(vault.engine.replaceHeader(vault.header), { code: 'conflict', message: /vault upgrade/ })
  t.equal(await vault.engine.upgrade(), true)
  t.equal(await vault.engine.upgrade(), false)
  await vault.store.close()
})

t.test('killed at random moments on a real disk it is whole', async (t) => {
  const { faults, kills, formats } = await killUpgrades(20)
  t.strictSame(faults, [])
  t.equal(kills, 20)
  t.comment(JSON.stringify(formats))
})
