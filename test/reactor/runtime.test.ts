import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { ReactorRuntime } from '../../src/framework/ports/reactors.js'
import { confine } from '../../src/reactor/confinement.js'
import { createReactorPool } from '../../src/reactor/pool.js'

const node = { path: process.execPath, version: process.versions.node, platform: process.platform }
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

const pool: ReactorRuntime = createReactorPool({
  node,
  confinement: await confine(node, modulesDirectory),
  modulesDirectory,
  settings: { prefix: 'bt' },
})
t.teardown(async () => {
  await pool.close()
  rmSync(modulesDirectory, { recursive: true })
})

const invoke = (code: string, more = {}) =>
  pool.run({ tenant: 1, reactor: 'r', code, args: {}, configuration: {}, client: null, ...more })

/** What `body` returns, in the realm. */
async function evaluate(body: string, more = {}): Promise<unknown> {
  const { outcome } = await invoke(
    `module.exports = async (req) => ({ raw: await (async () => { ${body} })() })`,
    more,
  )
  if (outcome.kind === 'failure') return { failed: outcome.error.errors?.error?.[0] ?? outcome.error.message }
  return outcome.raw
}

/** What each of `bodies` returns, in one program: a child runs no other. */
async function* evaluateEach(bodies: readonly string[]): AsyncGenerator<unknown> {
  const functions = bodies.map((body) => `async (req) => { ${body} }`)
  const code = `const all = [${functions.join(',\n')}]; module.exports = async (req) => ({ raw: await all[req.args.at](req) })`
  for (const at of bodies.keys()) {
    const { outcome } = await invoke(code, { args: { at } })
    yield outcome.kind === 'failure' ? { failed: outcome.error.errors?.error?.[0] } : outcome.raw
  }
}

t.test('the code is given arguments, configuration and its client, by the name that is set', async (t) => {
  const given = { args: { a: { b: [1, null] } }, configuration: { k: 5, on: true } }
  t.same(await evaluate('return req', given), {
    args: given.args,
    configuration: given.configuration,
    bt: null,
    req: given.args,
    logger: {},
  })
  const calls: unknown[] = []
  const client = async (name: string, args: readonly unknown[]) => {
    calls.push([name, args])
    return { id: 'x' }
  }
  const all = `const { tokens, tokenize } = req.bt
    for (const name of Object.keys(tokens)) await tokens[name]('a', { name })
    return [await tokenize({ a: 1 }), Object.keys(req.bt), Object.keys(tokens)]`
  const names = [
    'create',
    'retrieve',
    'list',
    'update',
    'delete',
    'createAssociation',
    'deleteAssociation',
    'createChild',
    'listChildren',
    'search',
  ]
  t.same(await evaluate(all, { client }), [{ id: 'x' }, ['tokens', 'tokenize'], names])
  t.same(calls, [...names.map((name) => [`tokens.${name}`, ['a', { name }]]), ['tokenize', [{ a: 1 }]]])
})

t.test('a refused call can be caught, with its status and its problem', async (t) => {
  const { CofferError } = await import('../../src/errors.js')
  const client = async () => {
    throw new CofferError('not_found', 'There is no such token.')
  }
  const caught = await evaluate(
    'try { await req.bt.tokens.retrieve("x") } catch (e) { return [e instanceof Error, e.message, e.status, e.data.status, e.data.type] }',
    { client },
  )
  t.same(caught, [true, 'There is no such token.', 404, 404, 'urn:coffer:problem:not-found'])
  const { outcome } = await invoke('module.exports = (req) => req.bt.tokens.retrieve("x")', { client })
  t.match(
    outcome,
    { error: { code: 'reactor_failed', status: 404, message: 'There is no such token.' } },
    'or not be caught',
  )
})

t.test('functions of every kind are run, and what they return is taken as it is', async (t) => {
  const cases: [string, object][] = [
    ['module.exports = async () => ({ raw: { a: 1 }, tokenize: ["x"] })', { raw: { a: 1 }, tokenize: ['x'] }],
    ['module.exports = () => ({ raw: 0 })', { raw: 0 }],
    ['exports.default = async () => ({ raw: "" })', { raw: '' }],
    ['module.exports = function () { return { raw: [] } }; return', { raw: [] }],
    ['module.exports = async () => undefined', {}],
    ['module.exports = async () => 5', {}],
    ['module.exports = async () => ({ raw: null, tokenize: undefined, more: 1 })', {}],
    [
      'module.exports = async () => ({ raw: new Date(0), tokenize: { a: undefined } })',
      { raw: '1970-01-01T00:00:00.000Z', tokenize: {} },
    ],
    ['module.exports = async () => ({ raw: () => 1 })', {}],
  ]
  for (const [code, result] of cases) {
    const { outcome } = await invoke(code)
    t.same(outcome, { kind: 'result', ...result }, code)
  }
})

