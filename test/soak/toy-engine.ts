/** Every test file that opens a vault in memory, over the engine that takes its time. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FILES = [
  ...readdirSync(new URL('../operations/', import.meta.url)).map((name) => `operations/${name}`),
  ...['hosts', 'invitation-page', 'outbox-page', 'answerer', 'load', 'fuzz'].map(
    (name) => `http/${name}.test.js`,
  ),
  'mail/post.test.js',
  'parity/parity.test.js',
  'storage/record-cache.test.js',
  'storage/sealed-store.test.js',
  'cli/log.test.js',
].filter((name) => name.endsWith('.test.js'))

const env = { ...process.env, COFFER_TEST_ENGINE: 'toy' }
const failed = FILES.filter((name) => {
  const file = fileURLToPath(new URL(`../${name}`, import.meta.url))
  const { status, stdout } = spawnSync(process.execPath, ['--enable-source-maps', file], {
    env,
    encoding: 'utf8',
  })
  console.log(`${status === 0 ? 'passed' : 'FAILED'} ${name}`)
  if (status !== 0)
    console.log(
      stdout
        .split('\n')
        .filter((line) => line.includes('not ok'))
        .join('\n'),
    )
  return status !== 0
})
process.exitCode = failed.length === 0 ? 0 : 1
