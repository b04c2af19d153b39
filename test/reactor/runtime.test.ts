import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CofferError } from '../../src/errors.js'
import type { ReactorRuntime } from '../../src/framework/ports/reactors.js'
import { confineThisNode } from '../../src/reactor/confinement.js'
import { createReactorPool } from '../../src/reactor/start.js'

const modulesDirectory = mkdtempSync(join(tmpdir(), 'bundles-'))
writeFileSync(
  join(modulesDirectory, 'greet.js'),
  "#!/usr/bin/env node\nexports.greet = (name) => `hello ${name} import('x')`\n",
)
mkdirSync(join(modulesDirectory, '@acme'))
writeFileSync(
  join(modulesDirectory, '@acme/deep.cjs'),
  "module.exports = { twice: require('greet').greet('a'), keep: {} }\n",
)
writeFileSync(join(modulesDirectory, 'broken.js'), 'let x = ;\n')

const OTHER_NAME = '@basis-theory/basis-theory-reactor-formulas-sdk-js'
const pool: ReactorRuntime = createReactorPool({
  confinement: await confineThisNode(modulesDirectory),
  modulesDirectory,
  settings: { prefix: 'bt' },
})
t.teardown(async () => {
  await pool.close()
  rmSync(modulesDirectory, { recursive: true })
})

const invoke = (code: string, more = {}) =>
  pool.run({ tenant: 1, reactor: 'r', code, args: {}, configuration: {}, client: null, ...more })

/** Runs `body` as reactor code in the realm and returns its result. */
async function evaluate(body: string, more = {}): Promise<unknown> {
  const { outcome } = await invoke(
    `module.exports = async (req) => ({ raw: await (async () => { ${body} })() })`,
    more,
  )
  if (outcome.kind === 'failure') return { failed: outcome.error.errors?.error?.[0] ?? outcome.error.message }
  return outcome.raw
}

/**
 * Runs each of `bodies` and yields its outcome. All bodies are in one program, because a child runs only one program.
 */
async function* invokeEach(bodies: readonly string[]) {
  const functions = bodies.map((body) => `async (req) => { ${body} }`)
  const code = `const all = [${functions.join(',\n')}]; module.exports = async (req) => ({ raw: await all[req.args.at](req) })`
  for (const at of bodies.keys()) yield [at, await invoke(code, { args: { at } })] as const
}

/** Checks that each body returns the expected value beside it. */
async function checkEach(t: Test, cases: readonly (readonly [body: string, expected: unknown])[]) {
  for await (const [at, { outcome }] of invokeEach(cases.map(([body]) => body)))
    t.same(outcome, { kind: 'result', raw: cases[at]![1] }, cases[at]![0].slice(0, 90))
}

t.test('reactor code gets its client under the configured name', async (t) => {
  const calls: unknown[] = []
  const client = async (name: string, args: readonly unknown[]) => {
    calls.push([name, args])
    return { id: 'x' }
  }
  const all = `const { tokens, tokenize } = req.bt
    for (const name of Object.keys(tokens)) await tokens[name]('a', { name })
    return [Object.keys(req).sort(), await tokenize({ a: 1 }), Object.keys(tokens)]`
  const names =
    `create retrieve list update delete createAssociation deleteAssociation createChild listChildren
    search`.split(/\s+/)
  const given = 'applicationOptions args bt configuration logger req'.split(' ')
  t.same(await evaluate(all, { client }), [given, { id: 'x' }, names])
  t.same(calls, [...names.map((name) => [`tokens.${name}`, ['a', { name }]]), ['tokenize', [{ a: 1 }]]])
})

t.test(
  'reactor code can catch the error of a refused call, with its status and its problem document',
  async (t) => {
    const client = () => Promise.reject(new CofferError('not_found', 'There is no such token.'))
    const caught = await evaluate(
      'try { await req.bt.tokens.retrieve("x") } catch (e) { return [e instanceof Error, e.message, e.status, e.data.status, e.data.type] }',
      { client },
    )
    t.same(caught, [true, 'There is no such token.', 404, 404, 'urn:coffer:problem:not-found'])
  },
)