t.test('an error with a status of its own becomes that status, anything else is 500', async (t) => {
  const cases: [string, object][] = [
    ['throw new Error("plain")', { status: 500, errors: { error: ['plain'] } }],
    ['throw "text"', { status: 500, errors: { error: ['text'] } }],
    ['throw undefined', { status: 500, errors: { error: ['undefined'] } }],
    ['throw { message: "m", status: 402 }', { status: 402, message: 'm', errors: undefined }],
    ['throw { message: "m", status: 399 }', { status: 500, errors: { error: ['m'] } }],
    ['throw { message: "m", status: 600 }', { status: 500, errors: { error: ['m'] } }],
    ['throw { message: "m", status: "400" }', { status: 500, errors: { error: ['m'] } }],
    ['throw { message: "m", status: 400.5 }', { status: 500, errors: { error: ['m'] } }],
    ['throw { message: "m", status: 400, errors: "bare" }', { status: 400, errors: { error: ['bare'] } }],
    [
      'throw { message: "m", status: 400, errors: ["a", { b: 1 }] }',
      { status: 400, errors: { error: ['a', '{"b":1}'] } },
    ],
    [
      'throw { message: "m", status: 400, errors: new Error("inner") }',
      { status: 400, errors: { error: ['inner'] } },
    ],
    [
      'throw { message: "m", status: 400, errors: { a: "x", b: ["y", 2] } }',
      { status: 400, errors: { a: ['x'], b: ['y', '2'] } },
    ],
    [
      'const { InvalidCardError } = require("coffer/errors"); throw new InvalidCardError({ number: ["no"] })',
      { status: 402, message: 'Invalid Card', errors: { number: ['no'] } },
    ],
    [
      'const { RateLimitError } = require("@basis-theory/basis-theory-reactor-formulas-sdk-js"); throw new RateLimitError("slow")',
      { status: 429, message: 'Rate Limit Error', errors: { error: ['slow'] } },
    ],
    [
      'const { CustomHttpResponseError } = require("coffer/errors"); throw new CustomHttpResponseError({ status: 418, body: { a: "b" } })',
      { status: 418, errors: { a: ['b'] } },
    ],
    ['throw { message: "x".repeat(20000), status: 400 }', { status: 400, message: 'x'.repeat(10_000) }],
  ]
  const bodies = cases.map(([body]) => `async () => { ${body} }`)
  const code = `const all = [${bodies.join(',\n')}]; module.exports = ({ args }) => all[args.at]()`
  for (const [at, [body, error]] of cases.entries()) {
    const { outcome } = await invoke(code, { args: { at } })
    t.match(outcome, { kind: 'failure', error: { code: 'reactor_failed', ...error } }, body)
  }
})

t.test('every error class of the module has its status', async (t) => {
  const statuses = await evaluate(`const errors = require('coffer/errors')
    return Object.fromEntries(Object.keys(errors).sort().map((name) => { const e = new errors[name](name === 'ReactorError' ? undefined : name === 'CustomHttpResponseError' ? { status: 204 } : 'x'); return [name, [e instanceof Error && e instanceof errors.ReactorError, e.name, e.status]] }))`)
  const expected: Record<string, number> = {
    AuthenticationError: 401,
    AuthorizationError: 403,
    BadRequestError: 400,
    CustomHttpResponseError: 204,
    InvalidCardError: 402,
    InvalidPaymentMethodError: 402,
    InvalidReactorConfigurationError: 400,
    InvalidReactorFormulaError: 422,
    RateLimitError: 429,
    ReactorRuntimeError: 500,
    ServiceUnavailableError: 503,
  }
  for (const [name, status] of Object.entries(expected))
    t.same((statuses as Record<string, unknown>)[name], [true, name, status], name)
})

