/**
 * `npm run test:soak [part…]` runs all long tests, or only the parts that are named, one process after another. Each
 * part is a file in `soak/` that prints its findings and sets its exit code. `npm test` does not run these tests.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = new URL('./soak/', import.meta.url)
const parts = readdirSync(folder)
  .filter((name) => name.endsWith('.js'))
  .map((name) => name.slice(0, -'.js'.length))
  .sort()
const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !parts.includes(name))

if (unknown.length > 0) {
  console.error(`There is no part named ${unknown.join(', ')}. The parts are ${parts.join(', ')}.`)
  process.exitCode = 2
} else {
  const failed = (asked.length > 0 ? asked : parts).filter((name) => !passes(name))
  console.log(failed.length === 0 ? 'All parts passed.' : `Failed: ${failed.join(', ')}`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

function passes(name: string): boolean {
  console.log(`# ${name}`)
  const file = fileURLToPath(new URL(`${name}.js`, folder))
  const { status } = spawnSync(process.execPath, ['--enable-source-maps', file], { stdio: 'inherit' })
  return status === 0
}
