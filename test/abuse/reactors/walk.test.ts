/** Tests that reactor code finds no object of Node, and cannot change an object that two runs share. */
import { readFileSync } from 'node:fs'
import { createContext, runInContext } from 'node:vm'
import t from 'tap'
import { confineThisNode, findGuestFile } from '../../../src/reactor/confinement.js'
import facadeTexts from '../../../src/reactor/guest/facade-texts.js'
import { ERROR_CLASSES_SOURCE } from '../../../src/reactor/guest/modules.js'
import { DEFAULT_LIMITS } from '../../../src/reactor/settings.js'
import { createReactorPool } from '../../../src/reactor/start.js'
import { collectLanguage, type WalkArgs, type WalkReport, walk } from './walk.js'

t.setTimeout(400_000)

const SHARED =
  'crypto buffer path path/posix querystring string_decoder url util/types process node-fetch coffer/errors'
const BUILTINS = [...SHARED.split(' '), ...Object.keys(facadeTexts)]
const ENCODINGS = ['utf-8', 'utf-16le', 'utf-16be', 'gbk', 'shift_jis', 'euc-kr', 'latin1', 'windows-1252']

/**
 * Expressions for objects that the walk does not find when it calls functions with its own arguments. Each expression
 * is evaluated in a separate walk.
 */
