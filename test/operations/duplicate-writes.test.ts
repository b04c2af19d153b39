/** The conversion of a token intent changes an existing duplicate only if the caller may update that token. */
import t from 'tap'
import type { Permission } from '../../src/domain/access/permissions.js'
import { openTestVault } from '../support/test-vault.js'

const CONTAINER = '/victims/'
const VICTIM = { name: 'Ada', ssn: '078-05-1120' }
const FINGERPRINT = 'customer 42'
/**
 * The data of the attacker's token intent. If this data is merged into a token, the null removes the property `ssn` of
 * that token.
 */
const ATTACK = { name: 'Mallory', ssn: null }

interface Answer {
  id: string
  _extras?: { deduplicated?: boolean; deduplication_behavior?: string }
}

type Vault = Awaited<ReturnType<typeof open>>

async function open() {
  const vault = await openTestVault()
  const { ask } = vault
  const about = { data: VICTIM, containers: [CONTAINER], metadata: { owner: 'Ada' } }
  // Both tokens have the same fingerprint as the attacker's intent, although the tokens have different fingerprint
  // expressions.
  await ask('token create', {
    id: 'other-1',
    type: 'token',
    ...about,
    fingerprint_expression: FINGERPRINT,
  })
  const createIntent = async (data: unknown = ATTACK) =>
    (await ask('intent create', { type: 'token', data })) as { id: string }
  /** Returns a request for a token from a new intent. The intent is a duplicate of the victim's token. */
  const attack = async (data?: unknown) => ({
    token_intent_id: (await createIntent(data)).id,
    deduplicate_token: true,
    fingerprint_expression: FINGERPRINT,
    containers: [CONTAINER],
    metadata: { owner: 'Mallory' },
  })
  const keyWith = async (...permissions: Permission[]) =>
    (await vault.createApplication('private', { permissions })).key
  return { ...vault, attack, createIntent, keyWith }
}

/** The ways in which an application can send the request for a token. */
const WAYS: Record<string, (vault: Vault, key: string, request: object) => Promise<Answer>> = {
  create: async ({ askAs }, key, request) => await askAs(key, 'token create', request as never),
  tokenize: async ({ askAs }, key, request) =>
    ((await askAs(key, 'token tokenize', { payload: [request] })) as Answer[])[0]!,
  import: async ({ askAs }, key, request) => {
    const { results } = await askAs(key, 'token import', { rows: [request] })
    const [{ id, status }] = results as [{ id: string; status: string }]
    return { id, _extras: { deduplicated: status === 'deduplicated' } }
  },
  'a child': async ({ ask, askAs }, key, request) => {
    await ask('token create', { id: 'parent', type: 'token', data: 'parent' })
    return await askAs(key, 'token create-child', { parent_id: 'parent', ...request } as never)
  },
}

async function createReactor({ ask }: Vault, application?: { id: string }) {
  const code = 'module.exports = async ({ args }) => ({ tokenize: args })'
  const { id } = (await ask('formula create', { name: 'f', type: 'private', code })) as { id: string }
  return (await ask('reactor create', { name: 'r', formula: { id }, application })) as { id: string }
}

/** Reads the victim's token as the owner, without logging the read. */
async function victimOf({ ask }: Vault) {
  const { data, metadata, modified_at } = await ask('token get', { id: 'other-1' })
  return { data, metadata, isModified: modified_at !== undefined }
}

const UNCHANGED = { data: VICTIM, metadata: { owner: 'Ada' }, isModified: false }

async function logsOf({ ask }: Vault) {
  const { data } = await ask('log list', { entity_id: 'other-1' })
  return data.map(({ operation }) => operation)
}

t.test('without token:update, converting an intent returns the duplicate and changes nothing', async (t) => {
  for (const [way, ask] of Object.entries(WAYS)) {
    const vault = await open()
    const key = await vault.keyWith('token:create', 'token:read')
    const request = await vault.attack(VICTIM)
    const answer = await ask(vault, key, request)
    t.match(answer, { id: 'other-1', _extras: { deduplicated: true } }, `${way}: the answer is the duplicate`)
    if (way !== 'import') t.equal(answer._extras?.deduplication_behavior, 'read_existing', way)
    t.strictSame(await logsOf(vault), ['read', 'create'], `${way}: the log has no update`)
    t.strictSame(await victimOf(vault), UNCHANGED, `${way}: unchanged`)
    const intent = { id: request.token_intent_id }
    await t.rejects(vault.ask('intent get', intent), { code: 'not_found' }, `${way}: converted`)
    await vault.app.close()
  }
})

t.test('with token:update, converting an intent updates the duplicate of the intent', async (t) => {
  for (const [way, ask] of Object.entries(WAYS)) {
    const vault = await open()
    const key = await vault.keyWith('token:create', 'token:read', 'token:update')
    const answer = await ask(vault, key, await vault.attack({ ...VICTIM, note: 'new' }))
    t.equal(answer.id, 'other-1', way)
    const changed = { data: { ...VICTIM, note: 'new' }, metadata: { owner: 'Mallory' }, isModified: true }
    t.strictSame(await victimOf(vault), changed, `${way}: merged`)
    t.strictSame(await logsOf(vault).then((all) => all.slice(1)), ['update', 'create'], way)
    await vault.app.close()
  }
})