t.test('every kind of function can be a handler, and its result is returned unchanged', async (t) => {
  const date = '1970-01-01T00:00:00.000Z'
  for (const [code, result] of [
    ['module.exports = () => ({ raw: 0, tokenize: ["x"] })', { raw: 0, tokenize: ['x'] }],
    ['exports.default = async () => ({ raw: "" })', { raw: '' }],
    ['module.exports = function () { return { raw: [] } }; return', { raw: [] }],
    ['module.exports = async () => undefined', {}],
    ['module.exports = async () => 5', {}],
    ['module.exports = async () => ({ raw: null, tokenize: undefined, more: 1 })', {}],
    [
      'module.exports = async () => ({ raw: new Date(0), tokenize: { a: undefined } })',
      { raw: date, tokenize: {} },
    ],
    ['module.exports = async () => ({ raw: () => 1 })', {}],
  ] as const)
    t.same((await invoke(code)).outcome, { kind: 'result', ...result }, code)
})

t.test(
  'if code throws an error with a valid status, the run gets this status, and otherwise the run gets 500',
  async (t) => {
    const THROWN: [body: string, status: number][] = [
      ['undefined', 500],
      ['{ message: "m", status: 402 }', 402],
      ...['399', '600', '"400"', '400.5'].map((each): [string, number] => [
        `{ message: "m", status: ${each} }`,
        500,
      ]),
    ]
    for await (const [at, { outcome }] of invokeEach(THROWN.map(([body]) => `throw ${body}`)))
      t.match(outcome, { error: { code: 'reactor_failed', status: THROWN[at]![1] } }, THROWN[at]![0])
    const { outcome } = await invoke(
      'module.exports = () => { throw { message: "x".repeat(20000), status: 400 } }',
    )
    t.match(outcome, { error: { status: 400, message: 'x'.repeat(10_000) } })
  },
)

t.test('every error class of the module coffer/errors gives its own status', async (t) => {
  const statuses = await evaluate(`const errors = require('coffer/errors')
    return Object.fromEntries(Object.keys(errors).map((name) => { const e = new errors[name](/^(Basis|Custom)/.test(name) ? { status: 204, message: 'm' } : 'x'); return [name, e instanceof Error && e.name === name && e.status] }))`)
  t.match(statuses, {
    AuthenticationError: 401,
    AuthorizationError: 403,
    BadRequestError: 400,
    BasisTheoryReactorError: 204,
    CustomHttpResponseError: 204,
    InvalidCardError: 402,
    InvalidPaymentMethodError: 402,
    InvalidReactorConfigurationError: 400,
    InvalidReactorFormulaError: 422,
    RateLimitError: 429,
    ReactorRuntimeError: 500,
    ServiceUnavailableError: 503,
  })
  t.ok(await evaluate(`return require('${OTHER_NAME}').RateLimitError.name`))
})

t.test(
  'invalid code fails with the place of the error, both when it runs and when it is checked',
  async (t) => {
    for (const [code, text] of [
      ['let x = ;', 'line 1, column 9: Unexpected token'],
      ['\n\nmodule.exports = 5', 'line 1, column 1: The code exports no function; set module.exports to one'],
    ] as const) {
      const error = { code: 'formula_invalid', status: 422, errors: { code: [text] } }
      for (const time of ['', 'in the same child']) t.match((await invoke(code)).outcome, { error }, time)
      await t.rejects(pool.check(code), error)
    }
    t.same(await pool.compile('module.exports = () => 1; for (;;) {}'), [], 'nothing of the code runs')
    t.match(await pool.compile('let x = 1\n  export default x'), [{ line: 2, column: 3 }])
    t.match(await pool.compile('let x = 1'), [{ line: 1, message: /exports no function/ }])
    await t.resolves(pool.check('module.exports = async () => { throw new Error("not called") }'))
    const missing = { code: 'reactor_failed', errors: { error: [/Cannot find module 'nothing'/] } }
    await t.rejects(pool.check('require("nothing")'), missing)
  },
)

