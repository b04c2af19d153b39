/** `coffer reactor dev`: TypeScript, packages, token expressions, positions in error messages, hints and reloads. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addPackage } from '../reactor/dependencies/project.js'
import { type Home, testHome, testVault } from './home.js'

const GREET = `module.exports = async ({ args, configuration }) => {
  console.log('hello', args.name)
  if (args.fail) throw new Error('no')
  return { raw: { hello: args.name, key: configuration.KEY } }
}
`

/** Makes the home a project that has the esbuild of this repository. */
function addEsbuild(home: Home, dependencies: object = {}): void {
  home.write('package.json', JSON.stringify({ dependencies }))
  mkdirSync(join(home.place, 'node_modules'), { recursive: true })
  for (const name of ['esbuild', '@esbuild'])
    symlinkSync(
      fileURLToPath(new URL(`../../../node_modules/${name}`, import.meta.url)),
      join(home.place, 'node_modules', name),
    )
}

testHome('reactor dev runs a file as a reactor would run it', async (t, home) => {
  home.write('greet.js', GREET)
  const done = await home.run('reactor dev greet.js --args {"name":"Ada"} --configuration {"KEY":"k"}')
  t.same(JSON.parse(done.stdout), { raw: { hello: 'Ada', key: 'k' } })
  t.match(done.stderr, 'log: hello Ada\n')
  home.write('net.js', 'module.exports = async () => fetch("http://localhost:1/")')
  for (const [words, code, stderr] of [
    ['greet.js --args [1]', 2, /--args takes key=value or a JSON object/],
    ['greet.js --image node25', 2, /--image takes node-bt, node22, node24/],
    ['greet.js --transform both', 2, /--transform takes request or response/],
    ['none.js', 2, /does not exist/],
    ['net.js', 8, /not on the list of --allow-net/],
    ['net.js --allow-net localhost:1,x.example --allow-net y.example', 8, /ECONNREFUSED/],
    ['net.js --allow-net http://x', 2, /--allow-net takes a host/],
  ] as const)
    t.match(await home.run(`reactor dev ${words}`), { code, stderr }, words)
  home.write('lib.js', 'exports.two = 2\n')
  home.write('uses.js', 'module.exports = async () => ({ raw: require("lib").two })')
  t.match(await home.run('reactor dev uses.js --modules .'), { code: 0, stdout: '{"raw":2}\n' })
  t.match(await home.run(['reactor', 'dev', '-'], { stdin: GREET }), { code: 0, stdout: '{"raw":{}}\n' })
})

testHome(
  'errors of reactor dev name the line of the file, and show the line with a caret',
  async (t, home) => {
    home.write('greet.js', GREET)
    const failed = await home.run('reactor dev greet.js --args {"fail":1}')
    t.equal(failed.code, 8)
    const shown = [
      'greet.js:3:24',
      "  3 |   if (args.fail) throw new Error('no')",
      '    |                        ^',
      'at module.exports (greet.js:3:24)',
    ].join('\n')
    t.ok(failed.stderr.includes(shown), failed.stderr)
    home.write('logs.js', '\nmodule.exports = async () => { console.log(new Error("x")); return { raw: 1 } }')
    t.match((await home.run('reactor dev logs.js')).stderr, 'at module.exports (logs.js:2:44)')
    home.write('typo.js', 'module.exports = async () => {\n\tlet x = ;\n}\n')
    const typo = await home.run('reactor dev typo.js')
    t.match(typo, { code: 8, stderr: 'typo.js does not compile: line 2, column 10: Unexpected token.' })
    t.ok(typo.stderr.startsWith('typo.js:2:10\n  2 |   let x = ;\n    |           ^\n'), typo.stderr)
    home.write('long.js', `${' '.repeat(500_000)}let x = ;${' '.repeat(500_000)}`)
    const long = await home.run('reactor dev long.js')
    t.match(long, { code: 8, stderr: /column 500009/ })
    t.ok(long.stderr.length < 1000, 'of a long line, only the surroundings of the place are shown')
    t.match(long.stderr, /^warning: The code has 1000009 bytes\. A reactor may have at most 262144/)
    home.write('module.js', "import x from 'y'\n\nexport default async () => ({})\n")
    const stderr = /module\.js:1:1\n.*module\.js:3:1\n.*const x = require\('y'\).*module\.exports = async/s
    t.match(await home.run('reactor dev module.js'), { code: 8, stderr })
  },
)

