import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { startServer } from '../../../src/index.js'
import { testVault } from '../home.js'

const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, at) => at % 256))

testVault(
  'a file is stored as a document and written to a new file',
  async (t, { run, json, write, place }) => {
    write('scan.png', bytes)
    const words = [
      'document',
      'create',
      '--from',
      'scan.png',
      '--content-type',
      'image/png',
      '--metadata',
      'attribute 1=a',
    ]
    const made = await json(words)
    t.match(made, { content_type: 'image/png', metadata: { 'attribute 1': 'a' } })
    t.match(await json(['document', 'get', made.id]), made)
    const outcome = await run(['document', 'data', made.id, '--to', 'copy.png'])
    t.match(outcome, { code: 0, stdout: '', stderr: 'Wrote 200000 bytes to copy.png.\n' })
    t.ok(readFileSync(join(place, 'copy.png')).equals(bytes))
    t.equal(statSync(join(place, 'copy.png')).mode & 0o777, 0o600)
    t.match(await run(['document', 'data', made.id, '--to', 'copy.png']), {
      code: 5,
      stderr: /copy.png exists/,
    })
    const shown = await run(['document', 'data', made.id], { columns: 80 })
    t.match(shown, { code: 2, stdout: /^$/, stderr: /image\/png, which a terminal cannot show/ })
    t.match(await run(['document', 'delete', made.id, '--yes']), { code: 0 })
    t.match(await run(['document', 'data', made.id, '--to', 'none.png']), { code: 3, stderr: /No document/ })
    t.throws(() => statSync(join(place, 'none.png')), 'no empty file is left')
  },
)

testVault(
  'the content of a document comes from standard input, or from a text in JSON',
  async (t, { run, json }) => {
    const { id } = await json('document create --from - --content-type text/plain', { stdin: 'Hello' })
    t.match(await run(['document', 'data', id]), { code: 0, stdout: 'Hello' })
    const text = await json('document create', { stdin: '{"document":"é","metadata":{"a":"b"}}' })
    t.match(text, { metadata: { a: 'b' } })
    t.match(await run(['document', 'data', text.id]), { code: 0, stdout: 'é' })
    t.match((await run(['document', 'data', id], { columns: 80 })).stdout, /Hello/)
    t.match(await run('document create --from none.txt'), { code: 2, stderr: /does not exist/ })
    t.match(await run('document create --from - --document x', { stdin: 'x' }), {
      code: 2,
      stderr: /not both/,
    })
    const curl = await run('document create --curl')
    t.match(curl.stdout, "-F 'document=@FILE' \\\n  -F 'request={}'")
    t.match(curl.stderr, /name of the file/)
  },
)

testVault(
  'commands send the content of a document to a server and get it back',
  async (t, { run, json, write, place }) => {
    await using server = await startServer({})
    write('scan.png', bytes)
    const options = { env: { COFFER_API_KEY: server.keys.private!, COFFER_URL: server.url } }
    const { id } = await json('document create --from scan.png --content-type image/png', options)
    t.match(await run(['document', 'data', id, '--to', 'copy.png'], options), { code: 0 })
    t.ok(readFileSync(join(place, 'copy.png')).equals(bytes))
    t.match(await run(['document', 'data', 'unknown'], options), { code: 3 })
  },
)

testVault(
  'a command sends the content of a document to the server that has the vault open',
  async (t, { run, json, write, place }) => {
    write('scan.png', bytes)
    const stop = new AbortController()
    let address = ''
    const serving = run('serve --port 0', {
      interrupt: stop.signal,
      watch: (text) => {
        address += text
      },
    })
    while (!/http:\/\/localhost:\d+/.test(address)) await new Promise(setImmediate)
    const { id } = await json('document create --from scan.png')
    t.match(await run(['document', 'data', id, '--to', 'copy.png']), { code: 0 })
    t.ok(readFileSync(join(place, 'copy.png')).equals(bytes))
    await json('config set documents.limit_bytes 100000')
    t.match(await run('document create --from scan.png'), {
      code: 2,
      stderr: /larger than the limit of 100000 bytes/,
    })
    stop.abort()
    t.match(await serving, { code: 0 })
    t.match(await run(['document', 'data', id, '--to', 'again.png']), { code: 0 }, 'the document is stored')
  },
)
