/**
 * Runs the example for jest: eight workers, each with a fork. The test installs jest from the registry, because no
 * other test needs jest.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const VERSION = '29.7.0'
const EXPECTED = /Test Suites: 8 passed, 8 total\nTests: +200 passed, 200 total/
const root = fileURLToPath(new URL('../../../', import.meta.url))
const place = mkdtempSync(join(tmpdir(), 'coffer-jest-'))

function run(program: string, words: readonly string[], cwd = place): string {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${words.join(' ')} failed:\n${stdout}${stderr}`)
  return stdout + stderr
}

try {
  const packed = run(
    'npm',
    ['pack', '--ignore-scripts', '--silent', '--pack-destination', place],
    root,
  ).trim()
  run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', `./${packed}`, `jest@${VERSION}`])
  cpSync(join(root, 'fixtures/examples'), join(place, 'examples'), { recursive: true })
  const printed = run(
    process.execPath,
    [join(place, 'node_modules/jest/bin/jest.js')],
    join(place, 'examples/jest'),
  )
  if (!EXPECTED.test(printed)) throw new Error(`Not all 200 tests passed:\n${printed}`)
  if (/did not exit|open handle/i.test(printed)) throw new Error(`A handle is left open:\n${printed}`)
  console.log('200 tests of 8 workers passed.')
} finally {
  rmSync(place, { recursive: true, force: true })
}
