/** A server that ends together with the process that started it. */

import type { SpawnOptions } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { isWrapped, signalOfParent } from '../../src/cli/commands/serve/parent.js'
import { waitFor } from '../support/process.js'
import { createWorkplace } from './process.js'

const bin = fileURLToPath(new URL('../../../bin/coffer.js', import.meta.url))
const SERVE = [bin, 'serve', '--ephemeral', '--port', '0', '--output', 'json', '--exit-with-parent']

const place = createWorkplace()
t.teardown(() => place.remove())

t.test('the server stops when its standard input ends, even if its parent was killed', async (t) => {
  const child = spawn(process.execPath, SERVE, { env: place.env, stdio: ['pipe', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  child.stdin.write('ignored')
  t.equal(child.exitCode, null)
  child.stdin.end()
  t.same(await once(child, 'exit'), [0, null])

  // This script is the parent process of the server. The test kills the script with SIGKILL, so the script cannot end
  // the server.
  const script = `const { spawn } = require('node:child_process')
    const child = spawn(process.execPath, ${JSON.stringify(SERVE)}, { stdio: ['pipe', 'inherit', 'ignore'] })
    console.error(child.pid)`
  const parent = spawn(process.execPath, ['-e', script], {
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

/**
 * Starts the server through a shell that waits for the server, as npm and npx do. The function returns the address of
 * the server.
 */
async function startByShell(t: Test, words: readonly string[], more: Record<string, string> = {}) {
  const quoted = words.map((word) => `'${word}'`).join(' ')
  // Without the command `true` at the end, the shell would replace itself with the server.
  const shell = spawn('sh', ['-c', `'${process.execPath}' ${quoted}; true`], {
    env: { ...place.env, ...more },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [said] = (await once(shell.stdout!, 'data')) as [Buffer]
  const { url } = JSON.parse(said.toString()) as { url: string }
  t.teardown(() => shell.kill('SIGKILL'))
  return { shell, url }
}

const isUp = (url: string) =>
  fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  )

async function waitUntilDown(url: string): Promise<void> {
  while (await isUp(url)) await wait(50)
}

const WITHOUT = SERVE.filter((word) => word !== '--exit-with-parent')

t.test('a server that npx or an npm script started stops when its shell ends', async (t) => {
  for (const script of ["'coffer'", 'coffer serve --ephemeral']) {
    const { shell, url } = await startByShell(t, WITHOUT, { npm_lifecycle_script: script })
    t.ok(await isUp(url), script)
    shell.kill('SIGTERM')
    await waitUntilDown(url)
  }
})

t.test(
  'with --exit-with-parent, a server watches the parent process if standard input is no pipe',
  async (t) => {
    const { shell, url } = await startByShell(t, SERVE)
    shell.kill('SIGTERM')
    await waitUntilDown(url)
    const orphan = { terminal: { stdin: {} }, parentPid: () => 1 }
    const message = /process that started this one has ended already/
    t.throws(() => signalOfParent(orphan as never, true), { code: 'usage', message })
  },
)

t.test(
  'without --exit-with-parent, the server watches its parent shell only if this shell runs nothing except the server',
  async (t) => {
    for (const script of [
      'coffer',
      "'coffer'",
      'coffer serve --port 4010',
      'node bin/coffer.js serve --demo',
      './node_modules/.bin/coffer serve',
      `coffer serve --run 'npm test; true' --port "40 10"`,
    ])
      t.ok(isWrapped({ npm_lifecycle_script: script }), script)
    for (const script of [
      undefined,
      '',
      'coffer serve & sleep 1',
      'coffer serve --port 4010 && node test.js',
      'coffer serve | tee log',
      'node start.js coffer serve',
      'NODE_ENV=test coffer serve',
      'vitest',
      'coffering',
      'coffer serve $(flags)',
    ])
      t.notOk(isWrapped({ npm_lifecycle_script: script }), script ?? 'no script')
  },
)

t.test('if closing a terminal ends the shell, the server continues', async (t) => {
  let parent = 4711
  const stop = new AbortController()
  const start = (more: object) => {
    const context = { env: { npm_lifecycle_script: 'coffer' }, signal: stop.signal, parentPid: () => parent }
    return signalOfParent({ ...context, hangUp: new AbortController().signal, ...more } as never, false)
  }
  // This interval keeps the process of the test running, because the timers of the server do not.
  const alive = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(alive))
  const kept = start({ hangUp: AbortSignal.abort() })!
  const ended = start({})!
  parent = 1
  await once(ended, 'abort')
  t.notOk(kept.aborted, 'the first server has checked its parent before the second, and continues')
  t.equal(start({}), undefined, 'a server whose parent had already ended is a daemon, so nothing is watched')
  parent = 4711
  t.equal(start({ env: {} }), undefined, 'the parent is not watched if another program started the server')
  stop.abort()
})

t.test('an option that reads standard input cannot be combined with --exit-with-parent', async (t) => {
  const words = [...SERVE, '--tls-cert', '-', '--tls-key', 'key.pem']
  const stdio = ['pipe', 'ignore', 'pipe']
  const options = { cwd: place.directory, env: place.env, stdio } as SpawnOptions
  const child = spawn(process.execPath, words, options)
  t.match(await waitFor(child), { code: 2, stderr: /given to --exit-with-parent and --tls-cert/ })
})

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
