/** A server that ends with the process that started it. */
import type { SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startProgram, waitFor } from '../support/process.js'
import { createWorkplace } from './process.js'

const bin = fileURLToPath(new URL('../../../bin/coffer.js', import.meta.url))
const SERVE = [bin, 'serve', '--ephemeral', '--port', '0', '--output', 'json', '--exit-with-parent']

const place = createWorkplace()
t.teardown(() => place.remove())

t.test('the server stops when standard input ends, also when its parent was killed', async (t) => {
  const child = startProgram(process.execPath, SERVE, { env: place.env, stdio: ['pipe', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  child.stdin.write('ignored')
  t.equal(child.exitCode, null)
  child.stdin.end()
  t.same(await once(child, 'exit'), [0, null])

  // A parent in between, which dies without a chance to say anything.
  const script = `const { spawn } = require('node:child_process')
    const child = spawn(process.execPath, ${JSON.stringify(SERVE)}, { stdio: ['pipe', 'inherit', 'ignore'] })
    console.error(child.pid)`
  const parent = startProgram(process.execPath, ['-e', script], {
    env: place.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [said] = (await once(parent.stderr, 'data')) as [Buffer]
  await once(parent.stdout, 'data')
  parent.kill('SIGKILL')
  const pid = Number(said.toString())
  for (let tries = 0; tries < 100 && isThere(pid); tries++) await new Promise((next) => setTimeout(next, 50))
  t.notOk(isThere(pid))
})

t.test('refused where standard input cannot tell, and with options that read it', async (t) => {
  for (const [stdin, text, ...words] of [
    ['ignore', /needs a pipe or a socket/],
    [openSync(bin, 'r'), /needs a pipe or a socket/],
    ['pipe', /given to --exit-with-parent and --tls-cert/, '--tls-cert', '-', '--tls-key', 'key.pem'],
  ] as const) {
    const stdio = [stdin, 'ignore', 'pipe']
    const options = { cwd: place.directory, env: place.env, stdio } as SpawnOptions
    const child = startProgram(process.execPath, [...SERVE, ...words], options)
    t.match(await waitFor(child), { code: 2, stderr: text })
  }
})

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