t.test(
  'the owner sees the console lines of code and the stack of its error, but no path of this machine',
  async (t) => {
    const { console, stack, durationMs, memoryMiB } = await invoke(`module.exports = async (req) => {
    console.log('a %s %d', 'b', 3, { c: [1] }); console.warn('%j', [1, { x: 1 }]); console.error(new Error('e %s')); console.info(); console.debug(null)
    inner()
  }
  function inner() { throw new Error('deep') }`)
    t.same(console, [
      { level: 'log', text: 'a b 3 { c: [ 1 ] }' },
      { level: 'warn', text: '[1,{"x":1}]' },
      { level: 'error', text: 'Error: e %s\n    at module.exports (reactor.js:2:98)' },
      { level: 'info', text: '' },
      { level: 'debug', text: 'null' },
    ])
    t.match(stack, /^at inner \(reactor\.js:5:28\)\nat module\.exports \(reactor\.js:3:5\)$/)
    t.ok(durationMs > 0 && memoryMiB >= 0)
  },
)

t.test('the globals of reactor code exist and reveal nothing about the machine', async (t) => {
  await checkEach(t, [
    [
      'return [globalThis === global, self === global, typeof require, typeof module]',
      [true, true, 'function', 'object'],
    ],
    ['return new Date(2020, 0, 1).getTimezoneOffset()', 0],
    [
      `const seen = []; setTimeout((a) => seen.push(a), 5, 'late'); const id = setInterval(() => seen.push('tick'), 1); await new Promise((r) => setTimeout(r, 20)); clearInterval(id); const ticks = seen.filter((s) => s === 'tick').length; await new Promise((r) => setImmediate(r)); return [seen.includes('late'), ticks > 0, typeof id, clearTimeout(undefined)]`,
      [true, true, 'object', null],
    ],
    [`const e = new Error('x', { cause: 'y' }); return [e.cause, e.stack || '']`, ['y', '']],
    [`try { structuredClone(() => 1) } catch (e) { return e.name }`, 'TypeError'],
    [
      `const k = await crypto.subtle.importKey('raw', new Uint8Array(9), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']); return [k.type, k.extractable, String(k)]`,
      ['secret', false, '[object CryptoKey]'],
    ],
  ])
})

t.test(
  'date formats in reactor code use the time of the vault and not the time of the machine',
  async (t) => {
    const formats = `
    const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'short', timeStyle: 'short' })
    return [format.format(), format.format(0), [0].map(format.format)[0], format.format === format.format,
      format.formatToParts().map((part) => part.value).join(''), Intl.DateTimeFormat('en-GB').format(undefined)]`
    const frozen = createReactorPool({
      confinement: await confineThisNode(),
      settings: { time: () => ({ frozenMs: Date.UTC(2031, 4, 6, 7, 8) }) },
    })
    t.teardown(() => frozen.close())
    const { outcome } = await frozen.run({
      ...{ tenant: 1, reactor: 'r', args: {}, configuration: {}, client: null },
      code: `module.exports = async () => ({ raw: await (async () => { ${formats} })() })`,
    })
    const [now, epoch] = ['06/05/2031, 07:08', '01/01/1970, 00:00']
    t.same(outcome, { kind: 'result', raw: [now, epoch, epoch, true, now, '06/05/2031'] })
  },
)