t.test('code that does not start says where, and so does its check', async (t) => {
  const cases: [string, string][] = [
    ['let x = ;', 'line 1, column 9: Unexpected token'],
    ['\n\nmodule.exports = 5', 'line 3, column 1: The code exports no function; set module.exports to one'],
    ['await 1', 'line 1, column 7: Unexpected token'],
  ]
  for (const [code, text] of cases) {
    const { outcome } = await invoke(code)
    t.match(outcome, { error: { code: 'formula_invalid', status: 422, errors: { code: [text] } } }, code)
    const again = await invoke(code)
    t.match(again.outcome, { error: { code: 'formula_invalid', status: 422 } }, 'in the same child, too')
    t.match((await pool.check(code)).fault, { code: 'formula_invalid', errors: { code: [text] } })
  }
  const good = await pool.check(
    'module.exports = async ({ args, configuration: { KEY } }) => ({ raw: args.a.b + KEY })',
  )
  t.same(good, { args: ['a.b'], configuration: ['KEY'], unknown: [] })
  t.match((await pool.check('require("nothing")')).fault, {
    code: 'reactor_failed',
    errors: { error: [/Cannot find module 'nothing'/] },
  })
})

t.test(
  'the owner sees lines of the console and the stack of what failed, and no place of this machine',
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
    t.match(
      (await invoke('module.exports = () => { throw new Error("x") }')).stack,
      'at module.exports (reactor.js:1:32)',
    )
    t.ok(durationMs > 0 && memoryMiB >= 0)
  },
)

t.test('crypto: digests, ciphers, signatures, keys and randomness work as documented', async (t) => {
  const c = 'const crypto = require("crypto");'
  const cases: [string, unknown][] = [
    [
      `${c} return crypto.createHash('sha256').update('a').update(Buffer.from('b')).digest('hex')`,
      'fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603',
    ],
    [
      `${c} const h = crypto.createHash('md5').update('a'); return [h.copy().digest('hex'), h.digest('base64')]`,
      ['0cc175b9c0f1b6a831c399e269772661', 'DMF1ucDxtqgxw5niaXcmYQ=='],
    ],
    [
      `${c} return crypto.createHmac('sha256', 'key').update('data').digest('hex')`,
      '5031fe3d989c6d1537a013fa6e739da23463fdaec3b70137d828e36ace221bd0',
    ],
    [
      `${c} return crypto.createHmac('sha256', crypto.createSecretKey(Buffer.from('key'))).update('data').digest('hex')`,
      '5031fe3d989c6d1537a013fa6e739da23463fdaec3b70137d828e36ace221bd0',
    ],
    [
      `${c} const k = Buffer.alloc(32, 1), iv = Buffer.alloc(12, 2); const e = crypto.createCipheriv('aes-256-gcm', k, iv).setAAD(Buffer.from('x')); const s = e.update('secret', 'utf8', 'hex') + e.final('hex'); const d = crypto.createDecipheriv('aes-256-gcm', k, iv).setAAD(Buffer.from('x')).setAuthTag(e.getAuthTag()); return d.update(s, 'hex', 'utf8') + d.final('utf8')`,
      'secret',
    ],
    [
      `${c} const { publicKey, privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' }); const s = crypto.createSign('sha256').update('m').sign(privateKey); return [crypto.createVerify('sha256').update('m').verify(publicKey, s), crypto.verify('sha256', Buffer.from('n'), publicKey, s), publicKey.asymmetricKeyType]`,
      [true, false, 'ec'],
    ],
    [
      `${c} const { publicKey, privateKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 1024, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } }); const key = crypto.createPrivateKey(privateKey); const s = crypto.sign('sha256', Buffer.from('m'), { key, padding: crypto.constants.RSA_PKCS1_PSS_PADDING }); const sealed = crypto.publicEncrypt(publicKey, Buffer.from('p')); return [crypto.verify('sha256', Buffer.from('m'), { key: publicKey, padding: crypto.constants.RSA_PKCS1_PSS_PADDING }, s), crypto.privateDecrypt(key, sealed).toString(), crypto.createPublicKey(key).export({ type: 'spki', format: 'pem' }) === publicKey]`,
      [true, 'p', true],
    ],
    [
      `${c} return [crypto.randomBytes(8).length, crypto.randomUUID().length, crypto.randomInt(1), crypto.randomInt(5, 6), await new Promise((r) => crypto.randomBytes(4, (e, b) => r(b.length)))]`,
      [8, 36, 0, 5, 4],
    ],
    [
      `${c} return [crypto.timingSafeEqual(Buffer.from('a'), Buffer.from('a')), crypto.pbkdf2Sync('p', 's', 1, 4, 'sha1').toString('hex'), Buffer.from(crypto.hkdfSync('sha256', 'k', 's', 'i', 4)).length, await new Promise((r) => crypto.scrypt('p', 's', 4, (e, k) => r(k.length)))]`,
      [true, '843c87e7', 4, 4],
    ],
    [
      `try { require('crypto').createHash('nope') } catch (e) { return [e instanceof Error, /not supported|Digest/.test(e.message)] }`,
      [true, true],
    ],
    [
      `const k = await crypto.subtle.importKey('raw', new TextEncoder().encode('key'), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']); const s = await crypto.subtle.sign('HMAC', k, new TextEncoder().encode('data')); return [Buffer.from(s).toString('hex'), await crypto.subtle.verify('HMAC', k, s, new TextEncoder().encode('data')), k.type, k.extractable, String(k)]`,
      [
        '5031fe3d989c6d1537a013fa6e739da23463fdaec3b70137d828e36ace221bd0',
        true,
        'secret',
        false,
        '[object CryptoKey]',
      ],
    ],
    [
      `const k = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt', 'decrypt']); const iv = crypto.getRandomValues(new Uint8Array(12)); const s = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, k, Buffer.from('x')); const raw = await crypto.subtle.exportKey('raw', k); return [Buffer.from(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, k, s)).toString(), raw.byteLength]`,
      ['x', 32],
    ],
    [
      `const a = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits']); const b = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits']); const x = await crypto.subtle.deriveBits({ name: 'ECDH', public: a.publicKey }, b.privateKey, 128); const y = await crypto.subtle.deriveBits({ name: 'ECDH', public: b.publicKey }, a.privateKey, 128); return Buffer.from(x).equals(Buffer.from(y))`,
      true,
    ],
    [
      `return Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from('ab'))).toString('hex').slice(0, 8)`,
      'fb8e20fc',
    ],
    [
      `try { await crypto.subtle.sign('HMAC', {}, new Uint8Array(1)) } catch (e) { return e.message }`,
      'The key was not created by crypto.subtle',
    ],
  ]
  let at = 0
  for await (const found of evaluateEach(cases.map(([body]) => body))) {
    const [body, expected] = cases[at++]!
    t.same(found, expected, body.slice(0, 90))
  }
})