testHome(
  'the esbuild of the project compiles TypeScript, and errors name the lines of the TypeScript file',
  async (t, home) => {
    addEsbuild(home)
    home.write(
      'greet.ts',
      `interface Event {
  args: { name?: string }
}

type Result = { raw: { hello: string } }

export default async function greet({ args }: Event): Promise<Result> {
  const name: string = args.name!
  return { raw: { hello: name.toUpperCase() } }
}
`,
    )
    t.match(await home.run('reactor dev greet.ts --args name=Ada'), {
      code: 0,
      stdout: '{"raw":{"hello":"ADA"}}\n',
    })
    const failed = await home.run('reactor dev greet.ts')
    t.match(failed, { code: 8, stderr: /^greet\.ts:9:31$/m })
    t.match(failed.stderr, /^at greet \(greet\.ts:9:31\)$/m)
    t.match(failed.stderr, '  9 |   return { raw: { hello: name.toUpperCase() } }\n')
    home.write('bad.ts', 'export default async () => {\n  const é: string = ;\n}\n')
    t.match(await home.run('reactor dev bad.ts'), {
      code: 8,
      stderr: /^bad\.ts:2:21\n {2}2 \|.*bad\.ts does not compile: line 2, column 21: Unexpected ";"/s,
    })
    home.write('await.ts', 'const x = 1\nawait x\nexport default () => x\n')
    t.match(await home.run('reactor dev await.ts'), { code: 8, stderr: /^await\.ts:2:1\n/ })
    home.write('common.cts', 'const x: number = 1\nmodule.exports = async () => ({ raw: x })\n')
    t.match(await home.run('reactor dev common.cts'), { code: 0, stdout: '{"raw":1}\n' })
    rmSync(join(home.place, 'node_modules/esbuild'))
    addPackage(home.place, 'esbuild', 'exports.version = "0.1.0"')
    t.match(await home.run('reactor dev greet.ts'), {
      code: 2,
      stderr: /npm install --save-dev esbuild@latest/,
    })
  },
)

testHome('a file that reactor dev runs may require the packages of its project', async (t, home) => {
  addEsbuild(home, { plain: '^1.0.0' })
  addPackage(home.place, 'plain', 'exports.a = 7; exports.fail = () => { throw new Error("inner") }')
  home.write('uses.ts', "import { a } from 'plain'\nexport default async () => ({ raw: a })\n")
  const done = await home.run('reactor dev uses.ts')
  t.match(done, { code: 0, stdout: '{"raw":7}\n' })
  t.match(done.stderr, `--runtime '{"image":"node22","dependencies":{"plain":"1.2.3"}}'`)
  home.write('fails.js', "const p = require('plain')\nmodule.exports = async () => p.fail()\n")
  t.match((await home.run('reactor dev fails.js')).stderr, /^fails\.js:2:32$/m)
  home.write('other.js', "module.exports = async () => ({ raw: require('other') })\n")
  const other = await home.run('reactor dev other.js')
  t.match(other, {
    code: 1,
    stderr: /^error: The package other cannot be used: package\.json of the project/,
  })
  t.notMatch(other.stderr, 'Cannot find module', 'the code does not run')
  addPackage(home.place, 'plain', { files: { 'index.js': 'exports.a = 7', 'sub.js': 'exports.b = 8' } })
  home.write('sub.js', "module.exports = async () => ({ raw: require('plain/sub').b })\n")
  const sub = await home.run('reactor dev sub.js')
  t.match(sub, { code: 0, stdout: '{"raw":8}\n', stderr: /"dependencies":\{"plain":"1\.2\.3"\}/ })
})

