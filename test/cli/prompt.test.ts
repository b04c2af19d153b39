import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { editText } from '../../src/cli/input/editor.js'
import { ask, askTwice, confirm, select } from '../../src/cli/input/prompt.js'
import { createTerminal, type FakeTerminal } from './fake-terminal.js'
import { createHome } from './home.js'

const ENTER = '\r'
const DOWN = '\u001b[B'
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const CTRL_U = '\u0015'

/** Somebody at a terminal who, when the next of `lines` is asked, types what stands with it. */
function createPerson(lines: readonly [question: string, keys: string][]): FakeTerminal {
  const terminal = createTerminal({ columns: 80, mayPrompt: true })
  const { stderr, stdin } = terminal
  const draw = stderr._write
  const left = [...lines]
  let drawn = ''
  stderr._write = (chunk, encoding, done) => {
    draw.call(stderr, chunk, encoding, done)
    drawn += withoutStyle(String(chunk))
    const [question, keys] = left[0] ?? []
    if (question === undefined || !drawn.includes(question)) return
    left.shift()
    drawn = ''
    // Once the question is drawn it listens.
    setImmediate(() => stdin.write(keys))
  }
  return terminal
}

const withoutStyle = (text: string) => text.replace(/\u001b\[[\d;?]*[A-Za-z]/g, '')

t.test('a question is drawn on standard error and its answer comes back', async (t) => {
  const terminal = createPerson([['? Type', `card${ENTER}`]])
  t.equal(await ask(terminal, { message: 'Type \u001b[31m?' }), 'card')
  t.match(withoutStyle(terminal.stderr.text), /Type \\u\{1b\}\[31m\? card/)
  t.equal(terminal.stdout.text, '')
  t.equal(terminal.stderr.writableEnded, false, 'standard error can still be written to')
})

t.test('an answer that is refused is asked again, saying why', async (t) => {
  const terminal = createPerson([
    ['? Which', `bad${ENTER}`],
    ['> must be', `${CTRL_U}good${ENTER}`],
  ])
  const validate = (answer: string) => (answer === 'good' ? true : 'must be \u0007good')
  t.equal(await ask(terminal, { message: 'Which?', validate }), 'good')
  t.match(withoutStyle(terminal.stderr.text), /> must be \\u\{7\}good/)
})

t.test('a secret is never drawn, nor how long it is once it is given', async (t) => {
  const terminal = createPerson([
    ['? Passphrase', 'ses'],
    ['***', `ame${ENTER}`],
  ])
  t.equal(await ask(terminal, { message: 'Passphrase', sensitive: true }), 'sesame')
  const drawn = withoutStyle(terminal.stderr.text)
  t.notMatch(drawn, /ses|ame/)
  t.match(drawn, /Passphrase \*{8}\s*$/)
})

t.test('a new secret is typed twice, until both are the same', async (t) => {
  const terminal = createPerson([
    ['? New', `first-secret${ENTER}`],
    ['? The same again', `other-secret${ENTER}`],
    ['? The two differ. New', `third-secret${ENTER}`],
    ['? The same again', `third-secret${ENTER}`],
  ])
  t.equal(await askTwice(terminal, { message: 'New passphrase' }), 'third-secret')
  const drawn = withoutStyle(terminal.stderr.text)
  t.match(drawn, /The two differ\. New passphrase/)
  t.notMatch(drawn, /secret/)
})

t.test('yes or no, and no when nothing is said', async (t) => {
  t.equal(await confirm(createPerson([['? ', `y${ENTER}`]]), { message: 'Delete?' }), true)
  t.equal(await confirm(createPerson([['? ', `n${ENTER}`]]), { message: 'Delete?' }), false)
  t.equal(await confirm(createPerson([['? ', ENTER]]), { message: 'Delete?' }), false)
})

t.test('one of several is chosen by its value', async (t) => {
  const choices = ['one', 'two']
  const terminal = createPerson([['? Which', DOWN + ENTER]])
  t.equal(await select(terminal, { message: 'Which \u202e?', missing: '--type', choices }), 'two')
  t.match(withoutStyle(terminal.stderr.text), /Which \\u\{202e\}/)
  t.notMatch(terminal.stderr.text, /\u202e/)
})

t.test('Ctrl-C, Ctrl-D and the end of the input interrupt', async (t) => {
  for (const key of [CTRL_C, CTRL_D]) {
    await t.rejects(ask(createPerson([['? Type', key]]), { message: 'Type?' }), {
      code: 'interrupted',
      exit: 130,
    })
  }
  const gone = createPerson([])
  setImmediate(() => setImmediate(() => gone.stdin.end()))
  await t.rejects(ask(gone, { message: 'Type?' }), { code: 'interrupted' })
})

t.test('nothing is left listening once the answer is there', async (t) => {
  const terminal = createPerson([
    ['? One', `a${ENTER}`],
    ['? Two', `b${ENTER}`],
  ])
  await ask(terminal, { message: 'One?' })
  const before = ['pause', 'end', 'close', 'keypress'].map((event) => terminal.stdin.listenerCount(event))
  await ask(terminal, { message: 'Two?' })
  const after = ['pause', 'end', 'close', 'keypress'].map((event) => terminal.stdin.listenerCount(event))
  t.same(after, before)
})

t.test('colours are drawn only where they are wanted', async (t) => {
  const COLOUR = /\u001b\[\d[\d;]*m/
  const plain = createPerson([['? Type', `x${ENTER}`]])
  await ask(plain, { message: 'Type?' })
  t.notMatch(plain.stderr.text, COLOUR)
})

t.test('where nobody can be asked, what is missing is named', async (t) => {
  const terminal = createTerminal({ columns: 80 })
  const missing = '--type'
  const refusal = { code: 'usage', exit: 2, message: /^--type is missing/ }
  await t.rejects(ask(terminal, { message: 'Type?', missing }), refusal)
  await t.rejects(askTwice(terminal, { message: 'Type?', missing }), refusal)
  await t.rejects(select(terminal, { message: 'Type?', missing, choices: ['a'] }), refusal)
  await t.rejects(confirm(terminal, { message: 'Sure?' }), { code: 'usage', message: /^--yes is missing/ })
  await t.rejects(ask(terminal, { message: 'Token type' }), { message: /^Token type is missing/ })
  t.equal(terminal.stderr.text, '')
})

t.test('editor', async (t) => {
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
})
