/** The example projects for vitest and jest, installed from the packed tarball; `npm test` runs that for node:test. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const place = mkdtempSync(join(tmpdir(), 'coffer-examples-'))
const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', place]
const tarball = join(place, execFileSync('npm', pack, { cwd: root, encoding: 'utf8' }).trim())
writeFileSync(join(place, 'package.json'), '{"name":"consumer","private":true}')
const packages = [tarball, 'vitest@4.1.12', 'jest@30.5.2']
execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], { cwd: place })
cpSync(join(root, 'fixtures/examples'), join(place, 'examples'), { recursive: true })
const failed = ['vitest run', 'jest'].filter((line) => {
  const [name = '', ...words] = line.split(' ')
  const options = {
    cwd: join(place, 'examples', name),
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  } as const
  const { status, stdout, stderr } = spawnSync('npx', [name, ...words], options)
  const isWhole = status === 0 && /200 passed/.test(stdout + stderr)
  console.log(isWhole ? `${name}: 200 passed` : `${name}: exit ${status}\n${stdout}\n${stderr}`)
  return !isWhole
})
rmSync(place, { recursive: true, force: true })
process.exitCode = failed.length === 0 ? 0 : 1
