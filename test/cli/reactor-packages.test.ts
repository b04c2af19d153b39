/** `reactor link`, `reactor check`, and `serve --dependencies`. */
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { addPackage, createProject } from '../reactor/dependencies/project.js'
import { testHome, testVault } from './home.js'

const CODE = "const { a } = require('plain'); module.exports = async () => ({ res: { body: { a } } })"
const RUNTIME = JSON.stringify({ image: 'node22', dependencies: { plain: '1.0.0' } })

testVault(
  'code in a stored vault can use linked packages, and no command starts a program of the project',
  async (t, home) => {
    const project = createProject(t, { plain: 'exports.a = 7', '@acme/scoped': 'exports.b = 1' })
    const out = join(home.place, 'modules')
    const linked = await home.run(['reactor', 'link', project, '--out', out, '-o', 'json'])
    t.equal(linked.code, 0, linked.stderr)
    t.match(JSON.parse(linked.stdout), [
      { package: 'plain', version: '1.2.3', state: 'ok' },
      { package: '@acme/scoped', version: '1.2.3', state: 'ok' },
    ])
    t.same(JSON.parse(readFileSync(join(out, 'coffer-dependencies.json'), 'utf8')), {
      plain: '1.2.3',
      '@acme/scoped': '1.2.3',
    })
    t.equal(statSync(join(out, '@acme/scoped.js')).mode & 0o077, 0, 'only the owner may read them')
    // If a command runs the esbuild of the project, that package creates this file.
    const marker = join(home.place, 'started')
    addPackage(project, 'plain', 'exports.a = 8')
    rmSync(join(project, 'node_modules/esbuild'))
    addPackage(project, 'esbuild', `require('fs').writeFileSync(${JSON.stringify(marker)}, '')`)
    const create = ['reactor', 'create', '--name', 'r', '--code', CODE, '--runtime', RUNTIME, '-o', 'json']
    const options = { COFFER_DEPENDENCIES: project }
    t.match(JSON.parse((await home.run(create, { env: options })).stdout), {
      state: 'failed',
      requested: { error_code: 'dependencies_not_available' },
    })
    const made = await home.run([...create, '--modules', out], { env: options })
    t.match(JSON.parse(made.stdout), { state: 'active' })
    const { id } = JSON.parse(made.stdout) as { id: string }
    const ran = await home.run(['reactor', 'react', id, '--modules', out, '-o', 'json'], { env: options })
    t.match(JSON.parse(ran.stdout), { res: { body: { a: 7 } } })
    const bare = await home.run(['reactor', 'react', id, '-o', 'json'])
    t.match(bare.stderr, /cannot run here\. plain 1\.0\.0: This server has no packages/)
    const other = RUNTIME.replace('1.0.0', '2.0.0')
    const wrong = await home.run([
      'reactor',
      'create',
      '--name',
      's',
      '--code',
      CODE,
      '--runtime',
      other,
      '--modules',
      out,
    ])
    t.match(wrong.stdout, /dependency_version_mismatch/)
    const served = await home.run(['serve', '--port', '0', '--dependencies', project])
    t.equal(served.code, 2)
    t.match(served.stderr, /needs --ephemeral.*coffer reactor link/)
    t.notOk(readdirSync(home.place).includes('started'))
  },
)

testHome(
  'packages that cannot be linked are reported, and the bundles of the other packages are written',
  async (t, home) => {
    const project = createProject(
      t,
      { plain: 'exports.a = 7', broken: 'exports.a = ' },
      {
        more: { devDependencies: { '../escaped': '1.0.0' } },
      },
    )
    const out = join(home.place, 'deep/modules')
    const { code, stdout, stderr } = await home.run(['reactor', 'link', project, '--out', out, '-o', 'json'])
    t.equal(code, 1)
    t.match(JSON.parse(stdout), [
      { package: 'plain', state: 'ok' },
      { package: 'broken', state: 'wrong', reason: /cannot be linked/ },
    ])
    t.match(stderr, /These cannot be used: broken/)
    t.same(readdirSync(out).sort(), ['coffer-dependencies.json', 'plain.js'])
    const escaped = await home.run(['reactor', 'link', project, '../escaped', '--out', out, '-o', 'json'])
    t.match(JSON.parse(escaped.stdout), [{ package: '../escaped', state: 'wrong' }])
    t.same(readdirSync(join(home.place, 'deep')), ['modules'])
    for (const words of [
      ['reactor', 'link', project],
      ['reactor', 'link', home.place, '--out', out],
    ])
      t.equal((await home.run(words)).code, 2)
  },
)

