/**
 * Runs the suite for pytest in docs/languages.md if this machine has pytest, and the program for Java if this machine
 * has Java. The suites for other languages are only read.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createPath, waitFor } from '../support/process.js'
import { parseBlocks, readDocument } from './document.js'

t.setTimeout(120_000)

const blocks = parseBlocks(readDocument('docs/languages.md'))
const codeOf = (wanted: string) => blocks.flatMap(({ language, code }) => (language === wanted ? [code] : []))
const [, seed = ''] = /<<'END'\n(.*?)END\n/s.exec(codeOf('sh')[0]!) ?? []

const place = mkdtempSync(join(tmpdir(), 'coffer-languages-'))
t.teardown(() => rmSync(place, { recursive: true, force: true }))
const env = { ...process.env, PATH: createPath(place), PYTHONDONTWRITEBYTECODE: '1' }

function prepare(files: Record<string, string>): string {
  const folder = mkdtempSync(join(place, 'suite-'))
  for (const [name, code] of Object.entries({ 'seed.json': seed, ...files }))
    writeFileSync(join(folder, name), code)
  return folder
}

/** Prints the path of the Python that has pytest, because the suite may find another Python first in its PATH. */
const ASK = 'import pytest, sys; print(sys.executable)'
const python = spawnSync('python3', ['-c', ASK], { encoding: 'utf8' }).stdout?.trim() ?? ''

t.test(
  'the suite for pytest in docs/languages.md passes',
  { skip: python === '' && 'python3 or pytest is not installed' },
  async (t) => {
    const [conftest = '', tests = ''] = codeOf('python')
    const folder = prepare({ 'conftest.py': conftest, 'test_tokens.py': tests })
    const words = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-W', 'error']
    const { code, stdout, stderr } = await waitFor(spawn(python, words, { cwd: folder, env }))
    t.equal(code, 0, stdout + stderr)
    t.match(stdout, '3 passed')
  },
)

const [, version = '0'] =
  /version "(\d+)/.exec(spawnSync('java', ['-version'], { encoding: 'utf8' }).stderr ?? '') ?? []
const hasJava = Number(version) >= 17

t.test(
  'the program for Java in docs/languages.md passes',
  { skip: !hasJava && 'Java 17 or newer is not installed' },
  async (t) => {
    const folder = prepare({ 'CofferTest.java': codeOf('java')[0]! })
    const { code, stdout, stderr } = await waitFor(spawn('java', ['CofferTest.java'], { cwd: folder, env }))
    t.equal(code, 0, stdout + stderr)
    t.equal(stdout.match(/^ok: /gm)?.length, 3, stdout)
  },
)

t.test(
  'the suite for each language shows how to reset the data, move the clock and wait for requests',
  async (t) => {
    for (const language of ['python', 'java', 'go', 'csharp', 'ruby', 'php']) {
      const code = codeOf(language).join('\n')
      for (const path of ['/reset', '/clock/advance', '/requests?operation=token+create&count=1&timeout=2s'])
        t.ok(code.includes(path), `${language}: ${path}`)
      t.match(code, /serve --ephemeral|"serve", "--ephemeral"|localhost:4010/, language)
    }
  },
)