t.test(
  'null in an intent removes no property of a token that the caller has no right to update',
  async (t) => {
    const vault = await open()
    t.teardown(() => vault.app.close())
    const key = await vault.keyWith('token:create')
    await vault.askAs(key, 'token create', await vault.attack())
    t.strictSame(await victimOf(vault), UNCHANGED)
  },
)

t.test('a session can update a duplicate only if the rules of the session include the token', async (t) => {
  const vault = await open()
  const { app, ask, askAs, attack, createApplication } = vault
  t.teardown(() => app.close())
  const granted = ['token:create', 'token:update'] as const
  const page = await createApplication('public', { permissions: granted })
  const backend = await createApplication('private', { permissions: granted })
  const { session_key, nonce } = await askAs(page.key, 'session create')
  const conditions = [{ attribute: 'id', operator: 'equals', value: 'mine-1' }] as const
  const rules = [{ priority: 1, conditions, transform: 'mask', permissions: granted }]
  await askAs(backend.key, 'session authorize', { nonce, rules })
  const answer = (await askAs(session_key, 'token create', { ...(await attack()), id: 'mine-1' })) as Answer
  t.match(answer, { id: 'other-1', _extras: { deduplication_behavior: 'read_existing' } })
  t.strictSame(await victimOf(vault), UNCHANGED)
  await ask('token delete', { id: 'other-1' })
  const mine = { type: 'token', data: VICTIM, containers: [CONTAINER], fingerprint_expression: FINGERPRINT }
  await ask('token create', { id: 'mine-1', ...mine })
  const updated = (await askAs(session_key, 'token create', {
    ...(await attack({ name: 'Grace' })),
    id: 'mine-1',
  })) as Answer
  t.match(updated, { id: 'mine-1', _extras: { deduplication_behavior: 'update_existing' } })
  t.strictSame((await ask('token get', { id: 'mine-1' })).data, { ...VICTIM, name: 'Grace' })
})

t.test(
  'a reactor that tokenizes its argument has the rights of its application, or without an application the rights of the caller',
  async (t) => {
    const vault = await open()
    const { app, askAs, attack, createApplication, keyWith } = vault
    t.teardown(() => app.close())
    const invoking = await keyWith('reactor:invoke')
    const react = async (id: string, key: string) => {
      const args = { made: await attack({ ...VICTIM, name: 'Grace' }) }
      return ((await askAs(key, 'reactor react', { id, args })) as { tokens: { made: Answer } }).tokens.made
    }
    const unbound = await createReactor(vault)
    const unchanged = { id: 'other-1', _extras: { deduplication_behavior: 'read_existing' } }
    t.match(await react(unbound.id, invoking), unchanged, 'an unbound reactor has the rights of the caller')
    const maker = await createApplication('private', { permissions: ['token:create', 'token:read'] })
    const bound = await createReactor(vault, maker)
    const updating = await keyWith('reactor:invoke', 'token:update')
    t.match(
      await react(bound.id, updating),
      unchanged,
      'a bound reactor has the rights of its application, whatever the rights of the caller are',
    )
    t.strictSame(await victimOf(vault), UNCHANGED)
    const updater = await createApplication('private', { permissions: ['token:update'] })
    const changing = await createReactor(vault, updater)
    const changed = { id: 'other-1', _extras: { deduplication_behavior: 'update_existing' } }
    t.match(
      await react(changing.id, invoking),
      changed,
      'a reactor whose application may update changes the token',
    )
    t.strictSame((await victimOf(vault)).data, { ...VICTIM, name: 'Grace' })
  },
)

t.test(
  'a caller cannot choose an expression that makes a new token a duplicate of another token',
  async (t) => {
    const vault = await open()
    const { app, ask, askAs, createIntent, keyWith } = vault
    t.teardown(() => app.close())
    const number = '4242424242424242'
    const card = { type: 'card', data: { number, expiration_month: 1, expiration_year: 2040, cvc: '999' } }
    await ask('token create', { id: 'card-1', ...card })
    const key = await keyWith('token:create', 'token:update')
    const other = { number: '5555555555554444', expiration_month: 2, expiration_year: 2041 }
    const { id: token_intent_id } = (await ask('intent create', { type: 'card', data: other })) as {
      id: string
    }
    const asked = { token_intent_id, deduplicate_token: true, fingerprint_expression: number }
    const made = (await askAs(key, 'token create', asked)) as Answer
    t.not(made.id, 'card-1', 'the request creates a new token')
    t.equal(made._extras?.deduplicated, false)
    t.strictSame((await ask('token get', { id: 'card-1' })).data, card.data)
    // The fingerprint expression of the token `named` gives no result for the data of the intent.
    const of = { type: 'token', containers: [CONTAINER] }
    await ask('token create', {
      id: 'named',
      ...of,
      data: { n: 'x' },
      fingerprint_expression: '{{ data.n }}',
    })
    const { id } = await createIntent({ m: 'y' })
    const more = { ...asked, token_intent_id: id, containers: [CONTAINER], fingerprint_expression: 'x' }
    t.not(((await askAs(key, 'token create', more)) as Answer).id, 'named')
    t.strictSame((await ask('token get', { id: 'named' })).data, { n: 'x' })
  },
)