t.test('buffers, URLs, text, dates, numbers and locales work as documented', async (t) => {
  const cases: [string, unknown][] = [
    [
      `return [Buffer.from('aGk=', 'base64').toString(), Buffer.concat([Buffer.from('a'), Buffer.alloc(1, 'b')]).toString('hex'), Buffer.isBuffer(Buffer.from('')), Buffer.byteLength('é')]`,
      ['hi', '6162', true, 2],
    ],
    [`return [btoa('hi'), atob('aGk=')]`, ['aGk=', 'hi']],
    [
      `const u = new URL('/p?a=1', 'https://x.y'); u.searchParams.append('b', '2 3'); return [u.href, [...u.searchParams], new URLSearchParams({ c: 'd' }).toString()]`,
      [
        'https://x.y/p?a=1&b=2+3',
        [
          ['a', '1'],
          ['b', '2 3'],
        ],
        'c=d',
      ],
    ],
    [`return new TextDecoder().decode(new TextEncoder().encode('é'))`, 'é'],
    [
      `return [new Date(0).toISOString(), typeof Date.now(), new Date() instanceof Date, new Date(2020, 0, 1).getTimezoneOffset()]`,
      ['1970-01-01T00:00:00.000Z', 'number', true, 0],
    ],
    [`return [Math.random() < 1, Math.max(1, 2)]`, [true, 2]],
    [
      `return [new Date().constructor.name, Error.name, /a/.constructor.name, Function.name]`,
      ['Date', 'Error', 'RegExp', 'Function'],
    ],
    [
      `return [(1234.5).toLocaleString('de-DE'), new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR' }).format(2), new Date(0).toLocaleDateString('en-GB')]`,
      ['1.234,5', '€2.00', '01/01/1970'],
    ],
    [
      `const q = require('querystring'); return [q.parse('a=1&a=2&b=%20'), q.stringify({ x: ['1', '2'] })]`,
      [{ a: ['1', '2'], b: ' ' }, 'x=1&x=2'],
    ],
    [
      `const u = require('util'); return [u.format('%s-%j', 'a', { b: 1 }), u.inspect({ a: { b: { c: { d: 1 } } } }), u.isDeepStrictEqual([1], [1]), await u.promisify((x, done) => done(null, x + 1))(1)]`,
      ['a-{"b":1}', '{ a: { b: { c: [Object] } } }', true, 2],
    ],
    [
      `const { URL: U, URLSearchParams: P } = require('node:url'); const { Buffer: B } = require('buffer'); return [U === URL, P === URLSearchParams, B === Buffer]`,
      [true, true, true],
    ],
    [
      `return [globalThis === global, self === global, typeof require, typeof module, typeof exports]`,
      [true, true, 'function', 'object', 'object'],
    ],
    [
      `const seen = []; setTimeout((a) => seen.push(a), 5, 'late'); const id = setInterval(() => seen.push('tick'), 1); await new Promise((r) => setTimeout(r, 20)); clearInterval(id); const ticks = seen.filter((s) => s === 'tick').length; await new Promise((r) => setImmediate(r)); return [seen.includes('late'), ticks > 0, typeof id, clearTimeout(undefined)]`,
      [true, true, 'number', null],
    ],
    [
      `const order = []; queueMicrotask(() => order.push(2)); order.push(1); await null; return order`,
      [1, 2],
    ],
    [
      `class A { #x = 1; get x() { return this.#x } static y = 2 } const { a, ...rest } = { a: 1, b: 2n, c: 3 }; return [new A().x, A.y, a ?? 0, String(rest.b), /(?<y>\\d+)/.exec('a12').groups.y, [..."ab"].at(-1)]`,
      [1, 2, 1, '2', '12', 'b'],
    ],
    [
      `const e = new Error('x', { cause: 'y' }); return [e.cause, e.stack === '' || e.stack === undefined || typeof e.stack]`,
      ['y', true],
    ],
    [`return "import(" + 'eval(' + \`<!-- -->\` + /-->/.test('-->')`, 'import(eval(<!-- -->true'],
    [
      `const h = new Headers({ B: '2', a: 1 }); h.append('a', 'x'); return [[...h], h.get('A'), h.has('c')]`,
      [
        [
          ['a', '1, x'],
          ['b', '2'],
        ],
        '1, x',
        false,
      ],
    ],
    [
      `const d = { a: [1, new Date(0), { b: null }], m: new Map([['k', new Set([2])]]), f: new Float64Array([1.5]), e: new TypeError('t') }; d.self = d; const c = structuredClone(d); return [c !== d && c.self === c, c.a, c.m.get('k').has(2), c.f[0], c.f !== d.f, c.e.name, (() => { try { structuredClone(() => 1) } catch (e) { return e.name } })()]`,
      [true, [1, '1970-01-01T00:00:00.000Z', { b: null }], true, 1.5, true, 'TypeError', 'TypeError'],
    ],
    [
      `const seen = []; const t = new EventTarget(); t.addEventListener('a', (e) => seen.push(e.type), { once: true }); t.addEventListener('a', { handleEvent: (e) => e.preventDefault() }); return [t.dispatchEvent(new Event('a', { cancelable: true })), t.dispatchEvent(new Event('a')), seen]`,
      [false, true, ['a']],
    ],
    [
      `const c = new AbortController(); const seen = []; c.signal.addEventListener('abort', () => seen.push(1)); c.abort(); c.abort(); return [c.signal.aborted, seen.length, c.signal.reason.name]`,
      [true, 1, 'AbortError'],
    ],
    [
      `const r = new Response('{"a":1}', { status: 201 }); return [r.ok, (await r.clone().json()).a, await r.text(), r.bodyUsed]`,
      [true, 1, '{"a":1}', true],
    ],
  ]
  let at = 0
  for await (const found of evaluateEach(cases.map(([body]) => body))) {
    const [body, expected] = cases[at++]!
    t.same(found, expected, body.slice(0, 90))
  }
})