/** Expressions for digests, ciphers, signatures and keys. In the expressions, `c` is the module `crypto`. */
const CRYPTO = [
  `c.createHash('sha256').update('a').update(Buffer.from('b')).digest('hex')`,
  `c.createHash('md5').update('a').copy().digest('base64')`,
  `c.createHmac('sha256', 'key').update('data').digest('hex')`,
  `(() => { const k = Buffer.alloc(32, 1), iv = Buffer.alloc(12, 2); const e = c.createCipheriv('aes-256-gcm', k, iv).setAAD(Buffer.from('x')); const s = e.update('secret', 'utf8', 'hex') + e.final('hex'); const d = c.createDecipheriv('aes-256-gcm', k, iv).setAAD(Buffer.from('x')).setAuthTag(e.getAuthTag()); return [s, d.update(s, 'hex', 'utf8') + d.final('utf8')] })()`,
  `(() => { const { publicKey, privateKey } = c.generateKeyPairSync('ec', { namedCurve: 'P-256' }); const s = c.createSign('sha256').update('m').sign(privateKey); return [c.createVerify('sha256').update('m').verify(publicKey, s), c.verify('sha256', Buffer.from('n'), publicKey, s), publicKey.asymmetricKeyType] })()`,
  `(() => { const { publicKey, privateKey } = c.generateKeyPairSync('rsa', { modulusLength: 1024, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } }); const key = c.createPrivateKey(privateKey); const s = c.sign('sha256', Buffer.from('m'), { key, padding: c.constants.RSA_PKCS1_PSS_PADDING }); const sealed = c.publicEncrypt(publicKey, Buffer.from('p')); return [c.verify('sha256', Buffer.from('m'), { key: publicKey, padding: c.constants.RSA_PKCS1_PSS_PADDING }, s), c.privateDecrypt(key, sealed).toString(), c.createPublicKey(key).export({ type: 'spki', format: 'pem' }) === publicKey] })()`,
  `(() => { const [a, b] = ['prime256v1', 'prime256v1'].map((name) => c.createECDH(name)); const [x, y] = [a.generateKeys(), b.generateKeys('hex')]; return [a.computeSecret(y, 'hex', 'hex') === b.computeSecret(x).toString('hex'), a.setPrivateKey(b.getPrivateKey()) === a && a.getPublicKey('hex') === y, x.length] })()`,
  `(() => { const key = c.createSecretKey(Buffer.from('k')); const { publicKey, privateKey } = c.generateKeyPairSync('rsa', { modulusLength: 1024 }); const same = [1, 2].map(() => c.generateKeyPairSync('x25519')); return [key instanceof c.KeyObject, publicKey instanceof c.KeyObject, {} instanceof c.KeyObject, 5 instanceof c.KeyObject, c.publicDecrypt(publicKey, c.privateEncrypt(privateKey, Buffer.from('p'))).toString(), c.diffieHellman({ privateKey: same[0].privateKey, publicKey: same[1].publicKey }).equals(c.diffieHellman({ privateKey: same[1].privateKey, publicKey: same[0].publicKey })), c.generateKeySync('hmac', { length: 64 }).symmetricKeySize] })()`,
  `[new c.createHash('sha256').update('a').digest('hex'), new c.createHmac('sha1', 'k').update('a').digest('hex')]`,
  `[c.randomBytes(8).length, c.randomUUID().length, c.randomInt(1), c.randomInt(5, 6)]`,
  `new Promise((r) => c.scrypt('p', 's', 4, (e, k) => r(k.toString('hex'))))`,
  `[c.timingSafeEqual(Buffer.from('a'), Buffer.from('a')), c.pbkdf2Sync('p', 's', 1, 4, 'sha1').toString('hex'), Buffer.from(c.hkdfSync('sha256', 'k', 's', 'i', 4))]`,
  `(() => { try { c.createHash('nope') } catch (e) { return e instanceof Error } })()`,
  `(async () => { const k = await crypto.subtle.importKey('raw', Buffer.from('key'), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']); const s = await crypto.subtle.sign('HMAC', k, Buffer.from('data')); return [Buffer.from(s).toString('hex'), await crypto.subtle.verify('HMAC', k, s, Buffer.from('data'))] })()`,
  `(async () => { const k = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt', 'decrypt']); const iv = crypto.getRandomValues(new Uint8Array(12)); const s = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, k, Buffer.from('x')); const raw = await crypto.subtle.exportKey('raw', k); return [Buffer.from(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, k, s)).toString(), raw.byteLength] })()`,
  `(async () => { const [a, b] = await Promise.all([1, 2].map(() => crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits']))); const derive = (x, y) => crypto.subtle.deriveBits({ name: 'ECDH', public: x.publicKey }, y.privateKey, 128); return Buffer.from(await derive(a, b)).equals(Buffer.from(await derive(b, a))) })()`,
  `crypto.subtle.digest('SHA-256', Buffer.from('ab')).then((d) => Buffer.from(d).toString('hex'))`,
]

