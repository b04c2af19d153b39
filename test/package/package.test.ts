/**
 * The packed tarball, installed as a user installs it. npm finds the dependencies in its cache, because `npm ci` has
 * put them there.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { CERTIFICATE, PRIVATE_KEY } from '../http/certificate.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const place = mkdtempSync(join(tmpdir(), 'coffer-package-'))
t.teardown(() => rmSync(place, { recursive: true, force: true }))

/**
 * The test runs the program of the TypeScript compiler directly, because the launcher of the compiler cannot load
 * together with the module that tap adds to child processes of Node.
 */
const PLATFORM = `${process.platform}-${process.arch}`
const COMPILER = join(root, `node_modules/@typescript/typescript-${PLATFORM}/lib/tsc`)
/**
 * The limit for all installed files, including the packages that Coffer needs. The files have 13.9 MB, and the limit
 * is 14.2 MB.
 */
const MAX_INSTALLED_BYTES = 13.5 * 1024 * 1024
/** Matches messages of npm about its own configuration. */
const ABOUT_NPM = /^npm (warn (Unknown|using|config)|notice)/

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(directory, name)).isFile(),
  )
}

t.before(async () => {
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', place]
  const { stdout } = await run('npm', pack, { cwd: root })
  const tarball = join(place, stdout.trim())
  writeFileSync(join(place, 'package.json'), '{"name":"consumer","private":true,"type":"module"}')
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--foreground-scripts', tarball]
  const { stdout: said, stderr } = await run('npm', install, { cwd: place })
  const lines = `${said}\n${stderr}`.split('\n').filter((line) => line.trim() !== '')
  const told = lines.filter((line) => !ABOUT_NPM.test(line) && !/^(added \d+ packages|up to date)/.test(line))
  t.same(told, [], 'npm prints no warning and no output of a script')
})

t.test('the package contains no tests, no keys and no broken links', async (t) => {
  const installed = join(place, 'node_modules/coffer')
  const files = filesBelow(installed)
  for (const file of files) {
    t.notMatch(file, /(^|\/)(test|src)\/|\.map$|\.test\.|(?<!\.d)\.ts$/, file)
    const text = readFileSync(join(installed, file), 'latin1')
    t.notMatch(text, /sourceMappingURL=[^"'`]*\.map\b/, `${file} names no source map`)
    // The test skips links in README, because the registry resolves them to the repository.
    if (file.endsWith('.md') && file !== 'README.md')
      for (const [, link] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g))
        t.ok(existsSync(join(installed, file, '..', link!)), `${file}: ${link}`)
    // The test skips README, because README shows an example of a key.
    if (file !== 'README.md') t.notMatch(text, /\bkey_[1-9A-HJ-NP-Za-km-z]{22}\b/, `${file} has no API key`)
  }
  t.notOk(files.some((name) => name.endsWith('.key') || name.includes('vaults/')))
  const { scripts = {} } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) t.notOk(name in scripts, name)
  const all = filesBelow(place).filter((file) => !file.endsWith('.tgz'))
  const bytes = all.reduce((sum, file) => sum + statSync(join(place, file)).size, 0)
  t.ok(bytes < MAX_INSTALLED_BYTES, `${bytes} bytes are installed`)
})

t.test(
  'a consumer can compile strictly against the package, as a module and as CommonJS, and run it',
  async (t) => {
    cpSync(join(root, 'test/package/consumer.ts.txt'), join(place, 'consumer.mts'))
    cpSync(join(root, 'test/package/consumer.ts.txt'), join(place, 'consumer.cts'))
    const types = join(root, 'node_modules/@types')
    const options = ['--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2023']
    options.push('--types', 'node', '--typeRoots', types)
    const words = [...options, 'consumer.mts', 'consumer.cts']
    const compile = async (words: string[]) => {
      const { stdout } = await run(COMPILER, words, { cwd: place }).catch(
        (error: { stdout: string }) => error,
      )
      t.equal(stdout, '', 'it compiles')
    }
    await compile(words)
    cpSync(join(root, 'test/package/consumer.ts.txt'), join(place, 'consumer.ts'))
    const bundler = ['--strict', '--module', 'esnext', '--moduleResolution', 'bundler', '--target', 'es2023']
    await compile([...bundler, '--noEmit', '--types', 'node', '--typeRoots', types, 'consumer.ts'])
    symlinkSync(join(root, 'node_modules/vitest'), join(place, 'node_modules/vitest'))
    const documents = readFileSync(join(place, 'node_modules/coffer/docs/testing.md'), 'utf8')
    const [, shown] = /^```ts\n(.*?)^```$/ms.exec(documents)!
    const refused =
      "test('x', ({ coffer }) => {\n// @ts-expect-error\ncoffer.keys.nope\n})\nserver.keys.backend"
    writeFileSync(join(place, 'documented.mts'), `${shown}${refused}`)
    await compile([...options, '--noEmit', '--skipLibCheck', 'documented.mts'])
    for (const file of ['consumer.mjs', 'consumer.cjs']) {
      const { stdout } = await run(process.execPath, [file], { cwd: place })
      t.equal(stdout, 'XXXXXXXXXXXX4242 4242424242424242 404 forbidden\n', file)
    }
  },
)