testHome('reactor dev counts several errors, and lists each error once', async (t, home) => {
  home.write('esm.js', "import a from 'a'\nexport default async () => 1\n")
  const { stderr } = await home.run('reactor dev esm.js')
  t.match(stderr, 'error: esm.js does not compile. It has 2 errors.\n')
  t.equal(stderr.split("const a = require('a')").length, 2)
})

testHome('a stack trace names the top level of the module as Node does', async (t, home) => {
  home.write('top.js', "throw new Error('top')\n")
  t.match((await home.run('reactor dev top.js')).stderr, 'at Object.<anonymous> (top.js:1:7)\n')
})

testVault('expressions in arguments are replaced as in a call of the reactor', async (t, home) => {
  home.write('echo.js', 'module.exports = async ({ args }) => ({ raw: args })')
  await home.createToken({ id: 'ada', data: { name: 'Ada' } })
  const args = JSON.stringify({ a: "{{ token:ada | json: '$.data.name' }}", b: '{{ ada }}', c: 1 })
  const dev = ['reactor', 'dev', 'echo.js', '--args']
  const expected = { raw: { a: 'Ada', b: { name: 'Ada' }, c: 1 } }
  t.same(await home.json([...dev, args]), expected)
  const config = await home.json([...dev, 'x={{ config: KEY }}', '--configuration', 'KEY=k'])
  t.same(config, { raw: { x: 'k' } })
  t.match(await home.run([...dev, 'x={{ nobody }}']), { code: 2, stderr: /args\.x/ })
  const [first] = (await home.json('log list')).data
  t.match(first, { operation: 'use', message: 'Token used' })
  const { key: use } = await home.createApp({ permissions: ['token:use'], rules: [] })
  const { key: invoke } = await home.createApp({ permissions: ['reactor:invoke'] })
  const { key: read } = await home.createApp({ permissions: ['token:read'] })
  for (const key of [use, invoke])
    t.same(await home.json([...dev, args], { env: { COFFER_API_KEY: key } }), expected)
  t.match(await home.run([...dev, args], { env: { COFFER_API_KEY: read } }), { code: 4 })
  t.match(await home.run([...dev, args], { env: { COFFER_NO_REVEAL: '1' } }), { code: 4, stdout: '' })
  const seed = { tokens: [{ id: 'ada', type: 'token', data: { name: 'Bob' } }] }
  home.write('seed.json', JSON.stringify(seed))
  t.same(await home.json([...dev, 'b={{ ada }}', '--seed', 'seed.json']), { raw: { b: { name: 'Bob' } } })
})

testHome('without a vault, reactor dev needs a seed to replace expressions', async (t, home) => {
  home.write('echo.js', 'module.exports = async ({ args }) => ({ raw: args })')
  t.match(await home.run(['reactor', 'dev', 'echo.js', '--args', 'b={{ ada }}']), {
    code: 6,
    stderr: /give --seed FILE/,
  })
})

testHome(
  'if the result of code has no effect, a hint says what code with this image and transform can return',
  async (t, home) => {
    home.write('nothing.js', 'module.exports = async () => {}')
    home.write('other.js', 'module.exports = async () => ({ hello: 1 })')
    for (const [words, code, hint] of [
      ['nothing.js', 0, 'Return { raw: … } for a value, or { tokenize: … }'],
      ['other.js', 0, 'Return { raw: … }'],
      ['nothing.js --image node24', 0, 'Return { res: { body: … } }'],
      ['nothing.js --transform request', 8, 'Return { body, headers } to replace the request'],
      ['other.js --transform request --image node22', 8, 'Return { req: { body, headers } } to replace'],
      ['nothing.js --transform response --image node22', 8, 'Return { res: { body, headers } } to replace'],
    ] as const) {
      const { stderr, code: ended } = await home.run(`reactor dev ${words}`)
      t.ok(stderr.replaceAll('\n', ' ').includes(hint), `${words}: ${stderr}`)
      t.equal(ended, code)
    }
    home.write('full.js', 'module.exports = async () => ({ raw: null, res: { body: 1 } })')
    t.notMatch((await home.run('reactor dev full.js')).stderr, /Return/)
  },
)