/**
 * Expressions for streams and the bodies of messages. In the expressions, `read` returns all chunks of a stream as
 * text.
 */
const STREAMS = [
  'read(new Response("aé").body)',
  '[new Response().body, new Response(null).body, new Request("http://a").body, new Response("").body === null]',
  '(async () => { const r = new Response("ab"); const first = r.body === r.body; const reader = r.body.getReader(); const locked = r.body.locked; const { value, done } = await reader.read(); return [first, locked, value instanceof Uint8Array, value.length, done, r.bodyUsed, await reader.read(), await reader.closed] })()',
  '(async () => { const r = new Response("ab"); const text = await r.text(); return [text, r.bodyUsed, r.body.locked, await failure(() => r.text()), await failure(() => r.body.getReader())] })()',
  '(async () => { const r = new Response("ab"); r.body.getReader(); return [r.bodyUsed, await failure(() => r.text()), await failure(() => r.clone())] })()',
  '(async () => { const r = new Response("ab"); const reader = r.body.getReader(); reader.releaseLock(); return [await r.text(), await failure(() => reader.read())] })()',
  '(async () => { const r = new Response("ab"); await r.body.cancel(); return [r.bodyUsed, await failure(() => r.text())] })()',
  '(async () => { const r = new Response("ab"); const c = r.clone(); return [await read(r.body), await c.text()] })()',
  '(async () => { const r = new Response(); return [await r.text(), await r.text(), r.bodyUsed] })()',
  '(async () => { const r = new Response("x".repeat(200000)); let n = 0; for await (const chunk of r.body) n += chunk.length; return [n, r.bodyUsed, r.body.locked] })()',
  'new Response(new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("a")); c.enqueue(new Uint8Array([98])); c.close() } })).text()',
  '(async () => { const r = new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array([97])); c.close() } })); const c = r.clone(); return [await r.text(), await c.text()] })()',
  '(async () => { const s = new ReadableStream(); s.getReader(); return [await failure(() => new Response(s)), await failure(() => s.cancel())] })()',
  'failure(() => new Response(new ReadableStream({ start(c) { c.enqueue("text"); c.close() } })).text())',
  'failure(() => new Response(new ReadableStream({ start(c) { c.error(new RangeError("own")) } })).text())',
  '(async () => { const request = new Request("http://a", { method: "POST", body: "b" }); const other = new Request(request.clone ? "http://a" : "http://a", { method: "POST", body: "b" }); return [await read(request.body), request.bodyUsed, await other.text()] })()',
  '(async () => { const log = []; const s = new ReadableStream({ start(c) { log.push(c.desiredSize) }, pull(c) { log.push("pull"); c.enqueue(log.length) }, cancel(r) { log.push(r) } }, { highWaterMark: 2 }); await tick(); const reader = s.getReader(); await reader.read(); await reader.cancel("why"); return [log, await reader.read()] })()',
  '(async () => { let n = 0; const s = new ReadableStream({ async pull(c) { await tick(); n < 3 ? c.enqueue(n++) : c.close() } }); return all(s) })()',
  '(async () => { const log = []; const s = new ReadableStream({ pull(c) { c.enqueue(1) }, cancel(r) { log.push("cancelled", r) } }); for await (const chunk of s) { log.push(chunk); break } return [log, s.locked] })()',
  '(async () => { const s = new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); c.close() } }, { highWaterMark: 5 }); for await (const chunk of s.values({ preventCancel: true })) break; return [s.locked, await all(s)] })()',
  '(async () => { const s = ReadableStream.from([1, Promise.resolve(2), 3]); const [a, b] = s.tee(); return [s.locked, await all(a), await all(b)] })()',
  'all(ReadableStream.from((async function* () { yield "a"; yield "b" })()))',
  '(async () => { const reader = new ReadableStream({ start() { throw new RangeError("own") } }); return reader })().catch((error) => error.message)',
  '(async () => { const reader = new ReadableStream({ pull() { throw new RangeError("own") } }).getReader(); return [await failure(() => reader.read()), await failure(() => reader.closed)] })()',
  '(async () => { let c; const s = new ReadableStream({ start(given) { c = given } }); c.enqueue(1); c.close(); const late = [await failure(() => c.enqueue(2)), await failure(() => c.close())]; return [late, await all(s), c.desiredSize] })()',
  'Promise.all([failure(() => new ReadableStream({ pull: 1 })), failure(() => new ReadableStream({}, { highWaterMark: -1 })), failure(() => ReadableStream.prototype.getReader.call({}))])',
  '[String(new ReadableStream()), String(new ReadableStream().getReader()), typeof ReadableStream]',
]