/** What is the same here and there: expressions, for their JSON. */
const ALIKE = [
  ...['utf8', 'utf16le', 'ucs2', 'latin1', 'binary', 'ascii', 'hex', 'base64', 'base64url', 'UTF-8'].flatMap(
    (name) => [
      `Buffer.from('4a6b é漢', '${name}').toString('hex')`,
      `Buffer.from([0, 255, 128, 65, 66, 67]).toString('${name}')`,
      `[Buffer.byteLength('4a6bé', '${name}'), Buffer.isEncoding('${name}')]`,
    ],
  ),
  'Buffer.from([1, 2, 3])',
  '[...Buffer.from(new Uint16Array([257, 2]))]',
  'Buffer.from({ type: "Buffer", data: [7] })[0]',
  'Buffer.from({ length: 2, 0: 5, 1: 6 })',
  'Buffer.from(new String("boxed")).toString()',
  'Buffer.from(new ArrayBuffer(8), 2, 3).length',
  'new Buffer("old").toString() + Buffer("older") + new Buffer(2).length',
  'Buffer.alloc(5, "ab").toString() + Buffer.alloc(3, 1).toString("hex") + Buffer.alloc(2, "/w==", "base64")[0]',
  'Buffer.concat([Buffer.from("a"), new Uint8Array([98])], 4).toString("hex")',
  'Buffer.concat([Buffer.from("abc")], 2).toString()',
  '[Buffer.compare(Buffer.from("a"), Buffer.from("b")), Buffer.from("b").compare(Buffer.from("xbz"), 1, 2)]',
  '(() => { const b = Buffer.from("abcdef"); b.slice(1, 3)[0] = 65; b.subarray(-1)[0] = 90; return b.toString() })()',
  '(() => { const b = Buffer.from("abcdef"); return [b.map((x) => x + 1).toString(), b.filter((x) => x > 98) instanceof Buffer, b.slice(-2).toString()] })()',
  '(() => { const b = Buffer.alloc(24); b.writeUInt32BE(1, 0); b.writeInt16LE(-2, 4); b.writeDoubleLE(1.5, 6); b.writeUIntBE(0x123456, 14, 3); b.writeBigInt64BE(-3n, 16); return [b.toString("hex"), b.readUInt32BE(), b.readInt16LE(4), b.readDoubleLE(6), b.readUintBE(14, 3), String(b.readBigInt64BE(16)), b.readInt8(4), b.readFloatLE(1)] })()',
  '(() => { const b = Buffer.from("0102030405060708", "hex"); return [b.swap16().toString("hex"), b.swap64() === b, b.toString("hex")] })()',
  '(() => { const b = Buffer.from("hello hello"); return [b.indexOf("lo"), b.indexOf("lo", 5), b.lastIndexOf("he"), b.includes("zz"), b.indexOf(Buffer.from("o")), b.indexOf(104, 1), b.equals(Buffer.from("hello hello"))] })()',
  '(() => { const b = Buffer.alloc(6); return [b.write("abc", 1), b.write("ff", 4, "hex"), b.fill("xy", 0, 2).toString("latin1"), Buffer.from("zz").copy(b, 2), b.toString("utf8", 1, 4), b.copy(new Uint8Array(3), 0, 1, 3)] })()',
  'JSON.stringify({ b: Buffer.from("a") }) + Buffer.from("b") + `${Buffer.from("c")}` + [Buffer.from("d")]',
  '[Buffer.isBuffer(Buffer.from("a")), Buffer.isBuffer(new Uint8Array(1)), Buffer.from("a") instanceof Uint8Array, Buffer.of(1, 2).length, Buffer.name]',
  '[...Buffer.from("ab").entries()].concat([...Buffer.from("ab").keys()], [...Buffer.from("ab")])',
  ...[
    'Buffer.alloc("1")',
    'Buffer.from(1)',
    'Buffer.from(null)',
    'Buffer.from("a", "none")',
    'Buffer.alloc(1).readInt8(2)',
    'Buffer.alloc(1).writeUInt8(256)',
    'Buffer.concat("a")',
    'Buffer.from("a").equals("a")',
    'new URL("x")',
    'new URLSearchParams([["a"]])',
    'new TextDecoder("none")',
    'atob("%")',
    'btoa("漢")',
  ].map(
    (text) =>
      `(() => { try { return ${text} } catch (e) { return [e.constructor.name === 'DOMException' ? 'Error' : e.constructor.name, e instanceof Error] } })()`,
  ),
  '(() => { const u = new URL("https://u:p@h.example:8443/a/../b?x=1&y=%20#f"); return [u, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, String(u)] })()',
  '(() => { const u = new URL("https://h/p?x=1"); u.searchParams.append("é", "a b"); u.hash = "z"; u.port = "99"; u.pathname = "/q r"; const first = u.href; u.search = "?n=2"; return [first, u.searchParams.get("n"), u.searchParams.get("x"), u.href] })()',
  '[URL.canParse("x"), URL.canParse("/x", "http://a"), new URL("/x", new URL("http://a/b")).href, new URL("//é.example").href]'.replace(
    '"//é.example"',
    '"http://é.example"',
  ),
  '(() => { const p = new URLSearchParams("b=2&a=1&a=3"); p.sort(); p.delete("b"); const seen = []; p.forEach((v, k, q) => seen.push(k + v + (q === p))); return [p.toString(), seen, p.getAll("a"), p.has("a"), [...p], [...p.keys()], [...p.values()], p.size, p.get("z")] })()',
  '[new URLSearchParams({ a: 1, b: "x y" }), new URLSearchParams([["c", 2]]), new URLSearchParams(new Map([["d", "e"]])), new URLSearchParams("?f=g")].map(String)',
  'Object.prototype.toString.call(new URL("http://a")) + Object.prototype.toString.call(new URLSearchParams()) + Object.prototype.toString.call(new TextDecoder())',
  ...['utf-8', 'utf-16le', 'utf-16be', 'gbk', 'shift_jis', 'latin1'].map(
    (label) =>
      `(() => { const d = new TextDecoder('${label}'); return [d.encoding, d.fatal, d.ignoreBOM, d.decode(new Uint8Array([0x82, 0xa0, 65, 0]), { stream: true }) + d.decode(new Uint8Array([66, 0x81]).buffer) + d.decode()] })()`,
  ),
  '(() => { const target = new Uint8Array(4); return [new TextEncoder().encodeInto("aé漢", target), [...target], [...new TextEncoder().encode("é")], new TextEncoder().encoding] })()',
  'new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 65])).length',
  ...[
    '[{ a: { b: { c: { d: 1 } } }, e: [1, [2, [3, [4]]]] }]',
    '["%s is %d and %i, %f, %j, %o", "a", 1.5, 2.7, "3.1", { x: [1] }, 5, "more"]',
    '["%%s %s", "a"]',
    '[new Map([["a", { b: 1 }]]), new Set([1, "b"])]',
    '[Buffer.from("hi"), new Uint8Array(2), new Float64Array([1.5])]',
    '[/a/g, new Date(0), null, undefined, 1n, Symbol("s"), -0, "text"]',
    '[() => 1, function named() {}, class Some {}]',
    '[new (class Thing { a = 1 })(), Object.create(null), [undefined, , 3], { get a() { return 1 }, set b(v) {} }]',
    '[Object.assign([1], { k: 2 }), { [Symbol("k")]: 1, "a-b": 2 }, "b"]',
    '[(() => { const a = { b: {} }; a.b.c = a; return a })()]',
    '[Array(150).fill(7)]',
    '["%s", { a: { b: 1 } }]',
    '[{ s: "x\'y", t: `multi\nline` }]',
    '["a", 1, { b: 2 }]',
    '[1, "a"]',
    '["%d", "x"]',
    '["100%", 1]',
    '["%c styled", "css"]',
  ].map((values) => `require('util').format(...${values})`),
  'require("util").inspect({ a: { b: { c: { d: 1 } } } }, { depth: 0 }) + require("util").inspect({ a: { b: { c: { d: { e: {} } } } } }, { depth: null })',
  '[[{ a: [1, new Map([[1, { b: 2 }]])] }, { a: [1, new Map([[1, { b: 2 }]])] }], [new Set([{ a: 1 }]), new Set([{ a: 1 }])], [[1], { 0: 1 }], [NaN, NaN], [0, -0], [new Date(1), new Date(1)], [new Date(1), new Date(2)], [/a/g, /a/i], [Buffer.from("a"), Buffer.from("a")], [{ a: undefined }, {}], [new Error("a"), new Error("b")], [[1, 2], [1, 3]]].map(([a, b]) => require("util").isDeepStrictEqual(a, b))',
  'require("querystring").stringify({ a: [1, "b c"], d: true, e: null }) + JSON.stringify(require("querystring").parse("a=1&a=2&b", "&", "="))',
]