testHome(
  'reactor dev gives a transform a message and prints the message that the transform returns',
  async (t, home) => {
    home.write(
      'change.js',
      'module.exports = async ({ req, res }) => (req ?? res).body.x === 1 ? { body: { y: 2 } } : {}',
    )
    home.write(
      'answer.js',
      'module.exports = async () => ({ res: { statusCode: 418, headers: { a: "b" }, body: "x" } })',
    )
    for (const [words, expected] of [
      ['change.js --transform request', { req: { body: '{"y":2}' } }],
      ['change.js --transform response', { res: { body: '{"y":2}' } }],
      ['answer.js --transform request', { res: { statusCode: 418, headers: { a: 'b' }, body: 'x' } }],
    ] as const)
      t.same(await home.json(`reactor dev ${words} --args {"body":{"x":1}}`), expected, words)
    t.same(await home.json('reactor dev change.js --transform request --args {"body":{"x":2}}'), {})
  },
)

testHome(
  'with --watch, reactor dev runs a file with its arguments each time the file is saved',
  async (t, home) => {
    const save = (code: string) =>
      home.write('watched.js', `module.exports = async ({ args }) => { ${code} }`)
    save('console.log("first"); throw new Error("not yet")')
    let step: NodeJS.Timeout | undefined
    let isDeleted = false
    const running = home.run('reactor dev watched.js --watch --args name=Ada', {
      interruptAt: 'log: second Ada',
      watch: (text) => {
        if (!text.includes('Waiting for') || step !== undefined) return
        step = setInterval(() => {
          if (!isDeleted) rmSync(join(home.place, 'watched.js'))
          else save('console.log("second", args.name); return { raw: 2 }')
          isDeleted = true
        }, 300)
      },
    })
    const { stdout, stderr } = await running.finally(() => clearInterval(step))
    t.match(stderr, /log: first\n.*not yet.*Waiting for the file to be saved.*log: second Ada\n/s)
    t.match(stdout, /"raw":2|^$/)
  },
)

testHome(
  'text from hostile files and file names is printed escaped, and --watch refuses a pipe',
  async (t, home) => {
    const name = 'e\u001b[31mvil.js'
    home.write(name, 'module.exports = async () => { throw new Error("\\u001b[2Jgone\\u202e") }')
    const { stdout, stderr, code } = await home.run(['reactor', 'dev', name])
    t.equal(code, 8)
    t.notMatch(stdout + stderr, /[\u001b\u202e]/)
    t.match(stderr, '\\u{1b}[31mvil.js:1:')
    home.write('typo.js', 'let \u001b[31m = "\u202e"')
    t.notMatch((await home.run('reactor dev typo.js')).stderr, /[\u001b\u202e]/)
    for (const [file, content] of [
      ['empty.js', ''],
      ['zero.js', '\0'.repeat(100)],
      ['json.js', '{"a":1}'],
      ['deep.js', '['.repeat(200_000)],
      [
        'frames.js',
        'module.exports = async () => { throw Object.assign(new Error("x"), { stack: "at a (reactor.js:9999999:1)" }) }',
      ],
    ] as const) {
      home.write(file, content)
      t.match(await home.run(`reactor dev ${file}`), { code: 8, stdout: '' }, file)
    }
    writeFileSync(join(home.place, 'binary.js'), Buffer.from([0xff, 0xfe, 0x00]))
    t.match(await home.run('reactor dev binary.js'), { code: 2, stderr: /UTF-8/ })
    home.write('large.js', ' '.repeat(1024 * 1024 + 1))
    t.match(await home.run('reactor dev large.js'), {
      stdout: '',
      stderr: /larger than the limit of 1048576 bytes/,
    })
    if (process.platform === 'win32') return
    execFileSync('mkfifo', [join(home.place, 'pipe.js')])
    t.match(await home.run('reactor dev pipe.js --watch'), {
      code: 2,
      stderr: /a pipe can be read only once/,
    })
  },
)