/**
 * Declarations that the expressions of {@link STREAMS} use. The tests compare errors by class, because the error texts
 * of the facades differ from the texts of Node.
 */
const STREAM_TOOLS = `
  const all = async (stream) => { const chunks = []; for await (const chunk of stream) chunks.push(chunk); return chunks }
  const read = async (stream) => { const decoder = new TextDecoder(); return (await all(stream)).map((chunk) => decoder.decode(chunk, { stream: true })).join('') }
  const tick = () => new Promise((resolve) => setTimeout(resolve, 1))
  const failure = async (work) => { try { await work(); return 'no failure' } catch (error) { return error.name } }`

/** Expressions whose results must have the same JSON in Node and in the realm. */
const ALIKE = [
  ...CRYPTO,
  ...STREAMS,
  '[(1234.5).toLocaleString("de-DE"), new Intl.NumberFormat("en", { style: "currency", currency: "EUR" }).format(2)]',
  '[require("node:url").URL === URL, require("url").URLSearchParams === URLSearchParams, require("buffer").Buffer === Buffer]',
  '(() => { const h = new Headers({ B: "2", a: 1 }); h.append("a", "x"); return [[...h], h.get("A"), h.has("c")] })()',
  '(() => { const d = { a: [1, new Date(0), { b: null }], m: new Map([["k", new Set([2])]]), f: new Float64Array([1.5]), e: new TypeError("t") }; d.self = d; const c = structuredClone(d); return [c !== d && c.self === c, c.a, c.m.get("k").has(2), c.f[0], c.f !== d.f, c.e.name] })()',
  '(() => { const seen = []; const t = new EventTarget(); t.addEventListener("a", (e) => seen.push(e.type), { once: true }); t.addEventListener("a", { handleEvent: (e) => e.preventDefault() }); return [t.dispatchEvent(new Event("a", { cancelable: true })), t.dispatchEvent(new Event("a")), seen] })()',
  '(() => { const c = new AbortController(); const seen = []; c.signal.addEventListener("abort", () => seen.push(1)); c.abort(); c.abort(); return [c.signal.aborted, seen.length, c.signal.reason.name] })()',
  '(async () => { const r = new Response(\'{"a":1}\', { status: 201 }); return [r.ok, (await r.clone().json()).a, await r.text(), r.bodyUsed] })()',
  ...['utf8', 'utf16le', 'ucs2', 'latin1', 'binary', 'ascii', 'hex', 'base64', 'base64url', 'UTF-8'].flatMap(
    (name) => [
      `Buffer.from('4a6b é漢', '${name}').toString('hex')`,
      `Buffer.from([0, 255, 128, 65, 66, 67]).toString('${name}')`,
      `[Buffer.byteLength('4a6bé', '${name}'), Buffer.isEncoding('${name}')]`,
    ],
  ),
  '[...Buffer.from(new Uint16Array([257, 2]))]',
  'Buffer.from({ length: 2, 0: 5, 1: 6 })',
  'new Buffer("old").toString() + new Buffer(2).length + Buffer("old")',
  '[Object.keys(Buffer).includes("concat"), Buffer.copyBytesFrom(new Uint16Array([1, 2, 3]), 1, 1)]',
  'Buffer.alloc(5, "ab").toString() + Buffer.alloc(3, 1).toString("hex") + Buffer.alloc(2, "/w==", "base64")[0]',
  'Buffer.concat([Buffer.from("a"), new Uint8Array([98])], 4).toString("hex")',
  '(() => { const b = Buffer.from("abcdef"); b.slice(1, 3)[0] = 65; b.subarray(-1)[0] = 90; return b.toString() })()',
  '(() => { const b = Buffer.from("abcdef"); return [b.map((x) => x + 1).toString(), b.filter((x) => x > 98) instanceof Buffer, b.slice(-2).toString()] })()',
  '(() => { const b = Buffer.alloc(24); b.writeUInt32BE(1, 0); b.writeInt16LE(-2, 4); b.writeDoubleLE(1.5, 6); b.writeUIntBE(0x123456, 14, 3); b.writeBigInt64BE(-3n, 16); return [b.toString("hex"), b.readUInt32BE(), b.readInt16LE(4), b.readDoubleLE(6), b.readUintBE(14, 3), String(b.readBigInt64BE(16)), b.readInt8(4), b.readFloatLE(1)] })()',
  '(() => { const b = Buffer.from("0102030405060708", "hex"); return [b.swap16().toString("hex"), b.swap64() === b, b.toString("hex")] })()',
  '(() => { const b = Buffer.from("hello hello"); return [b.indexOf("lo"), b.indexOf("lo", 5), b.lastIndexOf("he"), b.includes("zz"), b.indexOf(Buffer.from("o")), b.indexOf(104, 1), b.equals(Buffer.from("hello hello"))] })()',
  '(() => { const b = Buffer.alloc(6); return [b.write("abc", 1), b.write("ff", 4, "hex"), b.fill("xy", 0, 2).toString("latin1"), Buffer.from("zz").copy(b, 2), b.toString("utf8", 1, 4), b.copy(new Uint8Array(3), 0, 1, 3)] })()',
  'JSON.stringify({ b: Buffer.from("a") }) + Buffer.from("b") + `${Buffer.from("c")}` + [Buffer.from("d")]',
  '[Buffer.isBuffer(Buffer.from("a")), Buffer.isBuffer(new Uint8Array(1)), Buffer.from("a") instanceof Uint8Array, Buffer.of(1, 2).length, Buffer.name]',
  ...[
    'Buffer.alloc("1")',
    'Buffer.from(null)',
    'Buffer.from("a", "none")',
    'Buffer.alloc(1).readInt8(2)',
    'Buffer.alloc(1).writeUInt8(256)',
    'new URL("x")',
    'new TextDecoder("none")',
    'btoa("漢")',
  ].map(
    (text) =>
      `(() => { try { return ${text} } catch (e) { return [e.constructor.name === 'DOMException' ? 'Error' : e.constructor.name, e instanceof Error] } })()`,
  ),
  '(() => { const u = new URL("https://u:p@h.example:8443/a/../b?x=1&y=%20#f"); return [u, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, String(u)] })()',
  '(() => { const u = new URL("https://h/p?x=1"); u.searchParams.append("é", "a b"); u.hash = "z"; u.port = "99"; u.pathname = "/q r"; const first = u.href; u.search = "?n=2"; return [first, u.searchParams.get("n"), u.searchParams.get("x"), u.href] })()',
  '[URL.canParse("x"), URL.canParse("/x", "http://a"), new URL("/x", new URL("http://a/b")).href, new URL("http://é.example").href]',
  '(() => { const p = new URLSearchParams("b=2&a=1&a=3"); p.sort(); p.delete("b"); const seen = []; p.forEach((v, k, q) => seen.push(k + v + (q === p))); return [p.toString(), seen, p.getAll("a"), p.has("a"), [...p], [...p.keys()], [...p.values()], p.size, p.get("z")] })()',
  '[new URLSearchParams({ a: 1, b: "x y" }), new URLSearchParams([["c", 2]]), new URLSearchParams(new Map([["d", "e"]])), new URLSearchParams("?f=g")].map(String)',
  ...['utf-8', 'utf-16le', 'utf-16be', 'gbk', 'shift_jis', 'latin1'].map(
    (label) =>
      `(() => { const d = new TextDecoder('${label}'); return [d.encoding, d.fatal, d.ignoreBOM, d.decode(new Uint8Array([0x82, 0xa0, 65, 0]), { stream: true }) + d.decode(new Uint8Array([66, 0x81]).buffer) + d.decode()] })()`,
  ),
  '(() => { const target = new Uint8Array(4); return [new TextEncoder().encodeInto("aé漢", target), [...target], [...new TextEncoder().encode("é")], new TextEncoder().encoding] })()',
  'new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 65])).length',
  ...[
    '[{ a: { b: { c: { d: 1 } } }, e: [1, [2, [3, [4]]]] }]',
    '["%s is %d and %i, %f, %j, %o", "a", 1.5, 2.7, "3.1", { x: [1] }, 5, "more"]',
    '[new Map([["a", { b: 1 }]]), new Set([1, "b"])]',
    '[Buffer.from("hi"), new Uint8Array(2), new Float64Array([1.5])]',
    '[/a/g, new Date(0), null, undefined, 1n, Symbol("s"), -0, "text"]',
    '[new (class Thing { a = 1 })(), Object.create(null), [undefined, , 3], { get a() { return 1 }, set b(v) {} }]',
    '[Object.assign([1], { k: 2 }), { [Symbol("k")]: 1, "a-b": 2 }, "b"]',
    '[(() => { const a = { b: {} }; a.b.c = a; return a })()]',
    '[{ s: "x\'y", t: `multi\nline` }]',
    '["100%", 1]',
  ].map((values) => `require('util').format(...${values})`),
  'require("util").inspect({ a: { b: { c: { d: 1 } } } }, { depth: 0 }) + require("util").inspect({ a: { b: { c: { d: { e: {} } } } } }, { depth: null })',
  'require("querystring").stringify({ a: [1, "b c"], d: true, e: null }) + JSON.stringify(require("querystring").parse("a=1&a=2&b", "&", "="))',
]

