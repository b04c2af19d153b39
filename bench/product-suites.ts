/** Runs, with another engine, test files that otherwise open their vaults in memory. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FILES = [
  ...readdirSync(new URL('../test/operations/', import.meta.url)).map((name) => `operations/${name}`),
  ...['hosts', 'invitation-page', 'answerer', 'byte-budget', 'fuzz'].map((name) => `http/${name}.test.js`),
  'delivery/queue.test.js',
  'parity/parity.test.js',
  'storage/sealed-store.test.js',
  'cli/log.test.js',
  'vault/shared-claims.test.js',
].filter((name) => name.endsWith('.test.js'))

/**
 * `engine` is a value of `COFFER_TEST_ENGINE`. `more` adds test files. The function returns the names of the files that
 * fail.
 */
export function runProductSuites(engine: string, more: readonly string[] = []): string[] {
  const env = { ...process.env, COFFER_TEST_ENGINE: engine, COFFER_TEST_LONG: '1', TAP_TIMEOUT: '7200' }
  return [...more, ...FILES].filter((name) => {
    const file = fileURLToPath(new URL(`../test/${name}`, import.meta.url))
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
}
