import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { promisify } from 'node:util'
import t from 'tap'
import { InputReader, SECRET_LIMIT_BYTES, VALUE_LIMIT_BYTES } from '../../src/cli/input/input.js'
import { suggestName } from '../../src/domain/text/nearest.js'
import { testVault } from './home.js'

const NOT_UTF8 = Buffer.from([0x61, 0xff, 0x62])

function open({ cwd = '/nowhere', stdin = [] as Iterable<unknown> } = {}) {
  return new InputReader({ cwd: () => cwd, stdin: Readable.from(stdin) })
}

t.test(
  'the value of a flag is its text, @FILE, - for standard input, or literal text after @@',
  async (t) => {
    const cwd = t.testdir({ 'value.txt': 'from a file\n', '@odd': 'odd', two: 'x\n\n', bom: '\ufeffx\r\n' })
    const input = open({ cwd, stdin: [Buffer.from('from '), Buffer.from('stdin\r\n')] })
    for (const [source, text] of [
      ['', ''],
      ['a@b', 'a@b'],
      ['--', '--'],
      ['@value.txt', 'from a file'],
      [`@${join(cwd, 'value.txt')}`, 'from a file'],
      ['@./@odd', 'odd'],
      ['@@value.txt', '@value.txt'],
      ['@@@x', '@@x'],
      ['@two', 'x\n'],
      ['@bom', 'x'],
      ['-', 'from stdin'],
    ] as const)
      t.equal(await input.readValue(source, '--data'), text, source)
    t.equal(await input.readFile('bom', '--file'), '\ufeffx\r\n', 'the text can be read back unchanged')
  },
)

t.test('standard input is read once, and if two flags need it, the error names both flags', async (t) => {
  const input = open({ stdin: ['{}'] })
  t.equal(input.isStdinTaken, false)
  t.equal(await input.readFile('-', '--file'), '{}')
  t.equal(input.isStdinTaken, true)
  await t.rejects(input.readValue('@-', '--data'), { code: 'usage', message: /--file and --data/ })
  await t.rejects(input.readFile('-', '--file'), { code: 'usage', message: /--file twice/ })
  await t.rejects(input.readDescriptor(0, '--passphrase-fd'), { code: 'usage', message: /--passphrase-fd/ })
})

t.test('an input that is too large is refused before the command has read all of it', async (t) => {
  const cwd = t.testdir({ fits: 'x'.repeat(VALUE_LIMIT_BYTES), large: 'x'.repeat(VALUE_LIMIT_BYTES + 1) })
  const input = open({ cwd })
  t.equal((await input.readValue('@fits', '--data')).length, VALUE_LIMIT_BYTES)
  const tooLarge = (message: RegExp) => ({ code: 'too_large', exit: 2, message })
  await t.rejects(input.readValue('@large', '--data'), tooLarge(/^--data \(large\) .* 1048576 bytes/))
  await t.rejects(input.readFile('large', '--file'), tooLarge(/^--file \(large\) .* 1048576 bytes/))
  let produced = 0
  function* endless() {
    for (; ; produced++) yield Buffer.alloc(1024)
  }
  await t.rejects(open({ stdin: endless() }).readValue('-', '--data'), tooLarge(/\(standard input\)/))
  t.ok(produced < 2000, `the program asked for ${produced} KiB`)
})

t.test('the error for an input that cannot be read names its flag and file', async (t) => {
  const cwd = t.testdir({ directory: {}, binary: NOT_UTF8 })
  const input = open({ cwd })
  for (const [source, code, message] of [
    ['@missing', 'usage', /^--data \(missing\) does not exist/],
    ['@directory', 'usage', /^--data \(directory\) is a directory/],
    ['@binary/x', 'usage', /^--data \(binary\/x\) does not exist/],
    ['@', 'usage', /^--data names no file/],
    ['@binary', 'validation', /^--data \(binary\) is not UTF-8/],
  ] as const)
    await t.rejects(input.readValue(source, '--data'), { code, message }, source)
  const broken = new PassThrough()
  const reading = new InputReader({ cwd: () => cwd, stdin: broken }).readValue('-', '--data')
  broken.destroy(Object.assign(new Error(), { code: 'ECONNRESET' }))
  await t.rejects(reading, { code: 'usage', message: /standard input\) could not be read \(ECONNRESET\)/ })
})

t.test(
  'a secret file must be a regular file, and its first line must be text that is neither empty nor too long',
  async (t) => {
    const cwd = t.testdir({
      ...{ lines: 'pass phrase \r\nsecond\n', bare: 'bare', bom: '\ufeffx\n', empty: '', blank: '\nx' },
      ...{ fits: `${'x'.repeat(SECRET_LIMIT_BYTES)}\n`, over: 'x'.repeat(SECRET_LIMIT_BYTES + 1) },
      ...{ binary: NOT_UTF8, directory: {}, link: t.fixture('symlink', 'bare') },
    })
    execFileSync('mkfifo', [join(cwd, 'pipe')])
    for (const name of readdirSync(cwd)) if (name !== 'link') chmodSync(join(cwd, name), 0o600)
    const read = (name: string) => open({ cwd }).readSecretFile(name, '--key-file')
    for (const [name, secret] of [
      ['lines', 'pass phrase '],
      ['bare', 'bare'],
      ['bom', 'x'],
      ['fits', 'x'.repeat(SECRET_LIMIT_BYTES)],
    ] as const)
      t.equal(await read(name), secret)
    for (const [name, code, message] of [
      ['empty', 'usage', /^The first line of --key-file .* is empty/],
      ['blank', 'usage', /^The first line of --key-file .* is empty/],
      ['missing', 'usage', /does not exist/],
      ['over', 'usage', /longer than 4096 bytes/],
      ['binary', 'validation', /not UTF-8/],
      ['link', 'usage', /symbolic link/],
      ['directory', 'usage', /not a file/],
      ['pipe', 'usage', /not a file/],
    ] as const)
      await t.rejects(read(name), { code, message }, name)
  },
)

