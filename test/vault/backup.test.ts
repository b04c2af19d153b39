import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createVault, openVault } from '../../src/vault/open.js'
import { createKey, locate } from '../support/vault.js'

t.test('closing a vault ends a backup in progress, and the backup leaves no file', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'coffer-backup-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  const place = { ...locate(join(root, 'vault')), role: 'command' } as const
  const key = createKey()
  const created = await createVault(place, 'first', key.create)
  await created.close()
  const app = await openVault(place, key.choose)
  const backup = app.maintenance().backup(join(root, 'vault.backup'))
  const refused = t.rejects(backup, { code: 'interrupted' })
  const isBegun = () => readdirSync(root).length > 1
  while (!isBegun()) await new Promise(setImmediate)
  await app.close()
  t.strictSame(readdirSync(root), ['vault'])
  await refused
  const again = await openVault(place, key.choose)
  await again.maintenance().backup(join(root, 'vault.backup'))
  t.strictSame(readdirSync(root).sort(), ['vault', 'vault.backup'])
  await again.close()
})
