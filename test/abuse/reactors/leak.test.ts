/**
 * After a run has ended in any way, the plaintext that its reactor received exists only in the vault, in encrypted
 * form.
 */
import { mkdirSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createVaultHome } from '../../cli/home.js'
import { findLeaks, readTree } from '../../support/leak.js'

const SECRET = 'PLAINTEXT-4242424242424242-PLAINTEXT'

/** Ways in which a run ends. The code of the reactor does not contain the secret. */
const ENDINGS: Record<string, string> = {
  'a result': 'return { raw: args.secret.length }',
  'a console line': 'console.log(args.secret); return {}',
  'an error of the code': 'const kept = args.secret; throw new Error("failed")',
  'an error of the engine': 'args.secret.nothing.more',
  'a call of a value that is no function': 'args.secret()',
  'an error of a facade': 'Buffer.alloc(args.secret.length, 1).writeInt8(1, 1e9)',
  'a result that contains itself': 'const a = { secret: args.secret }; a.a = a; return { raw: a }',
  'memory that runs out': 'const all = []; for (;;) all.push(args.secret.repeat(1000) + all.length)',
  'memory outside the heap that runs out':
    'const all = []; for (;;) all.push(Buffer.alloc(1e7, args.secret))',
  'time that runs out': 'for (;;) args.secret.toLowerCase()',
  'a fetch that is refused': 'await fetch("http://localhost:1/" + args.secret)',
  'a missing module': 'try { require("none") } finally { globalThis.kept = args.secret }',
}

t.test(
  'after a run, the plaintext that the run received is in no output, file, core dump or directory',
  async (t) => {
    const home = await createVaultHome(t)
    // The test uses a separate directory for temporary files, because other tests use the usual directory at the same
    // time.
    const { TMPDIR } = process.env
    process.env.TMPDIR = join(home.place, 'temporary')
    mkdirSync(process.env.TMPDIR)
    t.teardown(() => {
      if (TMPDIR === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = TMPDIR
    })
    await home.json(['config', 'set', 'reactors.time_limit_ms', '500'])
    await home.run(['token', 'create', '--id', 'secret', '--type', 'token'], {
      stdin: JSON.stringify({ data: SECRET }),
    })
    for (const [name, body] of Object.entries(ENDINGS)) {
      const code = `module.exports = async ({ args }) => { ${body} }`
      const create = (noun: string, flags: string[]) => home.json([noun, 'create', '--name', name, ...flags])
      const { id } = await create('reactor', ['--code', code])
      const { stdout, stderr } = await home.run(['reactor', 'react', id], {
        stdin: '{"args":{"secret":"{{ secret }}"}}',
      })
      t.notMatch(stdout + stderr, SECRET, name)
      const [kept] = await home.json(['reactor', 'logs', id])
      const isShown = JSON.stringify(kept).includes(SECRET)
      t.equal(isShown, name === 'a console line', `${name}: the owner sees only what the code printed`)
    }
    const files = await readTree(home.place)
    t.ok(files.some(({ name }) => name.includes('.coffer')))
    t.same(findLeaks([SECRET], files), [])
    t.same(readdirSync(tmpdir()), [], 'no temporary file is left')
    t.notOk(
      files.some(({ name }) => /(^|\/)core[^/]*$/.test(name)),
      'no core dump was written',
    )
  },
)
