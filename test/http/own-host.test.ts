/** Reactor code gets the address of the server in each way in which a run is started. */
import t from 'tap'
import { createWorkplace, runCommand, startProcess } from './process.js'

const CODE = `module.exports = async ({ args, applicationOptions: { apiKey, baseUrl } }) => {
  const headers = { 'svc-api-key': apiKey, 'content-type': 'application/json' }
  const body = JSON.stringify({ type: 'token', data: 1 })
  const post = (url) => fetch(url + '/tokens', { method: 'POST', headers, body }).then((r) => r.status, (e) => e.message)
  return { raw: [baseUrl, await post(baseUrl), await post('https://api.example.test')] }
}`

t.test(
  'reactor code can call the API if its run is started over HTTP, by a command, or without a server',
  async (t) => {
    const place = createWorkplace()
    t.teardown(() => place.remove())
    const json = async (...words: string[]) => {
      const { code, stdout, stderr } = await runCommand(place, [...words, '--output', 'json'])
      t.equal(code, 0, stderr)
      return JSON.parse(stdout)
    }
    await json('init')
    const runtime = JSON.stringify({ image: 'node22', permissions: ['token:create'] })
    await json('reactor', 'create', '--name', 'r', '--code', CODE, '--runtime', runtime)
    place.env.COFFER_OWN_HOST = 'other.example.test,API.example.test'
    const server = await startProcess(place, ['--starter-apps'])
    t.teardown(() => server.child.kill())
    const { url, applications } = server.announcement
    const [{ id }] = (await json('reactor', 'list')).data
    const answer = await fetch(`${url.replace('localhost', '127.0.0.1')}/reactors/${id}/react`, {
      method: 'POST',
      headers: { 'svc-api-key': applications.private?.key ?? '', 'content-type': 'application/json' },
      body: '{"args":{}}',
    })
    t.same(await answer.json(), { raw: [url.replace('localhost', '127.0.0.1'), 201, 201] })
    t.same(
      await json('reactor', 'react', 'r'),
      { raw: [url, 201, 201] },
      'the server runs it for the command',
    )
    server.child.kill()
    await server.ended
    const { raw } = await json('reactor', 'react', 'r')
    t.match(raw, ['http://localhost', 201, /not on the list of --allow-net/])
  },
)

t.test('--own-host accepts only a name, without a scheme and a port', async (t) => {
  const place = createWorkplace()
  t.teardown(() => place.remove())
  const { code, stderr } = await runCommand(place, [
    'serve',
    '--ephemeral',
    '--own-host',
    'https://a.example',
  ])
  t.equal(code, 2)
  t.match(stderr, '--own-host takes names without a port')
})