t.test("what stands for Node's own does the same", async (t) => {
  const { createRequire } = await import('node:module')
  const list = `[${ALIKE.map((text) => `() => (${text})`).join(',\n')}].map((work) => { try { return JSON.stringify(work() ?? null) } catch (e) { return 'threw ' + e.message } })`
  const expected = new Function('require', `'use strict'; return ${list}`)(
    createRequire(import.meta.url),
  ) as unknown[]
  const found = (await evaluate(`return ${list}`)) as unknown[]
  t.equal(found.length, ALIKE.length)
  for (const [at, text] of ALIKE.entries()) t.equal(found[at], expected[at], text.slice(0, 120))
})

t.test('bundles of the owner are evaluated in the realm, once in each invocation', async (t) => {
  const bodies: [string, unknown][] = [
    ["return require('greet').greet('you')", "hello you import('x')"],
    ["return require('@acme/deep').twice", "hello a import('x')"],
    ["require('@acme/deep').keep.x = 1; return require('@acme/deep').keep.x", 1],
    ["return require('@acme/deep').keep.x ?? 'gone'", 'gone'],
    ["try { require('../greet') } catch (e) { return e.code }", 'MODULE_NOT_FOUND'],
    ["try { require('./greet') } catch (e) { return e.code }", 'MODULE_NOT_FOUND'],
    ["try { require('@acme/../greet') } catch (e) { return e.code }", 'MODULE_NOT_FOUND'],
    ["try { require('broken') } catch (e) { return e.message }", 'Unexpected token'],
    ["try { require('axios') } catch (e) { return e.code }", 'MODULE_NOT_FOUND'],
  ]
  let at = 0
  for await (const found of evaluateEach(bodies.map(([body]) => body))) {
    const [body, expected] = bodies[at++]!
    t.same(found, expected, body)
  }
})