testHome('if code requires a path below a package, reactor check links this path', async (t, home) => {
  const files = { 'index.js': '', 'sub.js': 'exports.b = 8' }
  const project = createProject(t, { plain: { files } })
  const manifest = join(project, 'package.json')
  const check = async (name: string) => {
    home.write('r.js', `module.exports = () => require('${name}')`)
    const done = await home.run(['reactor', 'check', 'r.js', '--package-json', manifest, '-o', 'json'])
    return (JSON.parse(done.stdout) as { package: string; state: string }[]).map(
      (row) => `${row.package} ${row.state}`,
    )
  }
  t.same(await check('plain/sub'), ['plain ok', 'plain/sub ok', 'r.js ok'])
  t.same(await check('plain/none'), ['plain ok', 'plain/none wrong', 'r.js ok'])
})

testHome(
  'reactor check links the packages that the code requires, and loads the code with these packages',
  async (t, home) => {
    const project = createProject(t, { plain: 'exports.a = 7', patching: 'Array.prototype.map = () => 1' })
    const check = async (code: string) => {
      home.write('r.js', code)
      const manifest = join(project, 'package.json')
      const { code: exit, stdout } = await home.run([
        'reactor',
        'check',
        'r.js',
        '--package-json',
        manifest,
        '-o',
        'json',
      ])
      return { exit, rows: JSON.parse(stdout) as unknown }
    }
    t.match(await check(`require('crypto'); require('node:util'); ${CODE}`), {
      exit: 0,
      rows: [
        { package: 'plain', version: '1.2.3', state: 'ok' },
        { package: 'r.js', state: 'ok' },
      ],
    })
    t.match(await check(CODE.replace('plain', 'missing')), {
      exit: 1,
      rows: [
        { package: 'missing', state: 'wrong', reason: /does not name it/ },
        { package: 'r.js', state: 'ok' },
      ],
    })
    t.match(await check(CODE.replace('plain', 'patching')), {
      exit: 1,
      rows: [
        { package: 'patching', state: 'ok' },
        { package: 'r.js', state: 'wrong', reason: /Cannot/ },
      ],
    })
    t.match(await check('let x = ;'), {
      exit: 1,
      rows: [{ package: 'r.js', state: 'wrong', reason: /line 1/ }],
    })
  },
)

testHome('an ephemeral server links the packages of several projects', async (t, home) => {
  const [first, second] = [
    createProject(t, { plain: 'exports.a = 7' }),
    createProject(t, { other: 'exports.b = 8' }),
  ]
  home.write(
    'seed.json',
    JSON.stringify({
      reactors: [
        {
          name: 'r',
          code: "module.exports = async () => ({ res: { body: [require('plain').a, require('other').b] } })",
          runtime: { image: 'node24', dependencies: { plain: '1.0.0', other: '1.0.0' } },
        },
      ],
    }),
  )
  const words = ['serve', '--ephemeral', '--seed', 'seed.json', '--dependencies', `${first},${second}`]
  const { stdout } = await home.run([...words, '--port', '0', '-o', 'json'], { interruptAt: '{"url"' })
  t.match(stdout, '"url"')
  const missing = await home.run(['serve', '--ephemeral', '--dependencies', home.place])
  t.equal(missing.code, 2)
  t.match(missing.stderr, /has no readable package\.json/)
  const hidden = await home.run(['serve', '--ephemeral', '--dependencies', first, '--no-reveal'])
  t.equal(hidden.code, 4, 'no-reveal mode forbids it')
})