const SEEDS = [
  'globalThis, this, require, module, exports, req, arguments, async () => {}, function* () {}, async function* () {}',
  ...BUILTINS.map((name) => `require(${JSON.stringify(name)})`),
  'new URL("http://u:p@a:8/b?c=d#e"), new URL("http://a?b=c").searchParams, new URL("http://a?b").searchParams.entries()',
  'new URLSearchParams({ a: 1 }), new URLSearchParams("a=b")[Symbol.iterator](), new URLSearchParams([["a", "b"]]).keys()',
  'Buffer.from("abc"), Buffer.from("abc").subarray(1), Buffer.from("abc").slice(1), Buffer.from("abc").map((x) => x), Buffer.from("a").entries()',
  'Buffer.from("abc").toJSON(), new Buffer("abc"), Buffer("abc"), Buffer.of(1, 2), Buffer.concat([Buffer.from("a")]), new (class extends Buffer {})(2)',
  'new TextEncoder().encode("a"), new TextEncoder().encodeInto("a", new Uint8Array(2)), new TextEncoder()',
  'new Headers({ a: "b" }), new Headers({ a: "b" }).entries(), new Response("a"), new Request("http://a", { method: "POST", body: "b" })',
  'new Response("a").arrayBuffer(), new Response("a").buffer(), new Response("a").text(), new Response("[{}]").json(), fetch("http://localhost/")',
  'new Response("a").body, new Request("http://a", { method: "POST", body: "b" }).body, new Response("a").body.getReader(), new Response("a").body.getReader().read(), new Response("a").body.getReader().closed',
  'new ReadableStream(), new ReadableStream().tee(), new ReadableStream().values(), new ReadableStream()[Symbol.asyncIterator]().next(), ReadableStream.from([1]), new Response(new ReadableStream()).body',
  '(() => { let given; new ReadableStream({ start(controller) { given = controller } }); return given })(), new (new ReadableStream().getReader().constructor)(new ReadableStream()), (class extends ReadableStream {}), new (class extends ReadableStream {})()',
  'new WritableStream(), new WritableStream().getWriter(), new WritableStream().getWriter().closed, new WritableStream().getWriter().ready, new WritableStream().close(), new TransformStream(), new TransformStream().readable, new TransformStream().writable, new TransformStream().readable.getReader(), ReadableStream.from([1]).pipeTo(new WritableStream()), ReadableStream.from([1]).pipeThrough(new TransformStream())',
  '(() => { let given; new WritableStream({ start(controller) { given = controller } }); return [given, given.signal] })(), (() => { let given; new TransformStream({ start(controller) { given = controller } }); return given })(), new (class extends WritableStream {})(), new (class extends TransformStream {})()',
  'new Blob(["a"], { type: "b" }), new File(["a"], "b"), new Blob(["a"]).slice(), new Blob(["a"]).stream(), new Blob(["a"]).text(), new Blob(["a"]).arrayBuffer(), new Response(new Blob(["a"])).blob()',
  '(() => { const f = new FormData(); f.append("a", "b"); f.append("c", new Blob(["d"])); return f })(), new Response(new FormData()).formData(), new FormData().entries(), new Response("a=b", { headers: { "content-type": "application/x-www-form-urlencoded" } }).formData()',
  'process, process.env, process.versions, process.stdout, process.hrtime(), process.memoryUsage(), performance, performance.toJSON(), new DOMException("a", "AbortError"), AbortSignal.any([AbortSignal.abort()]), AbortSignal.timeout(1), AbortSignal.timeout(1e6)',
  'new Promise((r) => process.nextTick((...all) => r(all), {})), require("timers/promises").setTimeout(1, {}), require("timers/promises").setInterval(1), require("timers/promises").scheduler.wait(1)',
  ...instances(
    'events',
    'new m()',
    'm.once(new m(), "a")',
    'm.on(new m(), "a")',
    'm.on(new m(), "a").next()',
  ),
  ...instances('events', '(() => { const e = new m(); e.on("a", () => {}); e.emit("a"); return e })()'),
  ...instances('stream', 'new m()', 'new m.Readable({ read() {} })', 'new m.Writable({ write() {} })'),
  ...instances('stream', 'new m.Duplex({ read() {} })', 'new m.Transform()', 'new m.PassThrough()'),
  ...instances('stream', 'm.Readable.from(["a"])', 'm.Readable.from(["a"])[Symbol.asyncIterator]()'),
  ...instances('stream', 'm.pipeline(m.Readable.from(["a"]), new m.PassThrough(), () => {})'),
  ...instances('stream', 'm.finished(new m.PassThrough(), () => {})', 'm.Readable.from(["a"]).map((x) => x)'),
  ...instances('stream', '(() => { try { m.Readable.from(1) } catch (e) { return e } })()'),
  ...instances(
    'stream',
    'new Promise((r) => { const s = new m.Readable({ read: 1 }); s.on("error", r).resume() })',
  ),
  ...instances(
    'zlib',
    'm.gzipSync("a")',
    'm.gunzipSync(m.gzipSync("a"))',
    'm.createGzip()',
    'm.createUnzip()',
  ),
  ...instances('zlib', 'new Promise((r) => m.gunzip("a", (...all) => r(all)))', 'm.brotliCompressSync("a")'),
  ...instances('zlib', '(() => { try { m.inflateSync("a") } catch (e) { return e } })()', 'new m.Gzip()'),
  ...instances(
    'http',
    'new m.IncomingMessage(new Response("a"), new Uint8Array(1), m.request("http://localhost/"))',
    'm.request("http://localhost/").on("error", () => {})',
    'new m.Agent()',
    'm.globalAgent',
  ),
  ...instances(
    'http',
    'new Promise((r) => m.get("http://localhost/").on("error", r).on("socket", (s) => r(s)))',
  ),
  ...instances('https', 'm.get({ host: "localhost", path: "/" }).on("error", () => {})', 'm.globalAgent'),
  ...instances(
    'async_hooks',
    'new m.AsyncLocalStorage()',
    'new m.AsyncResource("a")',
    'm.AsyncResource.bind(() => {})',
  ),
  ...instances(
    'async_hooks',
    'm.AsyncLocalStorage.snapshot()',
    '(() => { const s = new m.AsyncLocalStorage(); s.enterWith({}); return s })()',
  ),
  ...instances('async_hooks', 'new m.AsyncLocalStorage().run({}, async () => { await null; return {} })'),
  ...instances(
    'assert',
    'new m.AssertionError({ message: "a" })',
    'm.rejects(async () => { throw 1 })',
    '(() => { try { m(0) } catch (e) { return e } })()',
  ),
  ...instances(
    'util',
    'm.promisify(setTimeout)(1)',
    'm.callbackify(async () => 1)',
    'm.debuglog("a")',
    'm.promisify((a) => a())()',
  ),
  ...instances(
    'string_decoder',
    'new m.StringDecoder("utf8")',
    'new m.StringDecoder("base64").write(Buffer.from("a"))',
  ),
  ...instances(
    'url',
    'm.parse("http://a/?b=c", true)',
    'm.pathToFileURL("/a")',
    'm.urlToHttpOptions(new URL("http://a"))',
  ),
  ...instances('path', 'm.parse("/a/b.c")', 'm.resolve("a")'),
  ...instances(
    'stream/consumers',
    'm.text(["a"])',
    'm.json(["{}"])',
    'm.buffer(["a"])',
    'm.blob(["a"])',
    'm.arrayBuffer(["a"])',
  ),
  'new AbortController(), new AbortController().signal, new EventTarget(), new Event("a"), structuredClone({ a: new Map([[1, new Set([new Date()])]]) })',
  'structuredClone([new Error("x"), /a/g, new Uint8Array(1), new DataView(new ArrayBuffer(1))])',
  ...['createHash("sha256")', 'createHash("sha256").update("a").copy()', 'createHmac("sha256", "k")'].map(
    crypto,
  ),
  ...[
    'createSecretKey(Buffer.from("k"))',
    'createSign("sha256")',
    'createVerify("sha256")',
    'getHashes()',
  ].map(crypto),
  crypto('createCipheriv("aes-256-gcm", Buffer.alloc(32), Buffer.alloc(12))'),
  crypto('createDecipheriv("aes-256-gcm", Buffer.alloc(32), Buffer.alloc(12))'),
  crypto('generateKeyPairSync("ec", { namedCurve: "P-256" })'),
  crypto('generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" })'),
  crypto('createECDH("prime256v1")'),
  'require("crypto").KeyObject, require("crypto").createSecretKey(Buffer.from("k")) instanceof require("crypto").KeyObject',
  crypto('randomBytes(3)'),
  'new Promise((r) => require("crypto").randomBytes(3, (...all) => r(all)))',
  'new Promise((r) => require("crypto").pbkdf2("a", "b", 1, 1, "sha1", (...all) => r(all)))',
  'new Promise((r) => require("crypto").pbkdf2("a", "b", 1, -1, "sha1", (...all) => r(all)))',
  'crypto.subtle.digest("SHA-256", new Uint8Array(1)), crypto.getRandomValues(new Uint8Array(1)), crypto.subtle.digest("none", new Uint8Array(1))',
  'crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt", "decrypt"]), crypto.subtle.importKey("raw", new Uint8Array(1), "x", false, [])',
  'crypto.subtle.generateKey({ name: "RSA-PSS", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" }, true, ["sign"])',
  'crypto.subtle.importKey("raw", new Uint8Array(16), "HMAC", true, ["sign"]), crypto.subtle.importKey("raw", new Uint8Array(16), { name: "HMAC", hash: "SHA-1" }, true, ["sign"]).then((k) => crypto.subtle.exportKey("jwk", k))',
  'new Intl.Segmenter("en", { granularity: "word" }).segment("a b"), [...new Intl.Segmenter("en").segment("a")], new Intl.Locale("en"), new Intl.PluralRules("en")',
  'new Intl.NumberFormat("en").formatToParts(1), new Intl.DateTimeFormat("en").format, new Intl.DisplayNames("en", { type: "region" }), new Intl.ListFormat("en"), new Intl.RelativeTimeFormat("en"), new Intl.Collator("en").compare, Intl.DateTimeFormat.call(Object.create(Intl.DateTimeFormat.prototype)), Intl.supportedValuesOf("unit")',
  'Proxy.revocable({}, {}), Promise.withResolvers?.(), (() => {}).bind(), new WeakMap(), "a".matchAll(/a/g), /(?<a>b)/d.exec("b"), Object.getOwnPropertyDescriptor(Map.prototype, "size"), (function () { return arguments })(1)',
  'globalThis.Iterator?.from?.({ next() {} }), [1].values().map?.((x) => x), globalThis.Iterator?.prototype, [1].values().drop?.(0), Array.fromAsync?.([1])',
  'setTimeout(() => {}, 1), setInterval(() => {}, 1e6), setImmediate(() => {}), require("querystring").parse("a=b&a=c"), require("util").promisify((done) => done(null, 1))()',
  'new (require("coffer/errors").BadRequestError)("x"), require("node-fetch"), Function("return this")(), (0, eval)("this"), new Function("return arguments")(1)',
  'Error.prepareStackTrace, Error.captureStackTrace, Error.stackTraceLimit, (() => { const o = {}; Error.captureStackTrace?.(o); return o })(), new Error("a", { cause: {} }), new AggregateError([{}])',
  // The walk visits the expressions at the end of this list first.
  ...ENCODINGS.flatMap((label) =>
    [{}, { fatal: true }, { ignoreBOM: true }].map(
      (options) =>
        `(() => { const d = new TextDecoder('${label}', ${JSON.stringify(options)}); d.decode(new Uint8Array([65, 66]), { stream: true }); return d })()`,
    ),
  ),
]

