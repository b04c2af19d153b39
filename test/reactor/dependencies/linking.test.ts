/** Reactors whose code requires packages of a project, from deployment to run. */
import { existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openTestVault } from '../../../src/index.js'
import { addPackage, createDirectory, createProject, write } from './project.js'

type Vault = Awaited<ReturnType<typeof openTestVault>>

interface Reactor {
  id: string
  state: string
  code?: string
  requested?: {
    reactor: { code?: string; runtime?: { dependencies?: object } }
    error_code?: string
    error_message?: string
    error_details?: { dependencies: { name: string; version: string; installed?: string; reason: string }[] }
  }
}

async function send(vault: Vault, method: string, path: string, body?: unknown) {
  const headers = { 'svc-api-key': vault.keys.management!, 'content-type': 'application/json' }
  const type = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {}
  const answer = await vault.fetch(path, {
    method,
    headers: { ...headers, ...type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, body: (text === '' ? undefined : JSON.parse(text)) as Reactor }
}

const runtimeOf = (dependencies: object) => ({ image: 'node22', dependencies })

function deploy(vault: Vault, code: string, dependencies: object) {
  return send(vault, 'POST', '/reactors', { name: 'r', code, runtime: runtimeOf(dependencies) })
}

/** Runs code with the given dependencies and returns the value of `expression`. */
async function run(vault: Vault, expression: string, dependencies: object): Promise<unknown> {
  const { body } = await deploy(vault, codeOf(expression), dependencies)
  const answer = await react(vault, body.id)
  return answer.status === 200 ? answer.body : answer
}

const codeOf = (expression: string) =>
  `module.exports = async () => ({ res: { body: { is: ${expression} } } })`

async function react(vault: Vault, id: string) {
  const headers = { 'svc-api-key': vault.keys.private!, 'content-type': 'application/json' }
  const answer = await vault.fetch(`/reactors/${id}/react`, { method: 'POST', headers, body: '{}' })
  return { status: answer.status, body: (await answer.json()) as unknown }
}

t.test(
  'code can require declared packages: CommonJS, ES modules, scoped packages, and packages with dependencies',
  async (t) => {
    const project = createProject(t, {
      plain: "exports.a = require('inner').b + 1",
      '@acme/scoped':
        "module.exports = (n) => require('crypto').createHash('sha256').update(n).digest('hex').length",
      modern: {
        manifest: { type: 'module', exports: { '.': { import: './main.mjs', default: './main.mjs' } } },
        files: {
          'main.mjs': "export const c = 3; export default 4; export const late = () => import('inner')",
        },
      },
      browser: {
        manifest: { main: './node.js', browser: './browser.js' },
        files: { 'node.js': "module.exports = require('fs')", 'browser.js': "module.exports = 'small'" },
      },
      inner: 'exports.b = 1',
      spelled: "exports.text = 'import(1) <!-- -->'; let n = 3, c = 0; while (n --> 0) c++; exports.c = c",
    })
    await using vault = await openTestVault({ dependencies: [project] })
    const all = {
      plain: '1.0.0',
      '@acme/scoped': '1.9.9',
      modern: '1.0.0',
      browser: '1.0.0',
      spelled: '1.0.0',
    }
    for (const [expression, expected] of [
      ["require('plain').a", 2],
      ["require('@acme/scoped')('x')", 64],
      ["[require('modern').c, require('modern').default, (await require('modern').late()).b]", [3, 4, 1]],
      ["require('browser')", 'small'],
      ["[require('spelled').text, require('spelled').c]", ['import(1) <!-- -->', 3]],
    ] as const)
      t.strictSame(await run(vault, expression, all), { is: expected }, expression)
    t.match(await run(vault, "require('inner')", { plain: '1.0.0' }), {
      status: 502,
      body: { errors: { error: [/Cannot find module 'inner'\. .*runtime\.dependencies.*--dependencies/] } },
    })
  },
)

t.test(
  'if a package of a reactor cannot be used, the reactor is failed with an error code and does not run',
  async (t) => {
    const large = `module.exports = ${JSON.stringify('x'.repeat(8 * 1024 * 1024))}`
    const project = createProject(
      t,
      {
        plain: 'exports.a = 1',
        large,
        addon: "module.exports = require('./addon.node')",
        evaluated: "exports.a = eval('1')",
        broken: 'exports.a = ',
        versionless: { manifest: { version: 'latest' }, files: { 'index.js': '' } },
        outside: "module.exports = require('../../secret.json')",
        malformed: { manifest: '{', files: { 'index.js': '' } },
      },
      { more: { version: '1.0.0' } },
    )
    write(join(project, 'secret.json'), '{"secret":"s3cret"}')
    addPackage(project, 'undeclared', 'exports.a = 1')
    write(join(project, 'node_modules/addon/addon.node'), 'binary')
    await using vault = await openTestVault({ dependencies: [project] })
    for (const [name, version, code, reason] of [
      ['missing', '1.0.0', 'dependency_not_found', /does not name it/],
      ['undeclared', '1.0.0', 'dependency_not_found', /does not name it/],
      ['plain', '2.0.0', 'dependency_version_mismatch', /has version 1\.2\.3/],
      ['large', '1.0.0', 'dependency_not_supported', /8388\d+ bytes; at most 8388608/],
      ['addon', '1.0.0', 'dependency_not_supported', /No loader/],
      ['evaluated', '1.0.0', 'dependency_not_supported', /eval\(\) is not available/],
      ['broken', '1.0.0', 'dependency_not_supported', /cannot be linked: Unexpected/],
      ['versionless', '1.0.0', 'dependency_not_supported', /no valid version/],
      ['malformed', '1.0.0', 'dependency_not_found', /not installed/],
      ['outside', '1.0.0', 'dependency_not_supported', /secret\.json, which is outside/],
      ['fs', '1.0.0', 'dependency_not_supported', /module of Node/],
    ] as const) {
      const { status, body } = await deploy(vault, codeOf(`require('${name}')`), { [name]: version })
      t.equal(status, 201, name)
      t.equal(body.state, 'failed', name)
      t.match(body.requested, {
        reactor: { runtime: { dependencies: { [name]: version } } },
        error_code: code,
        error_message: reason,
        error_details: { dependencies: [{ name, version, reason }] },
      })
      t.notMatch(JSON.stringify(body), 's3cret')
      t.notMatch(JSON.stringify(body), project, 'no path of the machine')
      t.match(await react(vault, body.id), {
        status: 422,
        body: { detail: 'The reactor is not ready: failed.' },
      })
    }
  },
)

t.test('a package is evaluated again for each run, so a run sees no change of another run', async (t) => {
  const project = createProject(t, {
    shared: 'exports.state = {}',
    rough: `exports.refused = []
for (const change of [() => { Object.prototype.left = 1 }, () => { Array.prototype.map = 1 }, () => { globalThis.left = 1 }])
        try { change() } catch (error) { exports.refused.push(error.name) }`,
  })
  const vault = await openTestVault({ dependencies: [project] })
  t.teardown(() => vault.stop())
  const code = `const { state } = require('shared')
    const { refused } = require('rough')
    module.exports = async () => {
      const seen = [state.seen ?? 'nothing', {}.left ?? 'nothing', globalThis.left === 1, typeof [].map]
      state.seen = 'a change'
      return { res: { body: { seen, refused } } }
    }`
  const { body } = await deploy(vault, code, { shared: '1.0.0', rough: '1.0.0' })
  const own = ['nothing', 'nothing', true, 'function']
  for (let round = 0; round < 3; round++)
    t.match(await react(vault, body.id), {
      status: 200,
      body: { seen: own, refused: ['TypeError', 'TypeError'] },
    })
  t.same(
    await run(vault, "[{}.left ?? 'nothing', globalThis.left ?? 'nothing']", {}),
    { is: ['nothing', 'nothing'] },
    'another reactor sees none of these changes',
  )
})

t.test('a dependency whose name is a path is refused, in reactors and in transforms', async (t) => {
  const project = createProject(t, { plain: 'exports.a = 1' })
  await using vault = await openTestVault({ dependencies: [project] })
  for (const name of [
    '../secret',
    './secret',
    '/etc/passwd',
    '@scope/../secret',
    '@scope/..',
    '@scope',
    '@scope/a/b',
    'plain/package.json',
    '%2e%2e/secret',
    'a\\b',
    '..',
    '.bin',
    '_internal',
    '__proto__',
    'a b',
    'a\0',
    '',
    'file:secret',
    'x'.repeat(215),
  ]) {
    const dependencies = JSON.parse(`{${JSON.stringify(name)}:"1.0.0"}`) as object
    const headers = { 'svc-api-key': vault.keys.management!, 'content-type': 'application/json' }
    const post = async (path: string, body: string) => {
      const answer = await vault.fetch(path, { method: 'POST', headers, body })
      return { status: answer.status, body: await answer.json() }
    }
    const runtime = `{"image":"node22","dependencies":{${JSON.stringify(name)}:"1.0.0"}}`
    t.equal((await post('/reactors', `{"name":"r","code":"1","runtime":${runtime}}`)).status, 400, name)
    const transforms = `[{"type":"code","code":"1","options":{"runtime":${runtime}}}]`
    const proxy = `{"name":"p","destination_url":"https://a.example","request_transforms":${transforms}}`
    t.equal((await post('/proxies', proxy)).status, 400, name)
    t.ok(dependencies)
  }
})

t.test(
  'a symbolic link to a target in node_modules is followed, and a link to another target is not followed',
  async (t) => {
    const elsewhere = createDirectory(t)
    write(join(elsewhere, 'package.json'), '{"name":"linked","version":"1.0.0"}')
    write(join(elsewhere, 'index.js'), "module.exports = 's3cret'")
    const project = createProject(t, {
      plain: "module.exports = require('./lib/deep.js')",
      linked: '',
      stored: '',
    })
    rmSync(join(project, 'node_modules/linked'), { recursive: true })
    symlinkSync(elsewhere, join(project, 'node_modules/linked'))
    rmSync(join(project, 'node_modules/stored'), { recursive: true })
    addPackage(project, '.store/stored', "module.exports = 'stored'")
    symlinkSync(join(project, 'node_modules/.store/stored'), join(project, 'node_modules/stored'))
    write(join(project, 'node_modules/plain/lib/readme'), '')
    symlinkSync(join(elsewhere, 'index.js'), join(project, 'node_modules/plain/lib/deep.js'))
    await using vault = await openTestVault({ dependencies: [project] })
    for (const name of ['linked', 'plain']) {
      const { body } = await deploy(vault, codeOf(`require('${name}')`), { [name]: '1.0.0' })
      t.match(body, { state: 'failed', requested: { error_message: /outside of node_modules/ } }, name)
      t.notMatch(JSON.stringify(body), 's3cret')
    }
    t.same(await run(vault, "require('stored')", { stored: '1.0.0' }), { is: 'stored' })
  },
)

t.test(
  'a package cannot change the realm while it loads, and cannot leave anything for the next run',
  async (t) => {
    const project = createProject(t, {
      patching: 'Array.prototype.map = () => 1',
      global:
        'globalThis.left = (globalThis.left ?? 0) + 1; exports.left = globalThis.left; exports.kept = {}',
      escaping: `exports.found = [typeof process.mainModule, typeof process.getBuiltinModule, ...['constructor'].map((n) => {
      try { return typeof (() => {})[n]('return process')().mainModule } catch (e) { return e.name } })]`,
      recursive: "module.exports = require('recursive')",
    })
    await using vault = await openTestVault({ dependencies: [project] })
    t.match(await run(vault, "require('patching')", { patching: '1.0.0' }), {
      status: 502,
      body: { errors: { error: [/Cannot (?:assign|redefine|define)/] } },
    })
    const code = `const g = require('global')
    module.exports = async () => { const was = g.kept.x; g.kept.x = 1; return { res: { body: [g.left, was ?? null] } } }`
    const { body } = await deploy(vault, code, { global: '1.0.0' })
    for (let at = 0; at < 3; at++) t.same((await react(vault, body.id)).body, [1, null])
    t.match(await run(vault, "require('recursive')", { recursive: '1.0.0' }), { is: {} })
    t.notMatch(
      JSON.stringify(await run(vault, "require('escaping').found", { escaping: '1.0.0' })),
      /object|function/,
    )
  },
)

t.test('a deployed reactor keeps its packages, whatever happens to the project later', async (t) => {
  const project = createProject(t, { plain: 'exports.a = 1', other: 'exports.a = 1' })
  await using vault = await openTestVault({ dependencies: [project] })
  const code = codeOf("require('plain').a")
  const { body } = await deploy(vault, code, { plain: '1.0.0' })
  const manifest = join(project, 'package.json')
  for (const text of ['{"dependencies":{}}', '{', '[]', '{"dependencies":["plain"],"devDependencies":7}']) {
    writeFileSync(manifest, text)
    t.same((await react(vault, body.id)).body, { is: 1 }, 'it runs')
    const again = await deploy(vault, code, { plain: '1.0.0' })
    t.match(again.body, { state: 'failed', requested: { error_code: 'dependency_not_found' } }, text)
  }
  writeFileSync(manifest, '{"dependencies":{"plain":"1.0.0"}}')
  addPackage(project, 'plain', { manifest: { version: '1.3.0' }, files: { 'index.js': 'exports.a = 22' } })
  t.same(await run(vault, "require('plain').a", { plain: '1.0.0' }), { is: 22 }, 'a deployment links again')
  addPackage(project, 'plain', { manifest: { version: '1.3.0' }, files: { 'index.js': 'exports.a = 333' } })
  t.same(
    await run(vault, "require('plain').a", { plain: '1.0.0' }),
    { is: 333 },
    'also if only a file changed',
  )
})

t.test('a hostile package.json cannot declare a dependency', async (t) => {
  const project = createProject(t, { plain: 'exports.a = 1' })
  await using vault = await openTestVault({ dependencies: [project] })
  for (const text of [
    `{"dependencies":{"plain":"1.0.0"},"x":"${'y'.repeat(1024 * 1024)}"}`,
    '{"__proto__":{"dependencies":{"plain":"1.0.0"}}}',
    '{"dependencies":{"__proto__":{"plain":"1.0.0"}}}',
    '{"dependencies":{"plain":{"version":"1.0.0"}}}',
    '{"dependencies":"plain"}',
    'null',
  ]) {
    writeFileSync(join(project, 'package.json'), text)
    const { body } = await deploy(vault, codeOf('1'), { plain: '1.0.0' })
    t.match(body, { state: 'failed', requested: { error_code: 'dependency_not_found' } }, text.slice(0, 60))
  }
})

t.test(
  'without a project, a reactor cannot have dependencies, and the image node-bt ignores them',
  async (t) => {
    await using vault = await openTestVault()
    const { body } = await deploy(vault, codeOf('1'), { plain: '1.0.0' })
    t.match(body, {
      state: 'failed',
      requested: { error_code: 'dependencies_not_available', error_message: /--dependencies/ },
    })
    const runtime = { dependencies: { plain: '1.0.0' } }
    t.match(await send(vault, 'POST', '/reactors', { name: 'r', code: codeOf('1'), runtime }), {
      status: 201,
      body: { state: 'active', runtime: { image: 'node-bt', dependencies: { plain: '1.0.0' } } },
    })
  },
)

t.test(
  'code with the image node-bt can require a package if it is on a fixed list and the project has it',
  async (t) => {
    const project = createProject(t, {
      axios: "module.exports = 'axios'",
      '@basis-theory/node-sdk': "module.exports = 'the client'",
      unlisted: 'exports.a = 1',
    })
    await using vault = await openTestVault({ dependencies: [project] })
    const runBare = async (name: string) => {
      const code = `module.exports = async () => ({ raw: require("${name}") })`
      const { body } = await send(vault, 'POST', '/reactors', { name: 'r', code })
      return react(vault, body.id)
    }
    t.match(await runBare('axios'), { body: { raw: 'axios' } })
    t.match(await runBare('@basis-theory/node-sdk-2'), { body: { raw: 'the client' } })
    for (const name of ['unlisted', 'stripe', '@basis-theory/node-sdk'])
      t.match(await runBare(name), { status: 500, body: { errors: { error: [/Cannot find module/] } } }, name)
  },
)

t.test('if a change of a reactor cannot be built, the earlier version keeps running', async (t) => {
  const project = createProject(t, { plain: 'exports.a = 1' })
  await using vault = await openTestVault({ dependencies: [project] })
  const { body } = await deploy(vault, codeOf("require('plain').a"), { plain: '1.0.0' })
  t.equal(body.state, 'active')
  t.notOk('requested' in body)
  const path = `/reactors/${body.id}`
  const missing = { runtime: { dependencies: { missing: '1.0.0' } }, code: codeOf("'new'") }
  t.equal((await send(vault, 'PATCH', path, missing)).status, 204)
  const outdated = (await send(vault, 'GET', path)).body
  t.match(outdated, {
    state: 'outdated',
    code: codeOf("require('plain').a"),
    runtime: { dependencies: { plain: '1.0.0', missing: undefined } },
    requested: {
      reactor: { code: codeOf("'new'"), runtime: { dependencies: { plain: '1.0.0', missing: '1.0.0' } } },
      error_code: 'dependency_not_found',
    },
  })
  t.same((await react(vault, body.id)).body, { is: 1 })
  await send(vault, 'PATCH', path, { name: 'renamed' })
  t.match(
    (await send(vault, 'GET', path)).body,
    { state: 'outdated', name: 'renamed' },
    'a new name builds nothing',
  )
  t.equal((await send(vault, 'PATCH', path, { code: codeOf("'newer'") })).status, 204)
  const active = (await send(vault, 'GET', path)).body
  t.equal(active.state, 'active')
  t.notOk('requested' in active)
  t.same((await react(vault, body.id)).body, { is: 'newer' })
  t.match(
    await send(vault, 'PUT', path, {
      name: 'r',
      code: codeOf('1'),
      runtime: runtimeOf({ missing: '1.0.0' }),
    }),
    { status: 200, body: { state: 'outdated' } },
  )
  t.same((await react(vault, body.id)).body, { is: 'newer' })
})

t.test(
  'if the first version of a reactor cannot be built, the reactor is failed until a change can be built',
  async (t) => {
    const project = createProject(t, { plain: 'exports.a = 1' })
    await using vault = await openTestVault({ dependencies: [project] })
    const { body } = await deploy(vault, codeOf('1'), { missing: '1.0.0' })
    t.equal(body.state, 'failed')
    const path = `/reactors/${body.id}`
    await send(vault, 'PATCH', path, { code: codeOf('2') })
    t.match(
      (await send(vault, 'GET', path)).body,
      { state: 'failed', code: codeOf('2') },
      'no version has run',
    )
    await send(vault, 'PATCH', path, { runtime: { dependencies: { missing: null, plain: '1.0.0' } } })
    t.match((await send(vault, 'GET', path)).body, {
      state: 'active',
      code: codeOf('2'),
      requested: undefined,
    })
    t.same((await react(vault, body.id)).body, { is: 2 })
  },
)

t.test('the state of a proxy is the worst state of its transforms', async (t) => {
  const project = createProject(t, { plain: 'exports.a = 1' })
  await using vault = await openTestVault({ dependencies: [project], allowNet: ['a.example'] })
  const answer = "({ res: { statusCode: 200, body: { is: require('plain').a } } })"
  const transform = (dependencies: object) => ({
    type: 'code',
    code: `module.exports = async () => ${answer}`,
    options: { runtime: runtimeOf(dependencies) },
  })
  const post = (...transforms: object[]) =>
    send(vault, 'POST', '/proxies', {
      name: 'p',
      destination_url: 'https://a.example',
      request_transforms: transforms,
    })
  const call = async (id: string) => {
    const { key } = (await send(vault, 'GET', `/proxies/${id}`)).body as unknown as { key: string }
    const headers = { 'svc-api-key': vault.keys.private!, 'svc-proxy-key': key }
    const answer = await vault.fetch('/proxy', { headers })
    return { status: answer.status, body: (await answer.json()) as unknown }
  }
  const good = transform({ plain: '1.0.0' })
  const bad = transform({ missing: '1.0.0' })
  const failed = await post(good, bad)
  t.match(failed, {
    status: 201,
    body: {
      state: 'failed',
      requested: { error_code: 'dependency_not_found', proxy: { request_transforms: [good, bad] } },
    },
  })
  t.match(await call(failed.body.id), {
    status: 422,
    body: { proxy_error: { detail: 'The proxy is not ready: failed.' } },
  })
  const active = await post(good)
  t.equal(active.body.state, 'active')
  t.same(await call(active.body.id), { status: 200, body: { is: 1 } })
  await send(vault, 'PATCH', `/proxies/${active.body.id}`, { request_transforms: [bad] })
  t.match((await send(vault, 'GET', `/proxies/${active.body.id}`)).body, {
    state: 'outdated',
    request_transforms: [good],
    requested: { proxy: { request_transforms: [bad] } },
  })
  t.same(await call(active.body.id), { status: 200, body: { is: 1 } }, 'the earlier version answers')
})

t.test(
  'reactors of a seed can have dependencies, and a directory without a project is refused',
  async (t) => {
    const project = createProject(t, { plain: 'exports.a = 1' })
    const seed = {
      applications: [{ name: 'private', type: 'private', permissions: ['token:use'] }],
      reactors: [
        {
          name: 'seeded',
          code: codeOf("require('plain').a"),
          runtime: { image: 'node22', dependencies: { plain: '1.0.0' } },
        },
      ],
    } as const
    await using vault = await openTestVault({ dependencies: [project], seed })
    const { data } = await vault.ask('reactor list')
    t.match(data, [{ name: 'seeded', state: 'active' }])
    t.same((await react(vault as never, data[0]!.id)).body, { is: 1 })
    await t.rejects(openTestVault({ dependencies: [createDirectory(t)] }), {
      code: 'usage',
      message: /package\.json/,
    })
  },
)

t.test('a project without esbuild uses the esbuild that is installed with Coffer', async (t) => {
  const project = createProject(t, { plain: 'exports.a = 1' }, { esbuild: false })
  await using vault = await openTestVault({ dependencies: [project] })
  t.same(await run(vault, "require('plain').a", { plain: '1.0.0' }), { is: 1 })
})

t.test('if the esbuild of the project is too old or misbehaves, a reactor fails with a reason', async (t) => {
  const bundle = (result: string) => `exports.version = '0.28.0'; exports.build = async () => (${result})`
  const output = (text: string, inputs = '{}') =>
    bundle(`{ outputFiles: [{ text: ${text} }], metafile: { inputs: ${inputs} } }`)
  for (const [esbuild, reason] of [
    ["exports.version = '0.14.0'", /esbuild is too old/],
    ["exports.version = { toString: () => 'x' }", /esbuild is too old/],
    ['throw new Error("no binary")', /no binary/],
    ['process.exit(0)', /esbuild failed/],
    ["process.kill(process.pid, 'SIGKILL')", /esbuild failed/],
    ["require('fs').writeSync(3, '{}'); process.exit(0)", /esbuild failed/],
    [
      "require('fs').writeSync(3, JSON.stringify({ text: 1, inputs: [] })); process.exit(0)",
      /esbuild failed/,
    ],
    [output("'x'.repeat(64 * 1024 * 1024)"), /esbuild failed|at most 8388608/],
    [output("'1'", "{ '../../../../../etc/passwd': {} }"), /outside of node_modules/],
    [output("'1'", "{ 'node_modules/absent.js': {} }"), /outside of node_modules/],
    [output('7'), /cannot be linked/],
  ] as const) {
    const project = createProject(t, { plain: 'exports.a = 1' }, { esbuild: false })
    addPackage(project, 'esbuild', esbuild)
    await using vault = await openTestVault({ dependencies: [project] })
    const { body } = await deploy(vault, codeOf('1'), { plain: '1.0.0' })
    t.match(
      body,
      { state: 'failed', requested: { error_code: 'dependency_not_supported', error_message: reason } },
      esbuild.slice(0, 60),
    )
  }
})

t.test(
  'the process that links packages gets no environment variable of the server, and runs no script of a package',
  async (t) => {
    const project = createProject(t, { plain: 'exports.a = 1' }, { esbuild: false })
    const marker = join(project, 'marker')
    const scripts = {
      preinstall: `touch ${marker}`,
      postinstall: `touch ${marker}`,
      prepare: `touch ${marker}`,
    }
    addPackage(project, 'plain', { manifest: { scripts }, files: { 'index.js': 'exports.a = 1' } })
    const names = 'JSON.stringify(Object.keys(process.env).filter((name) => !/^__/.test(name)))'
    const text = `exports.version = '0.28.0'; exports.build = async () => ({ outputFiles: [{ text: 'exports.env = ' + ${names} }], metafile: { inputs: {} } })`
    addPackage(project, 'esbuild', text)
    await using vault = await openTestVault({ dependencies: [project] })
    t.same(await run(vault, "require('plain').env", { plain: '1.0.0' }), { is: [] })
    t.notOk(existsSync(marker))
  },
)
