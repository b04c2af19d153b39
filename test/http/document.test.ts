/** Documents over HTTP: forms, uploads and downloads. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { CHUNK_BYTES } from '../../src/domain/document/chunks.js'
import { readForm } from '../../src/http/forms/read-form.js'
import { SERVER_LIMITS } from '../../src/http/server.js'
import { chunkId } from '../../src/operations/document/document.js'
import { readAll } from '../../src/storage/store.js'
import { startServer } from '../support/service.js'
import { openTestVault, permissionsOf, setSetting } from '../support/test-vault.js'

type Made = { id: string } & Record<string, unknown>

const MIB = 1024 * 1024
const TYPE = 'multipart/form-data; boundary=b'
const FILE = 'Content-Disposition: form-data; name="document"; filename="a"'
const JSON_PART = 'Content-Disposition: form-data; name="request"'

const part = (header: string, body: string) => `--b\r\n${header}\r\n\r\n${body}\r\n`
const formOf = (...parts: string[]) => `${parts.join('')}--b--\r\n`

/** Writes a part of a request body with the transfer encoding `chunked`. */
function writeChunk(socket: Socket, text: string): void {
  socket.write(`${text.length.toString(16)}\r\n${text}\r\n`)
}

async function open(t: Test, limits = SERVER_LIMITS) {
  const vault = await openTestVault()
  const { app } = vault
  const server = await startServer(app, { port: 0, addresses: ['127.0.0.1'], limits })
  t.teardown(() => server.stop().then(() => app.close()))
  const { key } = await vault.createApplication('private', { permissions: permissionsOf('private') })
  const { number: tenant } = await app.tenant()
  const { port } = server
  const headers = { 'svc-api-key': key }
  const send = (line: string, body?: string | Uint8Array, more: object = {}) => {
    const [method = '', path = ''] = line.split(' ')
    const init = {
      method,
      headers: { ...headers, ...more },
      duplex: 'half',
      ...(body !== undefined && { body }),
    }
    return fetch(`http://127.0.0.1:${port}${path}`, init as RequestInit)
  }
  const post = (body: string | Uint8Array, type = TYPE) =>
    send('POST /documents', body, { 'content-type': type })
  const chunks = () => readAll(app.store, 'document_chunk', tenant)
  const isEmpty = async () =>
    (await chunks()).length === 0 && (await readAll(app.store, 'document', tenant)).length === 0
  /** Waits until no document and no upload is left. */
  const emptied = async () => {
    while (!(await isEmpty())) await turn()
  }
  /**
   * Begins an upload over a socket and leaves the upload incomplete. Resolves when some chunks are stored. Also
   * resolves when the server has answered, because the server may then have removed the chunks already.
   */
  const begin = async () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    const head = `POST /documents HTTP/1.1\r\nHost: localhost\r\nsvc-api-key: ${key}\r\nContent-Type: ${TYPE}\r\n`
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`)
    const body = `--b\r\n${FILE}\r\n\r\n${'x'.repeat(4 * CHUNK_BYTES)}`
    writeChunk(socket, body)
    while ((await chunks()).length < 3 && socket.readableLength === 0) await turn()
    return socket
  }
  return { ...vault, tenant, port, headers, send, post, chunks, isEmpty, emptied, begin }
}

t.test('a form may have its parts in any order, and the file is returned unchanged', async (t) => {
  const { send, post } = await open(t)
  const file = part(`${FILE}\r\nContent-Type: text/html`, '<script>alert(1)</script>')
  const json = part(JSON_PART, '{"metadata":{"attribute 1":"a"}}')
  for (const body of [formOf(file, json), formOf(json, file)]) {
    const answer = await post(body)
    t.equal(answer.status, 201)
    const document = (await answer.json()) as Made
    t.match(document, { metadata: { 'attribute 1': 'a' }, content_type: 'text/html' })
    const data = await send(`GET /documents/${document.id}/data`)
    t.equal(await data.text(), '<script>alert(1)</script>')
    for (const [name, value] of [
      ['content-type', 'text/html'],
      ['content-length', '25'],
      ['x-content-type-options', 'nosniff'],
      ['content-security-policy', 'sandbox'],
      ['cache-control', 'no-store'],
    ] as const)
      t.equal(data.headers.get(name), value)
    const head = await send(`HEAD /documents/${document.id}/data`)
    t.strictSame([head.status, head.headers.get('content-length'), await head.text()], [200, '25', ''])
  }
  const empty = await post(formOf(part('content-disposition:form-data;name=document', '')))
  const bare = (await empty.json()) as Made
  t.match(bare, { content_type: 'application/octet-stream', metadata: {} })
  t.equal((await send(`GET /documents/${bare.id}/data`)).headers.get('content-length'), '0')
  for (const method of ['PUT', 'PATCH', 'GET'])
    t.equal((await send(`${method} /documents`)).headers.get('allow'), 'POST')
})

t.test('a form that is malformed or has other parts is refused', async (t) => {
  const { post, send, chunks } = await open(t)
  const file = part(FILE, 'x')
  const many = Array.from({ length: 10_000 }, (_, at) => part(`${FILE}; a=${at}`, 'x'))
  const cases: [status: number, body: string, detail: RegExp, type?: string][] = [
    [400, '', /complete form/],
    [400, 'x', /complete form/],
    [400, '--b--', /document is required|document: is required/],
    [400, formOf(), /document: is required/],
    [400, formOf(part(JSON_PART, '{}')), /document: is required/],
    [400, file, /complete form/],
    [400, `--b\r\n${FILE}\r\n`, /complete form|required/],
    [400, `--b\r\n${FILE}\r\n\r\nx`, /complete form/],
    [400, formOf(file, file), /document: may be given only once/],
    [400, formOf(part(JSON_PART, '{}'), part(JSON_PART, '{}'), file), /request: may be given only once/],
    [
      400,
      formOf(file, part('Content-Disposition: form-data; name="other"', 'x')),
      /other than document and request/,
    ],
    [400, formOf(...many), /only once|too many parts/],
    [400, formOf(part('X: y', 'x')), /Content-Disposition/],
    [400, formOf(part('Content-Disposition: attachment; name="document"', 'x')), /Content-Disposition/],
    [
      400,
      formOf(part('Content-Disposition: form-data; name="request"; name="document"', 'x')),
      /Content-Disposition/,
    ],
    [
      400,
      formOf(part('Content-Disposition: form-data; filename="a; name=document"', 'x')),
      /Content-Disposition/,
    ],
    [400, formOf(part(`${FILE}\r\n${FILE}`, 'x')), /repeats a header/],
    [400, formOf(part(`${FILE}\r\nContent-Transfer-Encoding: base64`, 'eA==')), /encoded/],
    [400, formOf(part(`${'X: y\r\n'.repeat(10_000)}${FILE}`, 'x')), /Content-Disposition/],
    [400, formOf(part(`X: ${'y'.repeat(100_000)}\r\n${FILE}`, 'x')), /Content-Disposition/],
    [400, formOf(part(`${FILE}\r\nContent-Type: text`, 'x')), /content_type: must be a media type/],
    [400, formOf(file, part(JSON_PART, '{')), /request is refused at line 1/],
    [400, formOf(file, part(JSON_PART, '[]')), /request: must be a JSON object/],
    [400, formOf(file, part(JSON_PART, '\xff')), /metadata|request/],
    [400, formOf(file, part(JSON_PART, '{"metadata":{"__proto__":"x"}}')), /request is refused/],
    [400, formOf(file, part(JSON_PART, '{"metadata":{"a":{"b":"c"}}}')), /metadata\.a/],
    [400, formOf(file, part(JSON_PART, `{"metadata":${'['.repeat(100)}`)), /request is refused/],
    [413, formOf(file, part(JSON_PART, `{"a":"${'x'.repeat(256 * 1024)}"}`)), /request is larger/],
    [415, formOf(file), /multipart\/form-data/, 'application/json'],
    [415, formOf(file), /boundary/, 'multipart/form-data'],
    [415, formOf(file), /boundary/, `multipart/form-data; boundary=${'b'.repeat(71)}`],
    [415, formOf(file), /boundary/, 'multipart/form-data; boundary="b\t"'],
    [400, formOf(file), /complete form/, 'multipart/form-data; boundary=c'],
  ]
  for (const [status, body, detail, type] of cases) {
    const answer = await post(body, type)
    const text = await answer.text()
    t.equal(answer.status, status, `${body.slice(0, 80)}: ${text}`)
    t.match(JSON.parse(text).detail, detail)
  }
  t.equal(({} as { x?: unknown }).x, undefined)
  const encoded = await send('POST /documents', formOf(file), {
    'content-type': TYPE,
    'content-encoding': 'gzip',
  })
  t.equal(encoded.status, 415)
  const quoted = await post(formOf(file).replaceAll('--b', '--b :c'), 'multipart/form-data; boundary="b :c"')
  t.equal(quoted.status, 201)
  // The parser ignores headers that follow a bare line break.
  const broken = await post(formOf(part(`${FILE}\r\nContent-Type: text/html\rSet-Cookie: a=b`, 'x')))
  t.match([broken.status, await broken.json()], [201, { content_type: 'application/octet-stream' }])
  t.equal((await chunks()).length, 2, 'no refused form leaves anything behind')
})

t.test('a document that is too large gets 413 and leaves nothing behind', async (t) => {
  const { post, headers, port, isEmpty, app, send } = await open(t)
  const large = Buffer.concat([
    Buffer.from(`--b\r\n${FILE}\r\n\r\n`),
    Buffer.alloc(11 * MIB),
    Buffer.from('\r\n--b--'),
  ])
  t.match(await (await post(large)).json(), {
    status: 413,
    detail: /larger than the limit of 10485760 bytes/,
  })
  const streamed = request({
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/documents',
    headers: { ...headers, 'content-type': TYPE },
  })
  streamed.on('error', () => undefined)
  Readable.from([large.subarray(0, 5 * MIB), large.subarray(5 * MIB)]).pipe(streamed)
  const [answer] = await once(streamed, 'response')
  t.equal(answer.statusCode, 413)
  answer.resume()
  t.ok(await isEmpty())
  await setSetting(app, 'documents.limit_bytes', '5')
  t.equal((await post(formOf(part(FILE, '123456')))).status, 413)
  t.ok(await isEmpty())
  t.equal((await post(formOf(part(FILE, '12345')))).status, 201)
  t.equal(
    (
      await send('POST /tokens', `{"type":"token","data":"${'x'.repeat(MIB)}"}`, {
        'content-type': 'application/json',
      })
    ).status,
    413,
  )
})

t.test('an upload whose client disconnects leaves nothing behind', async (t) => {
  const { begin, emptied, isEmpty } = await open(t)
  const socket = await begin()
  socket.destroy()
  await emptied()
  t.ok(await isEmpty())
})

t.test('a wrong part ends an upload even if chunks of the file are already stored', async (t) => {
  const { begin, emptied } = await open(t)
  const socket = await begin()
  writeChunk(socket, `\r\n--b\r\n${FILE}\r\n\r\ny`)
  const [answer] = await once(socket, 'data')
  t.match(String(answer), /^HTTP\/1\.1 400 /)
  await emptied()
  socket.destroy()
})

t.test('an upload that takes too long gets 408 and leaves nothing behind', async (t) => {
  const { begin, emptied } = await open(t, { ...SERVER_LIMITS, headersMs: 400, requestMs: 500 })
  const socket = await begin()
  const [answer] = await once(socket, 'data')
  t.match(String(answer), /^HTTP\/1\.1 408 /)
  await emptied()
  socket.destroy()
})

t.test('a caller that lost its rights during an upload creates no document', async (t) => {
  const { begin, ask, chunks } = await open(t)
  const socket = await begin()
  const apps = (await ask('app list')).data
  await ask('app delete', { id: apps[0]!.id })
  writeChunk(socket, '\r\n--b--\r\n')
  socket.write('0\r\n\r\n')
  const [answer] = await once(socket, 'data')
  t.match(String(answer), /^HTTP\/1\.1 401 /)
  t.ok((await chunks()).length > 0, 'the sweep removes the upload')
  socket.destroy()
})

t.test('a download ends before the first damaged byte, and the client gets an error', async (t) => {
  const { post, send, app, tenant, ask } = await open(t)
  const content = Buffer.alloc(3 * CHUNK_BYTES, 'a')
  const body = Buffer.concat([Buffer.from(`--b\r\n${FILE}\r\n\r\n`), content, Buffer.from('\r\n--b--')])
  const { id } = (await (await post(body)).json()) as Made
  await app.store.write(async (store) => {
    const chunk = (await store.get('document_chunk', tenant, chunkId(id, 1)))!
    await store.replace('document_chunk', tenant, {
      ...chunk,
      sealed: chunk.sealed.replace(/^..../, 'AAAA'),
    })
  })
  const answer = await send(`GET /documents/${id}/data`)
  t.equal(answer.status, 200)
  let received = 0
  const reading = async () => {
    for await (const piece of answer.body!) received += piece.length
  }
  await t.rejects(reading())
  t.equal(received, CHUNK_BYTES)
  await app.store.write((store) => store.remove('document_chunk', tenant, chunkId(id, 0)))
  const refused = await send(`GET /documents/${id}/data`)
  t.match(
    [refused.status, await refused.json()],
    [500, { title: 'Vault Damaged', detail: /^The vault is damaged/ }],
  )
  await ask('document delete', { id })
})

t.test('a form that arrives in pieces of any size gives the same parts', async (t) => {
  const long = 'x'.repeat(70_000)
  const text = Buffer.from(formOf(part(JSON_PART, long), part(FILE, `${long}\r\n--`), part(FILE, '')))
  for (const size of [1, 2, 3, 7, 1000, 16 * 1024, 65_536, text.length]) {
    async function* pieces() {
      for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size)
      yield Buffer.from('what follows the form')
    }
    const found: [string, number][] = []
    await readForm(pieces(), 'b', async ({ name, bytes }) => {
      let length = 0
      for await (const piece of bytes) length += piece.length
      found.push([name, length])
    })
    t.strictSame(
      found,
      [
        ['request', 70_000],
        ['document', 70_004],
        ['document', 0],
      ],
      `${size} bytes`,
    )
  }
})

t.test('a form is read no faster than its parts are taken', async (t) => {
  let pulled = 0
  const endless = async function* () {
    yield Buffer.from(`--b\r\n${FILE}\r\n\r\n`)
    for (;;) {
      pulled++
      yield Buffer.alloc(16 * 1024)
    }
  }
  let stop: () => void = () => undefined
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  const reading = readForm(endless(), 'b', async () => {
    await stopped
    throw new Error('taken')
  })
  for (let turns = 0; turns < 1000; turns++) await turn()
  t.ok(pulled <= 4, `${pulled} pieces were read ahead`)
  stop()
  await t.rejects(reading, { message: 'taken' })
})
