/** The file of an editor: private while it is open, and gone afterwards. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { editText } from '../../src/cli/input/editor.js'
import { createHome } from './home.js'

t.test('the file is private, and removed with what is beside it', async (t) => {
  const home = createHome(t)
  const seen = `${home.place}/seen`
  const EDITOR = home.write(
    'editor',
    `#!/bin/sh\nls -ld "$1" > ${seen}\nls -ld "$(dirname "$1")" >> ${seen}\necho one > "$1.swp"\nprintf 'two\\nlines\\n' > "$1"\n`,
    0o700,
  )
  const env = { EDITOR, XDG_RUNTIME_DIR: home.place, PATH: process.env.PATH }
  t.equal(await editText({ env, signal: new AbortController().signal }, 'json'), 'two\nlines')
  t.match(readFileSync(seen, 'utf8'), /^-rw-{7} .*\ndrwx-{6} /)
  t.same(readdirSync(home.place).sort(), ['editor', 'seen'])
  const assigning = { ...env, EDITOR: `OTHER=1 ${EDITOR}` }
  t.equal(await editText({ env: assigning, signal: new AbortController().signal }, 'js'), 'two\nlines')
  const VISUAL = home.write('failing', '#!/bin/sh\necho half > "$1"\nexit 1\n', 0o700)
  const failing = { env: { ...env, VISUAL }, signal: new AbortController().signal }
  await t.rejects(editText(failing, 'js'), { code: 'usage' })
  t.same(readdirSync(home.place).sort(), ['editor', 'failing', 'seen'])
})

t.test('an interrupt removes the file at once, and ends the editor', async (t) => {
  const home = createHome(t)
  const EDITOR = home.write('editor', '#!/bin/sh\necho half > "$1"\nexec sleep 600\n', 0o700)
  const stop = new AbortController()
  const env = { EDITOR, XDG_RUNTIME_DIR: home.place, PATH: process.env.PATH }
  const edited = editText({ env, signal: stop.signal }, 'js')
  const find = () => readdirSync(home.place).find((name) => name.startsWith('coffer-'))
  while (find() === undefined || !existsSync(`${home.place}/${find()}/input.js`)) await setTimeout(5)
  stop.abort()
  t.equal(find(), undefined, 'before anybody waits')
  await t.rejects(edited)
  t.equal(find(), undefined)
})
