/** Deduplication: when a request gets an existing token. No answer reveals a token to a caller without access to it. */
import t from 'tap'
import type { Permission } from '../../src/domain/access/permissions.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { openTestVault, setSetting } from '../support/test-vault.js'

interface Shown {
  id: string
  containers: string[]
  _extras?: { deduplicated?: boolean }
}

const OWN = '/own/'
const FOREIGN = '/foreign/'
const DATA = '078-05-1120'
const wanted = { type: 'token', data: DATA, containers: [OWN] }
const isDuplicate = ({ _extras }: Shown) => _extras?.deduplicated === true

async function open() {
  const vault = await openTestVault()
  const { ask, askAs, createApplication } = vault
  const rule = { priority: 1, container: OWN, transform: 'mask' } as const
  const permissions: Permission[] = ['token:create', 'token:update']
  const writing = { ...rule, permissions }
  const page = await createApplication('public', { rules: [writing] })
  const backend = await createApplication('private', {
    rules: [{ ...rule, permissions: [...permissions, 'token:read'] }],
  })
  const { session_key, nonce } = await askAs(page.key, 'session create')
  const conditions = [
    { attribute: 'container', operator: 'equals', value: OWN },
    { attribute: 'id', operator: 'starts_with', value: '' },
  ]
  const reading = { priority: 2, conditions, transform: 'mask', permissions: ['token:read'] }
  await askAs(backend.key, 'session authorize', { nonce, rules: [writing, reading] })
  const attributes = { mask: 'masked', metadata: { a: 'b' }, search_indexes: ['{{ data }}'] }
  await ask('token create', { id: 'original', ...wanted, containers: [FOREIGN], ...attributes })
  return { ...vault, keys: { page: page.key, backend: backend.key, session: session_key } }
}

type Opened = Awaited<ReturnType<typeof open>>

/** All ways to request deduplication. Each function returns the part of the answer that describes the token. */
const WAYS: Record<string, (vault: Opened, key: string) => Promise<Shown>> = {
  create: async ({ askAs }, key) => await askAs(key, 'token create', { ...wanted, deduplicate_token: true }),
  tokenize: async ({ askAs }, key) => {
    const payload = [{ ...wanted, deduplicate_token: true }]
    return ((await askAs(key, 'token tokenize', { payload })) as Shown[])[0]!
  },
  import: async ({ askAs }, key) => {
    const rows = [{ ...wanted, deduplicate_token: true }]
    const { results } = await askAs(key, 'token import', { rows })
    const [{ id, status }] = results as [{ id: string; status: string }]
    return { id, containers: [], _extras: { deduplicated: status === 'deduplicated' } }
  },
  update: async ({ askAs }, key) => {
    const { id } = await askAs(key, 'token create', { ...wanted, data: 'another' })
    return await askAs(key, 'token update', { id, data: DATA, deduplicate_token: true })
  },
  'the setting of the tenant': async ({ ask, askAs }, key) => {
    await ask('tenant update', { name: 'a', settings: { deduplicate_tokens: 'true' } })
    const made = await askAs(key, 'token create', wanted)
    await ask('tenant update', { name: 'a', settings: { deduplicate_tokens: 'false' } })
    return made
  },
}

t.test(
  'a request with deduplication can get a token of another caller, unless a setting forbids this',
  async (t) => {
    for (const [way, ask] of Object.entries(WAYS))
      for (const who of ['page', 'backend', 'session'] as const) {
        const vault = await open()
        const key = vault.keys[who]
        const told = await ask(vault, key)
        t.strictSame(
          [told.id, isDuplicate(told)],
          ['original', true],
          `${way} by ${who}: by default the answer reveals the token`,
        )
        const hidden = ['data', 'mask', 'metadata', 'search_indexes', 'fingerprint_expression']
        t.notOk(
          hidden.some((name) => name in told),
          'only readers may see these properties',
        )
        await setSetting(vault.app, 'deduplicate.reveals_existing', 'false')
        const made = await ask(vault, key)
        t.not(made.id, 'original', `${way} by ${who}: with the setting the answer does not reveal the token`)
        t.notOk(isDuplicate(made))
        // If the caller may read the token that the first request created, the second request must get this token as a
        // duplicate. A caller that cannot read the token must get a new token, because a duplicate would reveal the
        // first token.
        const again = await ask(vault, key)
        t.equal(isDuplicate(again), who !== 'page', `${way} by ${who}: a token of the caller is a duplicate`)
        if (who !== 'page') t.equal(again.id, made.id)
        await vault.app.close()
      }
  },
)

t.test(
  'if a caller cannot delete two tokens, unlink returns the same error whether the tokens are linked or not',
  async (t) => {
    const { app, ask, statusOf, createApplication } = await openTestVault()
    t.teardown(() => app.close())
    const permissions: Permission[] = ['token:delete', 'token:read']
    const rules = [{ priority: 1, container: OWN, transform: 'mask' as const, permissions }]
    const { key } = await createApplication('private', { rules })
    for (const id of ['one', 'two', 'three'])
      await ask('token create', { id, type: 'token', data: id, containers: [FOREIGN] })
    await ask('token link', { parent_id: 'one', child_id: 'two' })
    for (const child_id of ['two', 'three']) {
      const link = { parent_id: 'one', child_id }
      t.equal(await statusOf(() => authenticate(app, key), 'token unlink', link), 403, child_id)
    }
  },
)

t.test(
  'if a new child is a duplicate, the request is refused unless the caller may read the duplicate',
  async (t) => {
    const { app, ask, statusOf, keys } = await open()
    t.teardown(() => app.close())
    await ask('token create', { id: 'parent', type: 'token', data: 'parent', containers: [OWN] })
    const child = { parent_id: 'parent', ...wanted, deduplicate_token: true }
    t.equal(await statusOf(() => authenticate(app, keys.backend), 'token create-child', child), 403)
    t.equal((await ask('token children', { parent_id: 'parent' })).pagination.total_items, 0)
  },
)
