/**
 * Writes tokens in bulk into plain SQLite or into SQLCipher. The tables and indexes are the same as in `server.js`.
 * Each unit is one transaction with one sync. Reports the seconds in which objects in memory become synced rows.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openTables } from './sqlcipher.js'
import { prepareSample } from './work.js'

const [kind = 'sqlite', count = '1000', unit = '1000', sampleText = '{}', customers = '50'] =
  process.argv.slice(2)
const sample = JSON.parse(sampleText)
const place = mkdtempSync(join(tmpdir(), 'coffer-peer-'))
const tables = openTables(place, kind === 'sqlcipher')
const start = performance.now()
for (let done = 0; done < Number(count); done += Number(unit)) {
  const length = Math.min(Number(unit), Number(count) - done)
  tables.commit(
    Array.from({ length }, (_, at) => prepareSample(sample, done + at, Number(customers))),
    [],
  )
}
const seconds = (performance.now() - start) / 1000
tables.close()
rmSync(place, { recursive: true, force: true })
process.send({ seconds })
process.disconnect()
