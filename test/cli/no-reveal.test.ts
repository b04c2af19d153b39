/** No-reveal mode of the command line: what the mode refuses and hides, and who can turn it off. */
import t, { type Test } from 'tap'
import { createHandler } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'
import { createVaultHome, type Home, ruleOf } from './home.js'

const NUMBER = '4242424242424242'
const CARD = { id: 'card-1', type: 'card', data: { number: NUMBER, cvc: '123' } }
const MODE = { env: { COFFER_NO_REVEAL: '1' } }
const RULE = ruleOf('reveal', { permissions: ['token:read', 'token:search'] })
const ECHO = 'module.exports = async ({ args }) => ({ raw: args })'

async function open(t: Test) {
  const home = await createVaultHome(t)
  await home.createToken(CARD)
  await home.json(['reactor', 'create', '--name', 'echo', '--code', ECHO])
  const { key } = await home.createApp({ name: 'reader', rules: [RULE] })
  return { home, key }
}

/** Returns the line of `doctor` about the mode. */
const findMode = async (home: Home, more = '') =>
  (await home.json(`doctor${more}`)).find(({ check }: { check: string }) => check === 'no_reveal').found

const REFUSED = [
  'token get card-1 --reveal',
  'token list --reveal',
  'token search type:card --reveal',
  'token get card-1 --explain --reveal',
  'token export all.ndjson --reveal',
  'seed export --reveal',
  'scan .',
  'token search data:4242',
  'token search --query NOT(fingerprint:x)',
  'token list --after --fingerprint x',
  'token update card-1 --mask {{data.cvc}}',
  'token update card-1 --search-index {{data.cvc}}',
  'token update card-1 --fingerprint-expression {{data.cvc}}',
  'app create --name other --type private --permission token:read',
  `app create --name other --type private --no-create-key --rule ${JSON.stringify(RULE)}`,
  'app key create reader',
  'app regenerate reader --yes',
  'reactor create --name other --code x',
  'reactor patch echo --code x',
  'reactor logs echo',
  'reactor react echo --modules .',
  'webhook create --name w --address http://127.0.0.1:9 --event token.created',
  'proxy create --name other --destination-url https://example.com',
  'formula create --name other --type private --code x',
  'control page',
]

t.test(
  'in no-reveal mode, commands that reveal data or keys, or that allow guessing data, are refused with a reason and exit code 4',
  async (t) => {
    const { home, key } = await open(t)
    for (const line of REFUSED) {
      const { code, stdout, stderr } = await home.run(line, MODE)
      t.equal(code, 4, `${line}: ${stderr}`)
      t.match(stderr, /No-reveal mode refuses/, line)
      t.notMatch(stdout + stderr, NUMBER)
    }
    t.match(await home.run('token detokenize', { ...MODE, stdin: '"{{ card-1 }}"' }), {
      code: 4,
      stdout: /^$/,
    })
    t.equal(
      (await home.run('app list --fields name -o value')).stdout,
      'reader\n',
      'no application was created',
    )
    t.equal((await home.run('token get card-1 --reveal --no-reveal')).code, 4, 'the flag')
    t.match(
      (await home.run('token get card-1 --reveal')).stdout,
      NUMBER,
      'without the mode the data is shown',
    )
    t.match((await home.run('token get card-1', { env: { COFFER_API_KEY: key } })).stdout, NUMBER)
  },
)

