/**
 * Checks the files that editors, shells, agents and development containers read: schemas, completion, a skill and a
 * feature.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import t, { type Test } from 'tap'
import { main } from '../../src/cli/main.js'
import { parseLine } from '../../src/cli/program.js'
import { type Seed, startServer } from '../../src/index.js'
import { registry } from '../../src/operations/all.js'
import { createPath } from '../support/process.js'
import { runProcess } from './fake-process.js'

const ROOT = new URL('../../../', import.meta.url).pathname
const place = mkdtempSync(join(tmpdir(), 'coffer-machines-'))
t.teardown(() => rmSync(place, { recursive: true, force: true }))

const run = (words: readonly string[], env: Record<string, string> = { HOME: '/nonexistent' }) =>
  runProcess(main, { words, env, cwd: place })

async function compile(t: Test, words: readonly string[]) {
  const { code, stdout, stderr } = await run(words)
  t.equal(code, 0, stderr)
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  return ajv.compile(JSON.parse(stdout))
}

const TOKEN = { id: 'one', type: 'token', data: 'x' }

t.test(
  'the schema of seeds accepts the seeds that Coffer accepts, and rejects the seeds that Coffer refuses',
  async (t) => {
    const validate = await compile(t, ['seed', 'schema'])
    const folder = `${ROOT}fixtures/seeds/`
    for (const name of readdirSync(folder).filter((each) => each.endsWith('.json')))
      t.ok(validate(JSON.parse(readFileSync(folder + name, 'utf8'))), name)
    const server = await startServer({ seed: { tokens: [TOKEN] } as unknown as Seed })
    t.teardown(() => server.stop())
    const answered = await server.ask('app list', {})
    const cases: [boolean, object][] = [
      [true, { $schema: './seed.schema.json', tokens: [TOKEN] }],
      [true, { applications: answered.data }],
      [false, { token: [TOKEN] }],
      [false, { tokens: [{ ...TOKEN, colour: 'red' }] }],
      [false, { tenants: [{ name: 'other', tokens: [{ ...TOKEN, colour: 'red' }] }] }],
      [false, { tokens: [{ ...TOKEN, type: 1 }] }],
    ]
    for (const [isValid, seed] of cases) {
      t.equal(validate(seed), isValid, JSON.stringify(seed).slice(0, 80))
      const loading = startServer({ seed: seed as Seed })
      if (isValid) await (await loading).stop()
      else await t.rejects(loading)
    }
  },
)

t.test('each seed in a directory of seeds may name the schema of seeds', async (t) => {
  const seeds = join(place, 'seeds')
  mkdirSync(seeds)
  for (const id of ['one', 'two'])
    writeFileSync(
      join(seeds, `${id}.json`),
      JSON.stringify({ $schema: './seed.schema.json', tokens: [{ ...TOKEN, id }] }),
    )
  const words = ['serve', '--ephemeral', '--port', '0', '--log', 'none', '--seed', seeds]
  const { code, stderr } = await run([...words, '--run', 'true'])
  t.equal(code, 0, stderr)
})

t.test(
  'the schema of config.json has the settings of profiles, and config.json may name the schema',
  async (t) => {
    const validate = await compile(t, ['profile', 'schema'])
    const home = join(place, 'home')
    const path = join(home, '.config/coffer/config.json')
    mkdirSync(join(home, '.config/coffer'), { recursive: true })
    writeFileSync(path, '{"$schema":"./config.schema.json"}', { mode: 0o600 })
    const set = await run(['profile', 'set', 'shop', 'url', 'http://localhost:4010'], { HOME: home })
    t.equal(set.code, 0, set.stderr)
    const written = JSON.parse(readFileSync(path, 'utf8'))
    t.equal(written.$schema, './config.schema.json', 'it stays')
    t.ok(validate(written), JSON.stringify(validate.errors))
    t.notOk(validate({ profiles: { shop: { adress: 'x' } } }))
    t.notOk(validate({ profiles: { shop: { 'passphrase-fd': '3' } } }), 'a profile cannot keep it')
  },
)

t.test('the completion script for PowerShell has balanced brackets and quotes unsafe text', async (t) => {
  const { stdout: script } = await run(['completion', 'powershell'])
  t.match(script, /^Register-ArgumentCompleter -Native -CommandName coffer -ScriptBlock \{$/m)
  t.match(script, 'coffer completion words -- @words')
  t.match(script, '[System.Management.Automation.CompletionResult]::new(')
  const code = script.replace(/^ *#.*$/gm, '').replace(/"(?:`.|[^"`])*"|'(?:''|[^'])*'/g, '')
  for (const [open, close] of ['()', '{}', '[]'].map((pair) => [...pair]))
    t.equal(code.split(open!).length, code.split(close!).length, `${open} and ${close} are balanced`)
  // If the script inserts a text without quotes, the text has no character that PowerShell expands.
  const [, bare = ''] = /-match '([^']+)'/.exec(script) ?? []
  for (const word of ['token', '--type', 'token:read', './a.json', 'a=b'])
    t.match(word, new RegExp(bare), word)
  for (const word of ['a b', '$(x)', '@x', '`x', 'a;b', "a'b", 'a|b', '{a}', 'a,b', 'a"b', '&a'])
    t.notMatch(word, new RegExp(bare), word)
  const offered = async (...words: string[]) => (await run(['completion', 'words', '--', ...words])).stdout
  t.equal(await offered('token', '='), await offered('token', ''), 'a lone = is an empty word')
  t.match(await offered('completion', 'pow'), /^powershell$/m)
})

t.test('the feature for development containers installs Coffer and its completion', async (t) => {
  const folder = `${ROOT}fixtures/devcontainer/coffer`
  const feature = JSON.parse(readFileSync(`${folder}/devcontainer-feature.json`, 'utf8'))
  t.match(feature, {
    id: 'coffer',
    version: /^\d+\.\d+\.\d+$/,
    name: String,
    options: { package: { type: 'string' } },
  })
  t.equal(feature.version, JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')).version)
  const stubs = join(place, 'stubs')
  mkdirSync(stubs)
  writeFileSync(join(stubs, 'npm'), `#!/bin/sh\nprintf '%s\\n' "$@" > ${place}/npm.txt\n`)
  chmodSync(join(stubs, 'npm'), 0o755)
  const env = {
    HOME: place,
    PATH: `${stubs}:${createPath(place)}`,
    COMPLETION_DIRECTORY: join(place, 'completion'),
    PACKAGE: '/tmp/a b.tgz',
  }
  const done = spawnSync('sh', [`${folder}/install.sh`], { env, encoding: 'utf8' })
  t.equal(done.status, 0, done.stderr)
  t.equal(readFileSync(`${place}/npm.txt`, 'utf8'), 'install\n--global\n--\n/tmp/a b.tgz\n')
  t.match(readFileSync(join(place, 'completion/coffer'), 'utf8'), 'complete -o default -F _coffer coffer')
  const bare = { PATH: '/nonexistent' }
  const refused = spawnSync('/bin/sh', [`${folder}/install.sh`], { env: bare, encoding: 'utf8' })
  t.equal(refused.status, 1)
  t.match(refused.stderr, 'needs Node')
})

t.test(
  'the skill file has a header with a name and a description, and the commands of the skill exist',
  async (t) => {
    const text = readFileSync(`${ROOT}docs/skills/coffer/SKILL.md`, 'utf8')
    const [, head = ''] = /^---\n(.*?)\n---\n/s.exec(text) ?? []
    t.match(head, /^name: coffer$/m, 'the name of its folder')
    const [, about = ''] = /^description: (.*)$/m.exec(head) ?? []
    t.ok(about.length > 50 && about.length <= 1024, 'agents read at most 1,024 characters')
    for (const [, command = ''] of text.matchAll(/`coffer ([a-z][^`<]*)`/g))
      t.notOk('text' in parseLine(command.split(' '), registry, 80), command)
    for (const [, path = ''] of text.matchAll(/`(docs\/[\w./-]+)`/g)) t.ok(existsSync(ROOT + path), path)
  },
)

t.test('a server answers a request for llms.txt without a key', async (t) => {
  const server = await startServer()
  t.teardown(() => server.stop())
  const answer = await fetch(`${server.url}/llms.txt`)
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
  t.equal(await answer.text(), readFileSync(`${ROOT}docs/llms.txt`, 'utf8'))
})