/** Each expression gets the module under the name `m`. */
function instances(module: string, ...expressions: string[]): string[] {
  return expressions.map((each) => `((m) => ${each})(require(${JSON.stringify(module)}))`)
}

function crypto(call: string): string {
  return `require("crypto").${call}`
}

/** Each of these expressions throws in a different place. */
const FAILURES =
  `Buffer.alloc('x'); atob('%'); new URL('x'); new TextDecoder('x'); decodeURI('%'); Buffer.from(5); null.x
  Buffer.alloc(1).readInt8(9); new URLSearchParams([1]); URLSearchParams.prototype.get.call({}); Buffer.from('a', 'zzz')
  new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])); Buffer.concat(1); Buffer.allocUnsafe(1e20); new Request('x')
  new TextDecoder('utf-16le', { fatal: true }).decode(new Uint8Array([0, 0xd8])); new Headers([1]); setTimeout(1); crypto.getRandomValues(1)
  require('querystring').parse(1, 1); new Intl.NumberFormat('x-x-x'); structuredClone(Symbol()); require('none'); new Array(-1)
  new ReadableStream({ pull: 1 }); ReadableStream.prototype.tee.call({}); new (new ReadableStream().getReader().constructor)({}); new Response(new ReadableStream().tee().pop().getReader()).json(1)
  new WritableStream({ write: 1 }); WritableStream.prototype.getWriter.call({}); new (new WritableStream().getWriter().constructor)({}); new WritableStream({}, { highWaterMark: -1 }); new TransformStream({ flush: 1 }); Object.getOwnPropertyDescriptor(TransformStream.prototype, 'readable').get.call({})
  (() => { const s = new WritableStream();s.getWriter();s.getWriter() })(); new ReadableStream().pipeThrough(1); (() => { let c;new WritableStream({ start(given) { c = given } });return new c.constructor({}) })()
  (() => { let c;new ReadableStream({ start(given) { c = given } });return new c.constructor({}) })(); (() => { const s = new ReadableStream();s.getReader();s.getReader() })()
  require('zlib').gunzipSync(1); require('zlib').inflateSync('x'); require('zlib').createGzip({ level: 99 }); require('zlib').gzipSync('x', { windowBits: 99 })
  require('fs'); require('path').join(1); require('url').fileURLToPath(1); require('http').request('x'); require('http').request({ cert: 'x' }); require('assert').fail()
  new require('string_decoder').StringDecoder('x'); new (require('stream').Readable)().read(); process.binding('x'); process.nextTick(1); new FormData(1); new Blob(1); new File()
  require('crypto').createHash('x'); require('crypto').createSign('x'); require('crypto').randomInt(1, 0); (function f() { f() })()
  require('crypto').createCipheriv('x', 'y', 'z'); require('crypto').createPrivateKey('x'); crypto.getRandomValues(new Uint8Array(70000))
  (function f() { try { f() } finally { new TextDecoder('gbk').decode(new Uint8Array(9)) } })(); (function f() { return [Buffer.from('a').toString('hex'), f()] })()`
    .split(/;\s+|\n/)
    .map((text) => text.trim())