t.test("replacements of Node's own modules give the same results as Node", async (t) => {
  const { createRequire } = await import('node:module')
  const list = `Promise.all([${ALIKE.map((text) => `() => (${text})`).join(',\n')}].map(async (work) => { try { return JSON.stringify(await work() ?? null) } catch (e) { return 'threw ' + e.message } }))`
  const program = new Function('require', 'c', `'use strict'; ${STREAM_TOOLS}; return ${list}`)
  const require = createRequire(import.meta.url)
  const expected = (await program(require, require('node:crypto'))) as unknown[]
  const found = (await evaluate(`const c = require('crypto'); ${STREAM_TOOLS}; return ${list}`)) as unknown[]
  t.equal(found.length, ALIKE.length)
  for (const [at, text] of ALIKE.entries()) t.equal(found[at], expected[at], text.slice(0, 120))
})

t.test(
  'the bundles that the owner provides are evaluated in the realm of reactor code, once for each run',
  async (t) => {
    const codeOf = (name: string) => `try { require('${name}') } catch (e) { return e.code }`
    const unknown = ['../greet', './greet', '@acme/../greet', 'axios']
    await checkEach(t, [
      ["return require('greet').greet('you')", "hello you import('x')"],
      ["return require('@acme/deep').twice", "hello a import('x')"],
      ["require('@acme/deep').keep.x = 1; return require('@acme/deep').keep.x", 1],
      ["return require('@acme/deep').keep.x ?? 'gone'", 'gone'],
      ["try { require('broken') } catch (e) { return e.message }", "Unexpected token ';'"],
      ...unknown.map((name) => [codeOf(name), 'MODULE_NOT_FOUND'] as const),
    ])
  },
)
