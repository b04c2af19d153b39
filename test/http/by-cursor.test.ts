/** What the query of a list may be, written as clients write it. */
import t, { type Test } from 'tap'
import { createHandler } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'

async function start(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { key } = await vault.createApplication('private', { permissions: ['token:read', 'token:search'] })
  const handle = createHandler(vault.app)
  const get = async (target: string) => {
    const answer = await handle(new Request(`http://localhost${target}`, { headers: { 'svc-api-key': key } }))
    return { status: answer.status, json: JSON.parse(await answer.text()) }
  }
  return get
}

const encode = (metadata: unknown) => encodeURIComponent(JSON.stringify(metadata))

t.test('a repeated parameter of a list by cursor is refused, and one it does not have ignored', async (t) => {
  const get = await start(t)
  const repeated = ['type=a&type=a', 'container=/a/&container=/b/', 'fingerprint=a&fingerprint=a']
  const pages = ['start=a&start=a', 'size=1&size=1']
  const maps = [
    'metadata.a=1&metadata.a=1',
    'metadata.a=1&metadata.b=1',
    `metadata.a=1&metadata=${encode({ a: '1' })}`,
  ]
  for (const query of [...repeated, ...pages, ...maps]) {
    const property = /^\w+/.exec(query)![0]
    const errors = { [`query.${property}`]: ['may be given only once'] }
    t.match(await get(`/v2/tokens?${query}`), { status: 400, json: { errors } }, query)
  }
  const both = encode({ a: '1', b: '2' })
  t.match(await get(`/v2/tokens?metadata=${both}`), {
    status: 400,
    json: { errors: { 'query.metadata': ['must have at most 1 entry'] } },
  })
  t.match(await get('/v2/tokens?type=a&fingerprint=b&container=c&size=0&start=x'), {
    status: 400,
    json: {
      errors: {
        'query.fingerprint': [/together with type/],
        'query.container': [/must be a path/],
        'query.size': [/at least 1/],
      },
    },
  })
  t.match(await get('/v2/tokens?start=x'), {
    status: 400,
    json: { errors: { 'query.start': [/same filters/] } },
  })
  t.match(await get('/v2/tokens?page=0&id=a&id=b&nothing=x'), {
    status: 200,
    json: { pagination: { page_size: 20 }, data: [] },
  })
  t.strictSame((await get('/v2/tokens/?size=7')).json, { pagination: { page_size: 7 }, data: [] })
})