/**
 * Handles errors of streams. Without these handlers, an error event or an error in a callback of a stream would end
 * the walk.
 */
const KEEP_ERRORS = `const { nextTick } = process
  process.nextTick = (work, ...args) => nextTick((...given) => { try { work(...given) } catch {} }, ...args)
  const { prototype } = require('events')
  const { emit } = prototype
  prototype.emit = function (name, ...rest) {
    return name === 'error' && this.listenerCount('error') === 0 ? false : Reflect.apply(emit, this, [name, ...rest])
  }`

const CODE = `module.exports = async function (req) {
  ${KEEP_ERRORS}
  const language = (${collectLanguage})(globalThis)
  const roots = [[emit, 'emit'], [nextTick, 'nextTick']]
  const add = (path, make) => { try { for (const value of make()) roots.push([value, path]) } catch (e) { roots.push([e, path + ' throws']) } }
  ${FAILURES.map((seed) => `add(${JSON.stringify(seed)}, () => [${seed}])`).join('\n  ')}
  ${SEEDS.map((seed) => `add(${JSON.stringify(seed)}, () => [${seed}])`).join('\n  ')}
  return { raw: await (${walk})(req, roots, language, module.exports) }
}`

/** Returns the source of the program that child processes run. The walk may find only functions of this program. */
function readProgram(): string {
  const file = readFileSync(findGuestFile(), 'utf8')
  const script = /new Script\(("(?:[^"\\]|\\.)*")/.exec(file)?.[1]
  return script === undefined ? file : JSON.parse(script)
}