t.test('what cannot be said in our JSON is a failure of the code, not of the host', async (t) => {
  const cases: [string, RegExp][] = [
    ['return { raw: "x".repeat(1024 * 1024) }', /The result has 1048578 bytes; at most 1048576 are allowed/],
    ['let a = 1; for (let i = 0; i < 70; i++) a = [a]; return { raw: a }', /raw is refused .* 64/],
    ['return { raw: JSON.parse(\'{"__proto__":1}\') }', /raw is refused/],
    ['return { tokenize: "\\ud800" }', /tokenize is refused/],
  ]
  for (const [body, message] of cases) {
    const { outcome } = await invoke(`module.exports = async () => { ${body} }`)
    t.match(outcome, { error: { code: 'reactor_failed', status: 500, errors: { error: [message] } } }, body)
  }
  t.equal(
    await evaluate('console.log("\\ud800"); return "x".repeat(1024 * 1024 - 2)'),
    'x'.repeat(1024 * 1024 - 2),
    'and what just fits, fits',
  )
})

t.test('formats of dates take the present of the vault, not of the machine', async (t) => {
  const frozen = createReactorPool({
    node,
    confinement: await confine(node),
    settings: { time: () => ({ frozenMs: Date.UTC(2031, 1, 3, 4, 5, 6) }) },
  })
  const code = `module.exports = async () => {
    const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'short', timeStyle: 'short' })
    const parts = (list) => list.map(({ value }) => value).join('')
    return { raw: [
      new Date().toLocaleString('en-GB', { dateStyle: 'short', timeStyle: 'short' }),
      new Date().toLocaleDateString('en-GB'),
      new Date().toLocaleTimeString('en-GB'),
      format.format(),
      [undefined].map(format.format)[0],
      parts(format.formatToParts()),
      Intl.DateTimeFormat('en-GB').format(undefined),
      format.formatRange(new Date(), Date.now()),
      format.format(0),
      parts(format.formatToParts(new Date(0))),
      format.format === format.format,
    ] }
  }`
  const { outcome } = await frozen.run({
    tenant: 1,
    reactor: 'r',
    code,
    args: {},
    configuration: {},
    client: null,
  })
  const now = '03/02/2031, 04:05'
  const then = '01/01/1970, 00:00'
  t.same(outcome, {
    kind: 'result',
    raw: [now, '03/02/2031', '04:05:06', now, now, now, '03/02/2031', now, then, then, true],
  })
  await frozen.close()
})
