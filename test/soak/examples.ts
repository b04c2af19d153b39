/** The example project for jest, installed from the packed tarball; `npm test` runs those for node:test and vitest. */
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
const packages = [tarball, 'jest@30.5.2']
execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], { cwd: place })
cpSync(join(root, 'fixtures/examples'), join(place, 'examples'), { recursive: true })
const { status, stdout, stderr } = spawnSync('npx', ['jest'], {
  cwd: join(place, 'examples/jest'),
  encoding: 'utf8',
  env: { ...process.env, NO_COLOR: '1' },
})
const isWhole = status === 0 && /200 passed/.test(stdout + stderr)
console.log(isWhole ? 'jest: 200 passed' : `jest: exit ${status}\n${stdout}\n${stderr}`)
rmSync(place, { recursive: true, force: true })
process.exitCode = isWhole ? 0 : 1
