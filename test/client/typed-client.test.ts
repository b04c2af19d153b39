/**
 * The typed client, with a vault in this process and over a socket. This file compiles only if the client's types are
 * correct.
 */
import t from 'tap'
import { type Client, createClient, openTestVault, startServer } from '../../src/index.js'
import { registry } from '../../src/operations/all.js'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Compiles only if both types are equal. */
const same = <A, B>(..._: Equal<A, B> extends true ? [] : [never]) => {}

t.test('the typed client can call a vault in this process without a socket', async (t) => {
  await using vault = await openTestVault({ prefix: 'bt' })
  const { tokens, applications, logs } = vault.as(vault.keys.private!)
  const created = await tokens.create({ type: 'card', data: { number: '4242424242424242' } })
  t.equal(created.card?.last4, '4242')
  same<typeof created.id, string>()
  same<typeof created.expires_at, string | undefined>()
  const { data, pagination } = await tokens.list({ type: ['card'], size: 5 })
  t.same([data[0]!.id, pagination.total_items], [created.id, 1])
  same<typeof pagination.total_items, number>()
  await tokens.update({ id: created.id, metadata: { a: 'b', c: null } })
  t.same((await tokens.get({ id: created.id })).metadata, { a: 'b' })
  t.same(await tokens.tokenize({ payload: [] }), [])
  t.equal((await tokens.createChild({ parent_id: created.id, type: 'token', data: 1 })).type, 'token')
  const done = await tokens.delete({ id: created.id })
  t.equal(done, undefined)
  same<typeof done, undefined>()
  await t.rejects(tokens.get({ id: created.id }), { name: 'CofferError', code: 'not_found', exit: 3 })
  await t.rejects(logs.list(), { code: 'forbidden' })
  t.equal((await applications.whoami()).type, 'private')
  await t.rejects(vault.as('key_no').tokens.list(), { code: 'unauthenticated' })
  t.throws(() => vault.as('a b'), { code: 'usage' })
})

t.test('the typed client can also call a server over a socket', async (t) => {
  await using server = await startServer()
  const client: Client = createClient({ url: server.url, key: server.keys.private! })
  const { id } = await client.tokens.create({ type: 'token', data: 'text' })
  t.equal((await client.tokens.get({ id })).data, 'text')
  t.throws(() => createClient({ url: 'http://vault.example', key: 'key' }), { code: 'usage' })
})

t.test(
  'only operations with a route are methods of the typed client, and only groups are properties',
  async (t) => {
    await using vault = await openTestVault()
    const { applications } = vault.as(vault.keys.management!)
    const { id } = await applications.create({ name: 'test', type: 'private', permissions: ['token:read'] })
    const { key } = await applications.keys.create({ application_id: id })
    t.match(key, /^key_/)
    same<typeof key, string | undefined>()
    const paths: string[] = []
    const walk = (value: object, path: string): void => {
      for (const [name, inner] of Object.entries(value))
        if (typeof inner === 'function') paths.push(`${path}${name}`)
        else walk(inner as object, `${path}${name}.`)
    }
    walk(vault.as('key'), '')
    t.equal(paths.length, registry.routed.length)
    for (const path of [
      'invitations.resend',
      'logs.entityTypes',
      'tenants.usage',
      'applications.keys.delete',
    ])
      t.ok(paths.includes(path), path)
  },
)

/** This function is never called. Each line that follows a comment must be a compile error. */
export async function refused({ tokens, applications, ...others }: Client): Promise<void> {
  // @ts-expect-error data is required
  await tokens.create({ type: 'card' })
  await tokens.create({ token_intent_id: 'stands for type and data' })
  // @ts-expect-error the type is unknown
  await tokens.create({ type: 'cards', data: 1 })
  // @ts-expect-error an id is text
  await tokens.get({ id: 1 })
  // @ts-expect-error an id is required
  await tokens.get()
  // @ts-expect-error the operation is unknown
  await tokens.import([])
  // @ts-expect-error the owner's operations have no route
  others.vaults
  // @ts-expect-error the type of application is unknown
  await applications.create({ name: 'x', type: 'secret' })
}
