/** Questions on a terminal: how a question is displayed, and which questions a command asks. */
import t from 'tap'
import { ask, askTwice, confirm, type Question } from '../../src/cli/input/prompt.js'
import { type Answer, answerInTurn, createTerminal, type FakeTerminal, withoutStyle } from './fake-process.js'
import { createHome, type Home, ruleOf, testVault } from './home.js'

const ENTER = '\r'
const DOWN = '\u001b[B'
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const CTRL_U = '\u0015'

/**
 * Creates a terminal with a simulated person. After a question is displayed, the person types the keys of its answer.
 */
function createPerson(answers: readonly Answer[]): FakeTerminal {
  const terminal = createTerminal({ columns: 80, mayPrompt: true })
  const { stderr, stdin } = terminal
  const draw = stderr._write
  const type = answerInTurn(stdin, answers)
  stderr._write = (chunk, encoding, done) => {
    draw.call(stderr, chunk, encoding, done)
    type(String(chunk))
  }
  return terminal
}

const choices = ['one', 'two'].map((value) => ({ value, name: value }))
const isGood = (answer: string) => answer === 'good' || 'must be \u0007good'

t.test(
  'a question is displayed on standard error without control characters, colours or secrets',
  async (t) => {
    const wrong: Answer[] = [
      ['? Which', `bad${ENTER}`],
      ['> must be', `${CTRL_U}good${ENTER}`],
    ]
    const type = (question: string, keys: string): Answer[] => [[question, keys]]
    const secret = { message: 'Passphrase', sensitive: true }
    const search = { type: 'search', message: 'Which?', choices } as const
    for (const [question, answers, answer, drawn] of [
      [{ message: 'Type \u001b[31m?' }, type('? Type', `card${ENTER}`), 'card', /Type \\u\{1b\}\[31m\? card/],
      [{ message: 'Which?', validate: isGood }, wrong, 'good', /> must be \\u\{7\}good/],
      [secret, [...type('? Pass', 'ses'), ...type('***', `ame${ENTER}`)], 'sesame', /Passphrase \*{8}\s*$/],
      [{ type: 'select', message: '\u202e?', choices }, type('?', DOWN + ENTER), 'two', /\\u\{202e\}/],
      [search, [...type('? Which', 'tw'), ...type('❯ two', ENTER)], 'two', /Which\?/],
      [{ type: 'confirm', message: 'Sure?' }, type('? Sure', ENTER), 'false', /Sure\?/],
    ] as [Question, Answer[], string, RegExp][]) {
      const terminal = createPerson(answers)
      t.equal(await ask(terminal, question), answer)
      t.match(withoutStyle(terminal.stderr.text), drawn)
      t.notMatch(terminal.stderr.text, /ses|ame|\u202e|\u001b\[\d[\d;]*m/)
      t.same([terminal.stdout.text, terminal.stderr.writableEnded], ['', false])
    }
    await confirm(createPerson([['? ', `y${ENTER}`]]), 'Delete?')
    await t.rejects(confirm(createPerson([['? ', ENTER]]), 'Delete?'), { code: 'interrupted' })
  },
)

t.test(
  'a new secret must be typed twice, and the questions are repeated until both entries are equal',
  async (t) => {
    const terminal = createPerson([
      ['? New', `first-secret${ENTER}`],
      ['? The same again', `other-secret${ENTER}`],
      ['? The two differ. New', `third-secret${ENTER}`],
      ['? The same again', `third-secret${ENTER}`],
    ])
    t.equal(await askTwice(terminal, { message: 'New passphrase' }), 'third-secret')
    t.notMatch(withoutStyle(terminal.stderr.text), /secret/)
  },
)

t.test(
  'Ctrl-C, Ctrl-D and the end of the input interrupt a question, and all listeners of the question are removed',
  async (t) => {
    const interrupted = { code: 'interrupted', exit: 130 }
    for (const key of [CTRL_C, CTRL_D, `x${ENTER}`]) {
      const terminal = createPerson([['? Type', key]])
      // After the first key, readline adds its permanent listeners.
      if (key.endsWith(ENTER)) t.equal(await ask(terminal, { message: 'Type?' }), 'x')
      else await t.rejects(ask(terminal, { message: 'Type?' }), interrupted)
      for (const event of ['pause', 'end', 'close']) t.ok(terminal.stdin.listenerCount(event) <= 1, event)
    }
    const gone = createPerson([])
    setImmediate(() => setImmediate(() => gone.stdin.end()))
    await t.rejects(ask(gone, { message: 'Type?' }), interrupted)
  },
)

t.test('without a terminal, an error names the missing values', async (t) => {
  const terminal = createTerminal({ columns: 80 })
  const refusal = { code: 'usage', exit: 2, message: /^--type is missing/ }
  await t.rejects(ask(terminal, { message: 'Type?', missing: '--type' }), refusal)
  await t.rejects(askTwice(terminal, { message: 'Type?', missing: '--type' }), refusal)
  await t.rejects(confirm(terminal, 'Sure?'), { code: 'usage', message: /^--yes is missing/ })
  await t.rejects(ask(terminal, { message: 'Token type' }), { message: /^Token type is missing/ })
  t.equal(terminal.stderr.text, '')
})

/** Runs a command with the given answers of a person. Returns the JSON that the command prints. */
async function answer(
  home: Home,
  line: string,
  answers: readonly Answer[],
  env: Record<string, string> = {},
) {
  const { code, stdout, stderr } = await home.run(`${line} -o json`, { columns: 100, answers, env })
  return { code, stderr: withoutStyle(stderr), result: stdout === '' ? undefined : JSON.parse(stdout) }
}

testVault(
  'a command asks for missing values and derives the questions from the schema of its input',
  async (t, home) => {
    home.write('value', '4242424242424242\n')
    const code = 'module.exports = async () => ({})'
    await home.json(['formula', 'create', '--name', 'greet', '--type', 'private', '--code', code])
    for (const [line, answers, expected] of [
      [
        'token create --id card',
        [
          ['? type', `${DOWN}${ENTER}`],
          ['? data.number', '4242424242424243\r'],
          ['valid check digit', `${CTRL_U}4242424242424242\r`],
          ['? data.expiration_month (optional)', '13\r'],
          ['from 1 to 12', `${CTRL_U}12\r`],
          ['? data.expiration_year (optional)', '2030\r'],
          ['? data.cvc (optional)', ENTER],
        ],
        { data: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 } },
      ],
      ['token create --type token --id text', [['? data', 'plain words\r']], { id: 'text' }],
      [
        'token create --type card_number --id file',
        [
          ['? data', '@none\r'],
          ['does not exist', `${CTRL_U}@value\r`],
        ],
        { data: 'XXXXXXXXXXXX4242' },
      ],
      ['token get', [['? id', 'card\r']], { id: 'card' }],
      [
        'app create --name backend --type private',
        [
          ['? permissions or rules', ENTER],
          ['token:create  Create tokens (public, private)', ` ${DOWN} ${ENTER}`],
        ],
        { permissions: ['token:create', 'token:read'] },
      ],
      [
        'reactor create',
        [
          ['? name', 'first\r'],
          ['? code or formula', `${DOWN}${ENTER}`],
          ['? formula', 'gre'],
          ['❯ greet', ENTER],
        ],
        { name: 'first', formula: { name: 'greet' } },
      ],
      [
        'profile set',
        [
          ['? profile', 'support\r'],
          ['? setting', 'vault\r'],
          ['? vault', '.coffer\r'],
        ],
        { name: 'support' },
      ],
      ['config set mail.from', [['? mail.from', 'Ada <ada@example.com>\r']], { name: 'mail.from' }],
    ] as [string, Answer[], object][]) {
      const { code, result, stderr } = await answer(home, line, answers)
      t.equal(code, 0, stderr)
      t.match(result, expected, line)
      t.notMatch(stderr, /424242424242424/, 'secret values are not shown')
    }
    t.equal(
      (await home.json('token get text --reveal')).data,
      'plain words',
      'text can be typed without quotes',
    )
  },
)

testVault(
  'wrong flags are reported before any question, and an interrupt changes nothing',
  async (t, home) => {
    for (const keys of [CTRL_C, CTRL_D]) {
      const left = await answer(home, 'token create --type token', [['? data', keys]])
      t.match(left, { code: 130, stderr: /Interrupted/ })
    }
    t.equal((await home.json('token list')).pagination.total_items, 0)
    const none = await createHome(t).run('token create', { columns: 80, answers: [['?', CTRL_C]] })
    t.match(none, { code: 6, stderr: /^error: There is no vault .*coffer init\n$/s })
    for (const line of [
      'app create --type privat',
      'app create --type private --permission token:reed',
      'token create --type ssn',
      'reactor create --timeout x',
      'token update --mask {"a":"{{ x"}',
      'control clock set --mode froze',
    ]) {
      const { code, stderr } = await home.run(line, { columns: 100 })
      t.equal(code, 2, `${line}: ${stderr}`)
      t.notMatch(stderr, /^\? /m, 'wrong flags are reported before any question')
    }
    const { stderr: near } = await home.run('token create --type ssn', { columns: 100 })
    t.match(near.replaceAll(/\s+/g, ' '), 'did you mean social_security_number?')
    const partly: Answer[] = [['?', CTRL_C]]
    for (const line of ['token create --mask m', 'token create --search-index {{data}}'])
      t.match(await home.run(line, { columns: 80, answers: partly }), { code: 130 }, line)
    const rules = JSON.stringify(ruleOf('mask'))
    const words = ['app', 'create', '--name', 'ruled', '--type', 'private', '--rule', rules]
    const ruled = await home.run(words, { columns: 80 })
    t.match(ruled, { code: 0, stderr: 'The key is shown only once.' })
    t.notMatch(ruled.stderr, '? permissions', 'permissions are not asked for if rules are given')
    const answers: Answer[] = [['role', DOWN + ENTER]]
    const asked = await home.run('invite create a@example.com', { columns: 80, answers })
    t.match(asked, { code: 0, stdout: /role: +READ_ONLY/ })
    t.equal((await home.run('invite create c@example.com --no-input', { columns: 80 })).code, 0)
  },
)

testVault('a person answers a question for a list of objects with one line of JSON', async (t, home) => {
  const rule = ruleOf('mask', { container: '/pci/' })
  const line = 'app create --name support --type private'
  const choose: Answer = ['? permissions or rules', `${DOWN}${ENTER}`]
  const wrong = JSON.stringify([{ ...rule, priority: 0 }])
  const typed = await answer(home, line, [
    choose,
    ['? rules', `${wrong}\r`],
    ['rules[0].priority: must be', `${CTRL_U}${JSON.stringify([rule])}\r`],
  ])
  t.same(typed.result?.rules, [rule], typed.stderr)
})