t.test('a secret file that others can access is refused for every user, even root', async (t) => {
  const cwd = t.testdir({ key: 'sesame\n' })
  const input = open({ cwd })
  for (const mode of [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666]) {
    chmodSync(join(cwd, 'key'), mode)
    const message = new RegExp(`mode 0${mode.toString(8)}.*chmod 600`)
    const reading = input.readSecretFile('key', '--key-file')
    const refusal = await t.rejects(reading, { code: 'vault_exposed', exit: 6, message })
    t.notMatch(String(refusal), /sesame/)
  }
  for (const mode of [0o600, 0o400, 0o700]) {
    chmodSync(join(cwd, 'key'), mode)
    t.equal(await input.readSecretFile('key', '--key-file'), 'sesame')
  }
})

t.test('a named pipe is read until its writer closes it', async (t) => {
  const cwd = t.testdir()
  execFileSync('mkfifo', [join(cwd, 'pipe')])
  const input = open({ cwd })
  for (const length of [3, 300_000]) {
    const line = `(printf 'a '; head -c ${length} /dev/zero | tr '\\0' x) > pipe`
    const writer = promisify(execFile)('sh', ['-c', line], { cwd })
    t.equal(await input.readValue('@pipe', '--data'), `a ${'x'.repeat(length)}`)
    await writer
  }
})

t.test(
  'a secret can be read from a file descriptor, and the command does not close the descriptor',
  async (t) => {
    const cwd = t.testdir({ key: 'sesame\nmore' })
    const descriptor = openSync(join(cwd, 'key'), 'r')
    t.equal(await open().readDescriptor(descriptor, '--passphrase-fd'), 'sesame')
    t.doesNotThrow(() => openSync(`/dev/fd/${descriptor}`, 'r'))
    t.equal(await open({ stdin: ['ses', 'ame\nrest'] }).readDescriptor(0, '--passphrase-fd'), 'sesame')
    await t.rejects(open().readDescriptor(9999, '--passphrase-fd'), {
      code: 'usage',
      message: '--passphrase-fd (descriptor 9999) is not open.',
    })
  },
)

t.test('buffers that contained a secret are overwritten', async (t) => {
  const buffers = [Buffer.from('ses'), Buffer.from('ame\nmore')]
  t.equal(await open({ stdin: buffers }).readDescriptor(0, '--api-key-stdin'), 'sesame')
  t.ok(buffers.every((buffer) => buffer.every((byte) => byte === 0)))
})

const SECRET = 'secret-value'

testVault(
  'a misspelled property is reported with the nearest name, and the command still succeeds',
  async (t, home) => {
    const body = { type: 'token', data: 'x', maks: SECRET, metdata: { a: SECRET }, '\u001b[2Jq': SECRET }
    const stdin = JSON.stringify(body)
    const made = await home.run('token create', { stdin })
    t.match(made, { code: 0, stderr: 'Ignored: token create takes no property "maks"; did you mean mask?' })
    t.match(made.stderr, 'takes no property "metdata"; did you mean metadata?')
    t.notMatch(made.stderr, SECRET)
    t.notMatch(made.stderr, '\u001b')
    const missing = await home.run('token create', { stdin: '{"type":"token","dta":"x"}' })
    t.match(missing, { code: 2, stderr: /"dta"; did you mean data\?[\s\S]*--data/ })
    t.match((await home.run('token create --quiet', { stdin })).stderr, /^warning: Ignored: .*"maks"/)
    const inner = '{"type":"token","data":{"dta":1},"metadata":{"dta":"1"}}'
    t.equal(
      (await home.run('token create', { stdin: inner })).stderr,
      '',
      'unknown properties of maps and of data are not reported',
    )
    const { id, key: _, ...app } = await home.createApp({ permissions: ['token:read'] })
    const update = (body: object) => home.run(['app', 'update', id], { stdin: JSON.stringify(body) })
    t.same((await update(app)).stderr, '', 'properties that responses have are not reported')
    t.match(await update({ ...app, nmae: 'x' }), { code: 0, stderr: /"nmae"; did you mean name\?/ })
  },
)

testVault(
  'unknown properties of bodies and rows are reported once, with at most ten names',
  async (t, home) => {
    const line = '{"type":"token","data":1,"maks":"x"}\n'
    const names = Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`name-${at}`, 1]))
    for (const verb of ['create', 'import'])
      for (const [stdin, told] of [
        [line.repeat(3), 1],
        [JSON.stringify({ type: 'token', data: 1, ...names }), 10],
      ] as const) {
        const { stderr } = await home.run(`token ${verb}`, { stdin })
        t.equal(stderr.match(/Ignored: /g)?.length, told)
      }
  },
)

t.test(
  'for a name with one wrong letter, the right name is suggested, even if the name is short',
  async (t) => {
    const names = ['data', 'mask', 'id', 'containers']
    for (const [text, name] of [
      ['dta', 'data'],
      ['daata', 'data'],
      ['dita', 'data'],
      ['adta', 'data'],
      ['Mask', 'mask'],
      ['containrse', 'containers'],
    ] as const)
      t.equal(suggestName(text, names), `; did you mean ${name}?`, text)
    for (const text of ['', 'd', 'is', 'dx', 'mosk1', 'x'.repeat(1e6)]) t.equal(suggestName(text, names), '')
  },
)