t.test(
  'in no-reveal mode, an application with reveal rules gets masked data, and no caller gets fingerprints',
  async (t) => {
    const { home, key } = await open(t)
    const env = { ...MODE.env, COFFER_API_KEY: key }
    for (const verb of ['get card-1', 'list', 'list --after', 'search type:card', 'export -']) {
      const line = `token ${verb}`
      const { code, stdout } = await home.run(line, { env })
      t.equal(code, 0, line)
      t.match(stdout, 'XXXXXXXXXXXX4242', line)
      t.notMatch(stdout, /4242424242424242|fingerprint"/, line)
    }
    const { sees } = await home.json('token get card-1 --explain', MODE)
    t.equal(sees.data.number, 'XXXXXXXXXXXX4242')
    t.notOk(sees.fingerprint)
  },
)

t.test('in no-reveal mode, deliveries to webhooks are shown without fingerprints', async (t) => {
  const { home } = await open(t)
  await home.json('webhook create --name w --address http://127.0.0.1:9 --event token.updated')
  await home.json('token update card-1 --metadata a=b', MODE)
  const { data } = await home.json('webhook deliveries', MODE)
  t.match(data, [
    { type: 'token.updated', payload: { event: { data: { token: { metadata: { a: 'b' } } } } } },
  ])
  t.notMatch(JSON.stringify(data), 'fingerprint"')
  t.notMatch(JSON.stringify(await home.json(['webhook', 'resend', data[0].id], MODE)), 'fingerprint"')
  t.match(JSON.stringify(await home.json('webhook deliveries')), 'fingerprint"')
})

t.test('in no-reveal mode, token create and tokenize do not report a duplicate', async (t) => {
  const { home } = await open(t)
  const stdin = JSON.stringify({ type: 'card', data: { number: NUMBER }, deduplicate_token: true })
  t.equal((await home.json('token create', { stdin, ...MODE }))._extras.deduplicated, false)
  const { id } = await home.json('token tokenize', { stdin, ...MODE })
  t.not(id, 'card-1')
})

t.test('in no-reveal mode, reactor results and stored answers do not contain token data', async (t) => {
  const { home } = await open(t)
  const react = (argument: string, more: string[] = [], mode: object = MODE) =>
    home.run(['reactor', 'react', 'echo', '--args', `a=${argument}`, ...more], mode)
  const used = '{{ card-1 | json: "$.number" }}'
  t.match((await react(used)).stdout, /"raw":.*withheld/)
  t.equal((await react('nothing')).stdout, '{"raw":{"a":"nothing"}}\n')
  t.equal((await react('{{ card-1 | json: "$.number" | slice: 0 }}')).code, 4)
  const once = ['--idempotency-key', 'k']
  t.match((await react(used, once, {})).stdout, NUMBER)
  t.match(
    (await react(used, once)).stdout,
    'withheld',
    'token data is withheld from the stored answer of a run without the mode',
  )
})

t.test(
  'if the vault has the setting no_reveal, no-reveal mode applies to all callers, and only a person can remove the setting',
  async (t) => {
    const { home, key } = await open(t)
    await home.json('config set no_reveal true')
    const reveal = () => home.run('token get card-1 --reveal')
    t.equal((await reveal()).code, 4)
    t.notMatch((await home.run('token get card-1', { env: { COFFER_API_KEY: key } })).stdout, NUMBER)
    for (const line of ['set no_reveal false', 'unset no_reveal', 'unset no_reveal --yes'])
      t.equal((await home.run(`config ${line}`)).code, 4, line)
    t.match(await findMode(home), 'setting no_reveal')
    const unset = (keys: string) =>
      home.run('config unset no_reveal', { columns: 100, answers: [['Continue?', keys]] })
    t.equal((await unset('n\r')).code, 130)
    t.equal((await reveal()).code, 4)
    t.equal((await unset('y\r')).code, 0)
    t.match((await reveal()).stdout, NUMBER)
  },
)

t.test(
  'a profile can turn no-reveal mode on, and doctor then says that a flag, a variable or a profile turned it on',
  async (t) => {
    const { home } = await open(t)
    await home.run('profile set agent no-reveal true')
    for (const env of [{}, { COFFER_NO_REVEAL: '0' }])
      t.equal((await home.run('token get card-1 --reveal --profile agent', { env })).code, 4)
    t.match(await findMode(home, ' --profile agent'), 'flag, variable or profile')
    t.match(await findMode(home), 'off')
    for (const line of ['init --vault other --starter-apps', 'serve --starter-apps', 'serve --demo'])
      t.equal((await home.run(line, MODE)).code, 4, line)
    const served = await home.run('serve --port 0 -o json', { ...MODE, interruptAt: 'reactor_sandbox' })
    t.notMatch(
      served.stdout,
      'page_url',
      'the dashboard is not offered, because it could do what the mode refuses',
    )
  },
)

t.test(
  'in no-reveal mode, a command uses a server only after the server has confirmed the mode',
  async (t) => {
    const { app, ask, createApplication } = await openTestVault()
    t.teardown(() => app.close())
    await ask('token create', CARD)
    const { key } = await createApplication('private', { rules: [RULE] })
    const handler = createHandler(app)
    const home = await createVaultHome(t)
    const fetch = (url: string, init: RequestInit) => handler(new Request(url, init))
    const env = { ...MODE.env, COFFER_API_KEY: key, COFFER_URL: 'http://localhost:1' }
    const line = 'token get card-1 --fields data.number -o value'
    t.equal((await home.run(line, { env, fetch: fetch as never })).stdout, 'XXXXXXXXXXXX4242\n')
    const forgetful = async (url: string, init: RequestInit) => {
      const { 'svc-no-reveal': _, ...headers } = init.headers as Record<string, string>
      return fetch(url, { ...init, headers })
    }
    t.match(await home.run(line, { env, fetch: forgetful as never }), { code: 4, stdout: /^$/ })
  },
)