/** Names of native functions that the lockdown of SES adds or replaces. */
const SHIMS = `transfer transferToFixedLength transferToImmutable sliceToImmutable harden value`
  .split(' ')
  .concat('get immutable', 'get detached')

function readNatives(): string[] {
  const realm = createContext({})
  const language = runInContext(`(${collectLanguage})(globalThis)`, realm) as Map<object, string>
  const texts = [...language.keys()]
    .filter((value) => typeof value === 'function')
    .map((work) => Function.prototype.toString.call(work))
  return [...new Set([...texts, ...SHIMS.map((name) => `function ${name}() { [native code] }`)])]
}

t.test(
  'reactor code reaches no object of Node, no foreign global object and no mark of an earlier run',
  async (t) => {
    const pool = createReactorPool({
      confinement: await confineThisNode(),
      settings: {
        limits: {
          ...DEFAULT_LIMITS,
          timeMs: 60_000,
          memoryMiB: 512,
          calls: 100_000,
          callBytes: 2 ** 28,
          logBytes: 2 ** 28,
        },
      },
    })
    t.teardown(() => pool.close())
    const mark = `mark-${process.pid}`
    let answers = 0
    const client = async () => {
      answers += 1
      if (answers % 5 === 0) throw new Error('refused')
      return { id: 'x', data: [{ answers }, null], nested: { list: [[]] } }
    }
    const given: Omit<WalkArgs, 'marks'> = {
      sources: [readProgram(), ERROR_CLASSES_SOURCE, CODE, ...Object.values(facadeTexts)],
      natives: readNatives(),
      mark: [...mark].reverse().join(''),
      maxObjects: 200_000,
      maxCalls: 3_000_000,
    }
    for (const marks of ['leave', 'find'] as const) {
      const { outcome, durationMs } = await pool.run({
        tenant: 1,
        reactor: 'walk',
        code: CODE,
        args: { ...given, marks },
        configuration: { KEY: 'value' },
        client,
      })
      if (outcome.kind === 'failure') {
        t.fail(`${marks}: ${outcome.error.message} ${JSON.stringify(outcome.error.errors)}`)
        continue
      }
      const { findings, ...counts } = outcome.raw as WalkReport
      t.comment(`Node ${process.versions.node}, ${marks}: ${JSON.stringify({ ...counts, durationMs })}`)
      t.same(findings, [], `${marks}: no findings`)
      t.equal(counts.left, 0, 'the walk has visited every object')
      t.ok(
        counts.objects > 3_000 && counts.calls > 80_000,
        `the walk visited ${counts.objects} objects and made ${counts.calls} calls`,
      )
      if (marks === 'leave') t.ok(counts.marked > 100, `the walk left ${counts.marked} marks`)
    }
  },
)