t.test('a tool can find the package through its package.json', async (t) => {
  const script = "const path = require.resolve('coffer/package.json'); console.log(require(path).name)"
  t.equal((await run(process.execPath, ['-e', script], { cwd: place })).stdout, 'coffer\n')
})

t.test('the package has the card fields, and the helpers for Playwright', async (t) => {
  writeFileSync(
    join(place, 'fields.mjs'),
    `import { createRequire } from 'node:module'
import { startServer } from 'coffer'
import { installElements, routeElements } from 'coffer/playwright'
const server = await startServer()
const { status } = await fetch(server.url + '/elements/client/index.js')
await server.stop()
const names = Object.keys(createRequire(import.meta.url)('coffer/playwright')).sort().join()
console.log(status, typeof installElements, typeof routeElements, names)`,
  )
  const { stdout } = await run(process.execPath, ['fields.mjs'], { cwd: place })
  t.equal(stdout, '200 function function installElements,routeElements\n')
})

t.test('a server that npx started stops when npx is ended', async (t) => {
  const words = ['coffer', 'serve', '--ephemeral', '--port', '0', '-o', 'json']
  const stdio = ['ignore', 'pipe', 'ignore'] as ['ignore', 'pipe', 'ignore']
  const npx = spawn('npx', words, { cwd: place, stdio })
  const [said] = (await once(npx.stdout, 'data')) as [Buffer]
  const { url } = JSON.parse(said.toString()) as { url: string }
  t.equal((await fetch(`${url}/healthz`)).status, 200)
  npx.kill('SIGTERM')
  const isUp = () =>
    fetch(`${url}/healthz`).then(
      () => true,
      () => false,
    )
  while (await isUp()) await wait(50)
})

t.test('the installed command coffer runs and finds its data files', async (t) => {
  const coffer = (words: string[], cwd = place) =>
    run(process.execPath, [join(place, 'node_modules/coffer/bin/coffer.js'), ...words], {
      cwd,
      env: { ...process.env, XDG_CONFIG_HOME: join(place, 'config'), COFFER_QUIET: '1' },
    })
  t.match((await coffer(['--version'])).stdout, /^\d+\.\d+\.\d+\n$/)
  await coffer(['init'])
  t.match((await coffer(['formula', 'install', '--output', 'id'])).stdout, /^[0-9a-f-]{36}$/m)
})

t.test('eight processes of node:test, each with its own fork, do not disturb each other', async (t) => {
  cpSync(join(root, 'fixtures/examples'), join(place, 'examples'), { recursive: true })
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const cwd = join(place, 'examples/node-test')
  // The process of the run ends by itself only if no handle is left open.
  const { stdout } = await run(process.execPath, ['run.mjs'], { cwd, env })
  t.match(stdout, /^# pass 200$/m)
  t.match(stdout, /^# fail 0$/m)
})

t.test('eight workers of vitest, each with its own fork, do not disturb each other', async (t) => {
  const installed = join(place, 'node_modules/vitest')
  const { stdout, stderr } = await run(process.execPath, [join(installed, 'vitest.mjs'), 'run'], {
    cwd: join(place, 'examples/vitest'),
    env: { ...process.env, NO_COLOR: '1' },
  })
  t.match(stdout + stderr, /Test Files +8 passed \(8\)\n +Tests +200 passed \(200\)/)
  t.notMatch(stdout + stderr, /timed out|did not exit|open handle/i, 'no handle is left open')
})

t.test('workers of vitest trust the certificate of the server', async (t) => {
  const cwd = join(place, 'tls')
  const setup = `import { serveCoffer } from 'coffer/vitest'
export default serveCoffer({ tls: ${JSON.stringify({ cert: CERTIFICATE, key: PRIVATE_KEY })} })`
  const file = `import { createTest } from 'coffer/vitest'
import { expect } from 'vitest'
createTest()('x', async ({ coffer }) => {
  expect(coffer.url).toMatch(/^https:/)
  await coffer.as(coffer.keys.private).tokens.create({ type: 'token', data: 1 })
})`
  const config = "export default { test: { globalSetup: './setup.mjs' } }"
  mkdirSync(cwd)
  for (const [name, text] of Object.entries({
    'setup.mjs': setup,
    'a.test.mjs': file,
    'vitest.config.mjs': config,
  }))
    writeFileSync(join(cwd, name), text)
  const vitest = join(place, 'node_modules/vitest/vitest.mjs')
  const { stdout } = await run(process.execPath, [vitest, 'run'], {
    cwd,
    env: { ...process.env, NO_COLOR: '1' },
  })
  t.match(stdout, 'Tests  1 passed')
})

t.test('a test that fails prints the requests to its fork', async (t) => {
  const cwd = join(place, 'examples/node-test')
  const suite = join(place, 'examples/suite.cjs')
  writeFileSync(
    suite,
    readFileSync(suite, 'utf8').replace("'not_found'", "'conflict'").replace('number <= 23', 'number <= 1'),
  )
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const failed = await run(process.execPath, ['run.mjs'], { cwd, env }).catch((error: object) => error)
  t.match(failed, { code: 1, stdout: /Requests of this fork[\s\S]*"operation": "token get"/ })
})
