/** The built-in modules and globals that reactor code has in addition to the language. */
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { confineThisNode } from '../../src/reactor/confinement.js'
import { createReactorPool } from '../../src/reactor/start.js'

t.setTimeout(300_000)
const confinement = await confineThisNode()
const pool = createReactorPool({ confinement })
t.teardown(() => pool.close())

/** Runs `body` as reactor code in the realm and returns its result. */
async function evaluate(body: string, { used = pool, ...more } = {}): Promise<unknown> {
  const { outcome } = await used.run({
    ...{ tenant: 1, reactor: 'r', args: {}, configuration: {}, client: null, ...more },
    code: `module.exports = async (req) => ({ raw: await (async () => { ${body} })() })`,
  })
  if (outcome.kind === 'failure') return { failed: outcome.error.errors?.error?.[0] ?? outcome.error.message }
  return outcome.raw
}

/** Declarations that the expressions of {@link ALIKE} use. */
const TOOLS = `
  const tick = (ms = 1) => new Promise((resolve) => setTimeout(resolve, ms))
  const failure = async (work) => { try { await work(); return 'no failure' } catch (error) { return [error.name, error.code] } }
  const all = async (stream) => { const chunks = []; for await (const chunk of stream) chunks.push(String(chunk)); return chunks }`

const EVENTS = [
  '(() => { const E = require("events"); const e = new E(); const seen = []; e.once("a", (x) => seen.push(x)); e.prependListener("a", () => seen.push("first")); e.emit("a", 1); e.emit("a", 2); return [seen, e.listenerCount("a"), e.eventNames(), E.EventEmitter === E, e.emit("b")] })()',
  'failure(() => new (require("events"))().emit("error", new RangeError("x")))',
  '(async () => { const { EventEmitter, once } = require("node:events"); const e = new EventEmitter(); setTimeout(() => e.emit("a", 1, 2), 1); const got = await once(e, "a"); setTimeout(() => e.emit("error", new TypeError("x")), 1); return [got, await failure(() => once(e, "a")), e.listenerCount("error")] })()',
  '(async () => { const { EventEmitter, on } = require("events"); const e = new EventEmitter(); setTimeout(() => { for (const n of [1, 2, 3]) e.emit("a", n) }, 1); const seen = []; for await (const [n] of on(e, "a")) { seen.push(n); if (n === 3) break } return [seen, e.listenerCount("a"), e.listenerCount("error")] })()',
  '(async () => { const { EventEmitter, on } = require("events"); const e = new EventEmitter(); const c = new AbortController(); setTimeout(() => c.abort(), 1); return failure(async () => { for await (const n of on(e, "a", { signal: c.signal })) return n }) })()',
  '(() => { class A extends require("events") { constructor() { super(); this.n = 1 } } const a = new A(); a.on("x", function () { this.n += 1 }); a.emit("x"); return [a.n, a instanceof require("events")] })()',
]

const STREAMS = [
  '(async () => { const { Readable, Transform, PassThrough } = require("stream"); const { pipeline } = require("stream/promises"); const out = []; const upper = new Transform({ transform(c, e, done) { done(null, String(c).toUpperCase()) }, flush(done) { this.push("!"); done() } }); await pipeline(Readable.from(["a", "b"]), upper, new PassThrough(), async (s) => { for await (const c of s) out.push(String(c)) }); return out.join("") })()',
  '(async () => { const { Writable, finished } = require("stream"); const seen = []; const w = new Writable({ highWaterMark: 16384, write(c, e, done) { seen.push(String(c)); setTimeout(done, 1) }, final(done) { seen.push("final"); done() } }); const full = []; for (let n = 0; n < 3; n++) full.push(w.write("x".repeat(10000))); w.end("z"); await new Promise((r) => finished(w, r)); return [full, seen.length, seen.at(-1), w.writableFinished] })()',
  '(async () => { const { Readable } = require("stream"); const r = new Readable({ read() { this.push("a"); this.push(null) } }); r.setEncoding("utf8"); const seen = []; r.on("data", (c) => seen.push(typeof c, c)); await new Promise((d) => r.on("end", d)); return [seen, r.readableEnded, r.destroyed] })()',
  '(async () => { const { Readable, pipeline } = require("stream"); const r = new Readable({ read() { this.destroy(new RangeError("own")) } }); return new Promise((done) => pipeline(r, async function (s) { for await (const c of s); }, (e) => done([e.name, r.destroyed]))) })()',
  '(async () => { const { Duplex } = require("stream"); const d = new Duplex({ read() {}, write(c, e, done) { this.push(c); done() }, final(done) { this.push(null); done() } }); d.write("a"); d.end("b"); return (await all(d)).join("") })()',
  '(async () => { const { Readable } = require("stream"); const o = Readable.from([{ a: 1 }, { a: 2 }]); const seen = []; for await (const each of o.map((x) => x.a).filter((x) => x > 1)) seen.push(each); return [seen, await Readable.from([1, 2]).toArray(), o.readableObjectMode] })()',
  '(async () => { const s = require("stream"); const old = new s(); class Old extends s.Readable { _read() { this.push(Buffer.from([104, 105])); this.push(null) } } return [typeof s, s.Stream === s, old instanceof s, await all(new Old())] })()',
  '(async () => { const c = require("stream/consumers"); const { Readable } = require("stream"); return [await c.text(Readable.from(["a", "b"])), await c.json(Readable.from(["{\\"a\\":", "1}"])), (await c.buffer(Readable.from([Buffer.from("x")]))).toString()] })()',
  'failure(() => require("stream/promises").pipeline(require("stream").Readable.from(["a"]), new (require("stream").PassThrough)({ transform(c, e, done) { done(new TypeError("own")) } })))',
  '(async () => { const { Readable, addAbortSignal } = require("stream"); const c = new AbortController(); const r = addAbortSignal(c.signal, new Readable({ read() {} })); setTimeout(() => c.abort(), 1); return failure(() => all(r)) })()',
]

const WEB_STREAMS = [
  '(async () => { const seen = []; const w = new WritableStream({ start() { seen.push("start") }, async write(c) { await tick(); seen.push(c) }, close() { seen.push("close") } }).getWriter(); seen.push(w.desiredSize); w.write("a"); seen.push(w.desiredSize); await w.ready; await w.write("b"); await w.close(); await w.closed; return seen })()',
  '(async () => { const seen = []; const s = new WritableStream({ write() { throw new RangeError("own") }, abort(r) { seen.push(r) } }); const w = s.getWriter(); return [await failure(() => w.write(1)), await failure(() => w.closed), await failure(() => w.write(2)), s.locked, seen] })()',
  '(async () => { const seen = []; const s = new WritableStream({ abort(r) { seen.push(r) } }); await s.abort("why"); return [seen, s.locked] })()',
  '(async () => { const t = new TransformStream({ transform(c, k) { k.enqueue(c * 2) }, flush(k) { k.enqueue("end") } }); const out = []; const w = t.writable.getWriter(); const writing = (async () => { for (const n of [1, 2, 3]) await w.write(n); await w.close() })(); for await (const c of t.readable) out.push(c); await writing; return out })()',
  '(async () => { const out = []; await ReadableStream.from(["a", "b"]).pipeThrough(new TransformStream({ transform(c, k) { k.enqueue(c.toUpperCase()) } })).pipeThrough(new TransformStream()).pipeTo(new WritableStream({ write(c) { out.push(c) }, close() { out.push("closed") } })); return out })()',
  '(async () => { const out = []; await failure(() => ReadableStream.from(["a"]).pipeThrough(new TransformStream({ transform() { throw new TypeError("own") } })).pipeTo(new WritableStream({ abort(r) { out.push(r.message) } }))).then((f) => out.push(f)); return out })()',
  '(async () => { const out = []; for await (const c of ReadableStream.from([1, 2, 3, 4]).pipeThrough(new TransformStream({ transform(c, k) { k.enqueue(c); if (c === 2) k.terminate() } }))) out.push(c); return out })()',
  '[String(new WritableStream()), String(new TransformStream())]',
]

const ZLIB = [
  '["gzip", "deflate", "deflateRaw", "brotliCompress"].map((name, at) => require("zlib")[["gunzip", "inflate", "inflateRaw", "brotliDecompress"][at] + "Sync"](require("zlib")[name + "Sync"]("text é")).toString())',
  '["deflateSync", "deflateRawSync"].map((name) => require("zlib")[name](Buffer.from("aaaaaaaaaa"), { level: 9 }).toString("hex"))',
  'new Promise((done) => require("zlib").gzip("a", (e, b) => require("zlib").unzip(b, {}, (e2, c) => done([e, e2, String(c)]))))',
  'new Promise((done) => require("zlib").gunzip(Buffer.from("no gzip"), (e, b) => done([e.code, e instanceof Error, b === undefined])))',
  'failure(() => require("zlib").inflateSync("x"))',
  'failure(() => require("zlib").gzipSync("x", { level: 99 }))',
  '(async () => { const z = require("zlib"); const { pipeline } = require("stream/promises"); const { Readable } = require("stream"); const out = []; await pipeline(Readable.from(["hello ", "world"]), z.createGzip(), z.createGunzip(), async (s) => { for await (const c of s) out.push(String(c)) }); return out.join("") })()',
  '(async () => { const z = require("zlib"); const d = z.createDeflate(); const chunks = []; d.on("data", (c) => chunks.push(c)); d.write("a"); d.end("b"); await new Promise((r) => d.on("end", r)); return z.inflateSync(Buffer.concat(chunks)).toString() })()',
  '[require("zlib").constants.Z_BEST_COMPRESSION, require("zlib").constants.BROTLI_PARAM_QUALITY]',
  'require("zlib").deflateSync("x".repeat(100), { dictionary: Buffer.from("xxxx"), windowBits: 9, memLevel: 1, strategy: 2 }).length',
]

const PATHS = [
  ...[
    'join("/a", "..", "b/", "./c")',
    'join("")',
    'resolve("/a", "b", "../c")',
    'relative("/a/b", "/a/c/d")',
    'normalize("/a//b/../c/.")',
    'dirname("/a/b.c")',
    'basename("/a/b.c", ".c")',
    'extname("x.tar.gz")',
    'parse("/a/b.c")',
    'format({ dir: "/a", base: "b" })',
    'isAbsolute("a")',
    'sep + require("path").delimiter',
  ].map((call) => `require("path").${call}`),
  '[require("path/posix") === require("path").posix, require("path").posix.join("a", "b")]',
  'failure(() => require("path").join(1))',
  ...[
    'fileURLToPath("file:///a%20b/c")',
    'fileURLToPath(new URL("file:///x"))',
    'parse("http://u:p@h.example:81/p/q?a=b&c=d#f")',
    'parse("/p?a=b", true)',
    'format({ protocol: "http", host: "h", pathname: "/p", query: { a: 1 } })',
    'format(new URL("http://h/p"))',
    'format({ protocol: "http:", hostname: "h", pathname: "/p", query: null, agent: () => {}, nested: { f() {} } })',
    'resolve("http://h/a/b", "../c")',
    'domainToASCII("é.example")',
    'pathToFileURL("/a b?#/").href',
  ].map((call) => `require("url").${call}`),
  'failure(() => require("url").fileURLToPath("http://a"))',
  '(({ protocol, hostname, path, port, auth }) => [protocol, hostname, path, port, auth])(require("url").urlToHttpOptions(new URL("http://u:p@[::1]:8/a?b")))',
]

const UTIL = [
  'require("util").promisify((a, done) => done(null, a + 1))(1)',
  'failure(() => require("util").promisify((done) => done(new RangeError("x")))())',
  '(async () => [await require("util").promisify(setTimeout)(1, "v"), require("util").promisify(Object.assign(() => 1, { [require("util").promisify.custom]: () => "own" }))()])()',
  'new Promise((done) => require("util").callbackify(async (a) => a)(5, (e, v) => done([e, v])))',
  '(() => { const { inherits } = require("util"); function A() {} function B() {} A.prototype.a = 1; inherits(B, A); return [new B().a, B.super_ === A, Object.keys(B)] })()',
  '["isDate", "isRegExp", "isMap", "isPromise", "isTypedArray", "isUint8Array", "isArrayBuffer", "isNativeError", "isAsyncFunction"].map((name) => [new Date(), /a/, new Map(), Promise.resolve(), new Int8Array(1), new Uint8Array(1), new ArrayBuffer(1), new TypeError(), async () => {}].map((v) => require("util").types[name](v)))',
  '[[{ a: [1, new Map([[1, new Set([2])]])] }, { a: [1, new Map([[1, new Set([2])]])] }], [{ a: 1 }, { a: 2 }], [[1, , 2], [1, undefined, 2]], [new Date(0), new Date(0)], [NaN, NaN], [0, -0], [{ a: undefined }, {}], [Object.create(null), {}], [new Error("a"), new Error("b")], [Buffer.from("a"), Buffer.from("a")], [/a/g, /a/], [[1], { 0: 1 }], [new Set([{ a: 1 }]), new Set([{ a: 1 }])], [{ [Symbol.iterator]: 1 }, {}]].map(([a, b]) => require("util").isDeepStrictEqual(a, b))',
  '(() => { const a = {}; a.self = a; const b = {}; b.self = b; return require("util").isDeepStrictEqual(a, b) })()',
  '[require("util").stripVTControlCharacters("\\u001b[31mred\\u001b[0m"), require("util").toUSVString("a\\ud800")]',
  'require("util").inspect({ a: 1 }) + require("util").format("%s", "x")',
  '[require("util").types === require("util/types"), require("util").TextEncoder === TextEncoder]',
]

const ASSERT = [
  ...[
    'a(1)',
    'a(0)',
    'a.ok("")',
    'a.equal(1, "1")',
    'a.equal(1, 2)',
    'a.notEqual(1, 2)',
    'a.strictEqual(1, "1")',
    'a.deepEqual({ a: 1 }, { a: "1" })',
    'a.deepStrictEqual({ a: 1 }, { a: "1" })',
    'a.notDeepStrictEqual({ a: 1 }, { a: "1" })',
    'a.strict.equal(1, "1")',
    'a.throws(() => { throw new TypeError("x") }, TypeError)',
    'a.throws(() => { throw new TypeError("x") }, /y/)',
    'a.throws(() => { throw new TypeError("x") }, { name: "TypeError", message: /x/ })',
    'a.throws(() => {})',
    'a.doesNotThrow(() => {})',
    'a.rejects(Promise.reject(new Error("x")))',
    'a.rejects(async () => 1)',
    'a.match("abc", /b/)',
    'a.doesNotMatch("abc", /b/)',
    'a.ifError(null)',
    'a.ifError(new Error("x"))',
    'a.fail("why")',
    'a.strictEqual(1, 2, new RangeError("own"))',
  ].map((text) => `(async (a) => failure(() => ${text}))(require("assert"))`),
  '[require("assert/strict") === require("assert").strict, new (require("assert").AssertionError)({ message: "m" }).code]',
]

const OTHERS = [
  '(async () => { const t = require("timers/promises"); const seen = []; for await (const v of t.setInterval(1, "v")) { seen.push(v); if (seen.length === 3) break } return [seen, await t.setTimeout(1, "a"), await t.setImmediate("b"), await failure(() => t.setTimeout(1000, 0, { signal: AbortSignal.abort() }))] })()',
  '(async () => { const c = new AbortController(); setTimeout(() => c.abort(), 1); return failure(() => require("timers/promises").setTimeout(1e6, 0, { signal: c.signal })) })()',
  '(async () => { const t = setTimeout(() => {}, 1e6); const had = t.hasRef(); return [typeof t, had, t.unref().ref().refresh() === t, typeof +t, clearTimeout(+t) === undefined] })()',
  '(async () => { const seen = []; const t = setTimeout(() => seen.push("no"), 1); clearTimeout(String(+t)); const i = setInterval(() => seen.push("i"), 1); await tick(20); i.close(); const { length } = seen; await tick(5); return [seen.includes("no"), length > 0, seen.length === length] })()',
  '(async () => { const order = []; await tick(); setImmediate(() => order.push("immediate")); process.nextTick((a) => order.push(a), "tick"); queueMicrotask(() => order.push("microtask")); order.push("now"); await tick(20); return order })()',
  '(async () => { const order = []; await new Promise((done) => setTimeout(() => { Promise.resolve().then(() => order.push("promise")); process.nextTick(() => { order.push("tick"); process.nextTick(() => order.push("tick 2")) }); setTimeout(done, 5) }, 1)); return order })()',
  '(() => { const { StringDecoder } = require("string_decoder"); const d = new StringDecoder("utf8"); return [d.write(Buffer.from([0xe2, 0x82])), d.write(Buffer.from([0xac])), d.end(Buffer.from([0xe2])), d.encoding, new StringDecoder("base64").end(Buffer.from("a"))] })()',
  'failure(() => new (require("string_decoder").StringDecoder)("none"))',
  '[require("os").EOL, require("os").constants.signals.SIGTERM, require("os").devNull, require("os").endianness()]',
  '[typeof require("perf_hooks").performance.now(), require("perf_hooks").performance === performance, require("process") === process, require("node:process") === process]',
  '[process.argv.length > 1, typeof process.env.NONE, typeof process.hrtime.bigint(), process.hrtime().length, Object.prototype.toString.call(process), process.platform.length > 0, process.release.name, process.on("exit", () => {}) === process]',
  '[require("http").STATUS_CODES[404], require("http").METHODS.includes("PATCH"), require("http").Agent !== require("https").Agent, typeof require("https").globalAgent]',
  'failure(() => require("http").request({ host: "h", headers: { a: "b\\r\\nc: d" } }))',
  'failure(() => require("http").request({ host: "h", headers: { "a b": "c" } }))',
  'failure(() => require("http").request({ host: "h", path: "/a b" }))',
  'failure(() => require("http").request({ host: "h", path: "/a\\r\\nX: y" }))',
  'failure(() => require("https").request("http://h/"))',
  'failure(() => require("http").validateHeaderValue("a", undefined))',
  '["ascii", "base64", "base64url", "hex", "latin1", "ucs2", "utf8"].map((name) => { const b = Buffer.alloc(8); return [b[name + "Write"]("61626364", 1), b[name + "Slice"](0, 6), b.toString("hex")] })',
  '[require("buffer").isUtf8(Buffer.from([255])), require("buffer").isAscii(Buffer.from("a")), require("buffer").constants.MAX_LENGTH > 0, require("buffer").transcode(Buffer.from("é"), "utf8", "latin1").length, require("buffer").Blob === Blob]',
  '[Buffer.from("ab").parent instanceof ArrayBuffer, new Uint8Array(Buffer.from("ab")).length]',
  '[require("querystring").encode({ a: 1 }), require("querystring").decode("a=1")]',
]

const STORAGE = [
  '(async () => { const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); const seen = []; await Promise.all([1, 2, 3].map((n) => s.run(n, async () => { await tick(n); seen.push(s.getStore()); await null; seen.push(s.getStore()); await new Promise((r) => process.nextTick(r)); seen.push(s.getStore()); await new Promise((r) => setTimeout(() => { seen.push(s.getStore()); r() }, 1)); queueMicrotask(() => seen.push(s.getStore())); await tick(); Promise.resolve().then(() => seen.push(s.getStore())); await tick() }))); return [seen.sort(), s.getStore()] })()',
  '(async () => { const { AsyncLocalStorage } = require("async_hooks"); const [a, b] = [new AsyncLocalStorage(), new AsyncLocalStorage()]; return a.run(1, () => b.run(2, async () => { await tick(); const inner = a.exit(() => [a.getStore(), b.getStore()]); return [a.getStore(), b.getStore(), inner] })) })()',
  '(async () => { const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); const got = []; const work = async () => { s.enterWith("in"); await tick(); got.push(s.getStore()) }; await s.run("out", async () => { await work(); }); return got })()',
  '(() => { const { AsyncLocalStorage, AsyncResource } = require("async_hooks"); const s = new AsyncLocalStorage(); const [bound, snapshot, resource] = s.run(7, () => [AsyncResource.bind(() => s.getStore()), AsyncLocalStorage.snapshot(), new AsyncResource("r")]); return [bound(), snapshot(() => s.getStore()), resource.runInAsyncScope((a) => [a, s.getStore()], null, 1), s.getStore()] })()',
  '(() => { const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); try { s.run(1, () => { throw new Error("x") }) } catch {} return [s.getStore(), s.run(2, (a, b) => [a, b, s.getStore()], 3, 4)] })()',
]

const FORMS = [
  '(async () => { const f = new FormData(); f.append("a", "1"); f.append("a", 2); f.set("b", new Blob(["x"], { type: "text/plain" }), "n.txt"); f.append("c", new File(["y"], "m", { type: "A/B" })); f.delete("none"); const file = f.get("b"); return [f.getAll("a"), file.name, file.type, file.size, await file.text(), f.get("c").type, [...f.keys()], f.has("a"), f.get("none"), String(f), file instanceof Blob] })()',
  '(async () => { const b = new Blob(["ab", new Uint8Array([99]), new Blob(["d"])], { type: "T/X" }); return [b.size, b.type, await b.text(), await b.slice(1, 3).text(), b.slice(-1).size, [...new Uint8Array(await b.arrayBuffer())], await new Response(b).text(), new Response(b).headers.get("content-type"), (await all(b.stream())).join(), String(b)] })()',
  '(async () => { const f = new FormData(); f.append("a", "1\\r\\n2"); f.append("q\\"\\r\\n", new File(["x\\0y"], "n\\".txt", { type: "text/plain" })); f.append("empty", ""); const back = await new Response(f).formData(); return Promise.all([...back].map(async ([n, v]) => [n, typeof v === "string" ? v : [v.name, v.type, await v.text()]])) })()',
  '(async () => { const text = await new Response((() => { const f = new FormData(); f.append("a\\nb", "c\\nd"); f.append("e", new File(["f"], "g\\nh")); return f })()).text(); const boundary = text.slice(2, text.indexOf("\\r\\n")); return text.replaceAll(boundary, "BOUNDARY") })()',
  '(async () => [...await new Response(new URLSearchParams({ a: "b c", d: "é" })).formData()])()',
  'Promise.all(["text/plain", "multipart/form-data", "multipart/form-data; boundary=x"].map(async (type) => (await failure(() => new Response("--y", { headers: { "content-type": type } }).formData()))[0]))',
  '[new Response("a").headers.get("content-type"), new Response(new URLSearchParams("a=b")).headers.get("content-type"), new Response(new Uint8Array(1)).headers.get("content-type")]',
  '(async () => { const b = await new Response("x", { headers: { "content-type": "image/png" } }).blob(); return [b.type, b.size] })()',
  '(async () => [Response.json({ a: 1 }, { status: 201 }).status, await Response.json([1]).json(), Response.json(1).headers.get("content-type")])()',
  '(() => { const e = new DOMException("m", "AbortError"); return [e.name, e.message, e.code, e instanceof Error, String(e), new DOMException("x").name, Object.prototype.toString.call(e)] })()',
  '(async () => { const c = new AbortController(); const any = AbortSignal.any([c.signal, AbortSignal.timeout(1e6)]); c.abort("why"); const t = AbortSignal.timeout(1); await tick(20); return [any.aborted, any.reason, t.aborted, t.reason.name, AbortSignal.abort().reason.name, AbortSignal.any([AbortSignal.abort(1)]).reason] })()',
]

/** Expressions whose results must have the same JSON in Node and in the realm. */
const ALIKE = [
  ...EVENTS,
  ...STREAMS,
  ...WEB_STREAMS,
  ...ZLIB,
  ...PATHS,
  ...UTIL,
  ...ASSERT,
  ...OTHERS,
  ...STORAGE,
  ...FORMS,
]

t.test('modules and globals of reactor code give the same results as in Node', async (t) => {
  const works = ALIKE.map((text) => `() => (${text})`).join(',\n')
  // The expressions run one after another, because some of them wait for timers.
  const list = `(async () => { const found = []; for (const work of [${works}]) try { found.push(JSON.stringify(await work() ?? null)) } catch (e) { found.push('threw ' + e.message) } return found })()`
  const program = new Function('require', `'use strict'; ${TOOLS}; return ${list}`)
  const expected = (await program(createRequire(import.meta.url))) as unknown[]
  const found = (await evaluate(`${TOOLS}; return ${list}`)) as unknown[]
  t.equal(found.length, ALIKE.length)
  for (const [at, text] of ALIKE.entries()) t.equal(found[at], expected[at], text.slice(0, 120))
})

/** Starts a server that answers with the request that it got. */
async function serveEcho(t: Test) {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method, url, headers } = request
    const { host: _, ...got } = headers
    if (url === '/zipped') {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('unzipped'))
      return
    }
    if (url === '/slow') return
    response.writeHead(url === '/moved' ? 302 : 201, { 'x-one': '1', 'set-cookie': 'a=b', location: '/next' })
    response.end(JSON.stringify({ method, url, headers: got, body: Buffer.concat(chunks).toString() }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const opened = createReactorPool({ confinement, allowNet: [`127.0.0.1:${port}`] })
  t.teardown(async () => {
    await opened.close()
    server.closeAllConnections()
    server.close()
  })
  return { port, used: opened }
}

const HTTP_TOOLS = `
  const http = require('http')
  const read = async (message) => { let text = ''; for await (const chunk of message) text += chunk; return text }
  const answer = (request) => new Promise((resolve, reject) => { request.on('error', reject); request.on('response', resolve) })
  const failure = (request) => new Promise((resolve) => { request.on('error', (error) => resolve(error.code ?? error.message)); request.on('response', () => resolve('answered')) })`

t.test('the module http sends its requests with the fetch of the run', async (t) => {
  const { port, used } = await serveEcho(t)
  const ask = (body: string) => evaluate(`${HTTP_TOOLS}; const port = ${port}; ${body}`, { used })
  t.match(
    await ask(`const request = http.request({ hostname: '127.0.0.1', port, path: '/p?q=1', method: 'post', auth: 'u:p', headers: { 'X-A': 'b', 'Content-Type': 'text/plain' } })
      request.setHeader('x-c', ['1', '2']); request.write('ab'); request.end('é')
      const response = await answer(request); const { statusCode, statusMessage, headers, rawHeaders } = response
      return { statusCode, statusMessage, one: headers['x-one'], cookies: headers['set-cookie'], raw: rawHeaders.includes('x-one'), echo: JSON.parse(await read(response)), complete: response.complete }`),
    {
      ...{ statusCode: 201, statusMessage: 'Created', one: '1', cookies: ['a=b'], raw: true, complete: true },
      echo: {
        ...{ method: 'POST', url: '/p?q=1', body: 'abé' },
        headers: { 'x-a': 'b', 'x-c': '1, 2', 'content-type': 'text/plain', authorization: 'Basic dTpw' },
      },
    },
  )
  t.match(
    await ask(`const url = new URL('http://127.0.0.1:' + port + '/x'); const events = []
      const request = http.get(url, { headers: { a: 'b' } }, (response) => { events.push('response'); response.resume().on('end', () => events.push('end')) })
      for (const name of ['socket', 'finish', 'close']) request.on(name, () => events.push(name))
      await new Promise((resolve) => request.on('close', resolve)); return events.sort()`),
    ['close', 'end', 'finish', 'response', 'socket'],
  )
  t.same(await ask('return (await answer(http.get(`http://127.0.0.1:${port}/moved`))).statusCode'), 302)
  t.same(
    await ask(
      "const zlib = require('zlib'); return read((await answer(http.get(`http://127.0.0.1:${port}/zipped`))).pipe(zlib.createGunzip()))",
    ),
    'unzipped',
  )
  t.same(
    await ask(
      `const request = http.get({ host: '127.0.0.1:' + port, path: '/slow', timeout: 20 }); request.on('timeout', () => request.destroy(new Error('late'))); return failure(request)`,
    ),
    'late',
  )
  t.same(
    await ask(
      `const request = http.get({ host: '127.0.0.1', port, path: '/slow' }); setTimeout(() => request.abort(), 5); return failure(request)`,
    ),
    'ECONNRESET',
  )
  t.same(
    await ask(
      `const c = new AbortController(); const request = http.get({ host: '127.0.0.1', port, path: '/slow', signal: c.signal }); setTimeout(() => c.abort(), 5); return failure(request)`,
    ),
    20,
  )
  t.same(
    await ask(
      `const { pipeline } = require('stream/promises'); const { Readable } = require('stream'); const request = http.request({ host: '127.0.0.1', port, method: 'PUT' }); const got = answer(request); await pipeline(Readable.from(['a', 'b']), request); return JSON.parse(await read(await got)).body`,
    ),
    'ab',
  )
})

t.test(
  'the module http reaches only hosts that fetch reaches, and refuses requests that fetch cannot make',
  async (t) => {
    const { port, used } = await serveEcho(t)
    const ask = (body: string) => evaluate(`${HTTP_TOOLS}; const port = ${port}; ${body}`, { used })
    for (const target of [
      '"http://127.0.0.1:1/"',
      '"http://localhost/"',
      '{ hostname: "169.254.169.254", path: "/latest" }',
      '{ host: "2130706433", port: 80 }',
      '{ host: "127.0.0.1", port, path: "/", hostname: "example.com" }',
    ])
      t.match(await ask(`return failure(http.get(${target}))`), /fetch failed/, target)
    for (const options of [
      '{ host: "127.0.0.1:" + port + "/x?", path: "/" }',
      '{ host: "127.0.0.1@example.com" }',
      '{ host: "example.com#", port }',
      '{ host: "a b" }',
      '{ host: "127.0.0.1", port: "80/x" }',
      '{ host: "127.0.0.1", port: 65536 }',
      '{ host: "127.0.0.1", port, path: "/a\\nb" }',
      '{ host: "127.0.0.1", port, headers: { a: "b\\r\\nc: d" } }',
      '{ host: "127.0.0.1", port, headers: ["a\\r\\nb", "c"] }',
      '{ host: "127.0.0.1", port, socketPath: "/run/docker.sock" }',
      '{ host: "127.0.0.1", port, createConnection: () => {} }',
      '{ host: "127.0.0.1", port, cert: "x", key: "y" }',
    ])
      t.match(
        await ask(`try { http.request(${options}); return 'made' } catch (e) { return e.code }`),
        /^ERR_/,
        options,
      )
    t.match(
      await ask(
        'const r = http.request({ host: "127.0.0.1", port, method: "POST" }); r.end("x".repeat(2 ** 20 + 1)); return failure(r)',
      ),
      /limited to/,
    )
    t.same(
      await ask(
        `const r = http.request({ host: '127.0.0.1', port, path: '//example.com/a' }); r.end(); return JSON.parse(await read(await answer(r))).url`,
      ),
      '//example.com/a',
    )
    t.match(await ask('try { http.createServer() } catch (e) { return e.message }'), /cannot listen/)
  },
)

t.test('the module http never reaches the server itself', async (t) => {
  const { port } = await serveEcho(t)
  const used = createReactorPool({ confinement, allowNet: ['localhost'], ownPorts: new Set([port]) })
  t.teardown(() => used.close())
  const found = await evaluate(
    `${HTTP_TOOLS}; return failure(http.get({ host: 'localhost', port: ${port} }))`,
    { used },
  )
  t.match(found, /fetch failed/)
})

t.test('reactor code sees the version of Node that its image promises', async (t) => {
  const body = 'return [process.version, process.versions.node]'
  for (const [image, major] of [
    [undefined, '16'],
    ['node-bt', '16'],
    ['node22', '22'],
    ['node24', '24'],
  ]) {
    const [version, node] = (await evaluate(body, { image } as object)) as string[]
    t.equal(version!.split('.')[0], `v${major}`, `${image}`)
    t.equal(node, version!.slice(1))
  }
})

t.test(
  'in reactor code, the global process reveals nothing about the machine and cannot change the machine',
  async (t) => {
    t.same(
      await evaluate(
        'return [process.env, process.cwd(), process.pid, process.argv, __filename, __dirname, require("os").hostname(), require("os").cpus(), require("os").networkInterfaces(), process.stdin]',
      ),
      [{}, '/', 1, ['/usr/local/bin/node', '/reactor.js'], '/reactor.js', '/', 'localhost', [], {}, null],
    )
    for (const name of ['exit', 'abort', 'kill', 'chdir', 'binding', 'dlopen'])
      t.match(await evaluate(`process.${name}('fs')`), {
        failed: `process.${name} is not available to reactor code`,
      })
    t.same(
      await evaluate(
        'process.stdout.write("a\\n"); process.emitWarning("b"); process.env.A = "c"; return process.env.A',
      ),
      'c',
    )
    t.same(
      await evaluate('process = { env: { B: 1 } }; return [process.env.B, typeof require("process").cwd]'),
      [1, 'function'],
    )
    const steps = await evaluate(
      'return Array.from({ length: 1000 }, () => (performance.now() * 10) % 1 < 1e-6 || (performance.now() * 10) % 1 > 1 - 1e-6).every(Boolean)',
    )
    t.same(steps, true, 'the clock has steps of 0.1 ms')
  },
)

t.test('reactor code cannot require a module of Node that has no facade', async (t) => {
  const names =
    'fs net tls dns dgram http2 child_process worker_threads cluster vm v8 module inspector repl tty fs/promises dns/promises sqlite wasi diagnostics_channel readline'
  const spelled = names
    .split(' ')
    .flatMap((name) => (name === 'sqlite' ? [`node:${name}`] : [name, `node:${name}`]))
  const found = await evaluate(
    `return ${JSON.stringify(spelled)}.map((name) => { try { require(name) } catch (e) { return [e.code, e.message] } })`,
  )
  const expected = spelled.map((name) => {
    const message = `'${name.replace('node:', '')}' is not available to reactor code`
    return ['MODULE_NOT_FOUND', message]
  })
  t.same(found, expected)
  for (const name of ['none', 'coffer:internals', '__proto__', 'constructor'])
    t.match(
      await evaluate(`try { require('${name}') } catch (e) { return e.message }`),
      /Cannot find module/,
      name,
    )
})

t.test('the module zlib accepts and returns at most 8 MiB', async (t) => {
  const bomb =
    'const z = require("zlib"); const part = z.gzipSync(Buffer.alloc(8 << 20)); const bomb = Buffer.concat([part, part]);'
  t.same(await evaluate(`${bomb} return z.gunzipSync(part).length`), 8 << 20)
  t.match(await evaluate(`${bomb} z.gunzipSync(bomb)`), { failed: /8388608 bytes/ })
  t.match(await evaluate(`${bomb} z.gunzipSync(bomb, { maxOutputLength: 1e9 })`), { failed: /8388608 bytes/ })
  t.match(
    await evaluate(`${bomb} return new Promise((done) => z.gunzip(bomb, (e) => done(e.code)))`),
    /TOO_LARGE/,
  )
  t.match(
    await evaluate(
      `${bomb} return new Promise((done) => { const s = z.createGunzip(); s.on("error", (e) => done(e.code)); s.resume().end(bomb) })`,
    ),
    /TOO_LARGE/,
  )
  t.match(await evaluate('require("zlib").gzipSync(Buffer.alloc((8 << 20) + 1))'), {
    failed: /at most 8388608/,
  })
  t.match(
    await evaluate(
      'const s = require("zlib").createGzip(); return new Promise((done) => { s.on("error", (e) => done(e.message)); for (let n = 0; n < 9; n++) s.write(Buffer.alloc(1 << 20)); s.resume().end() })',
    ),
    /at most 8388608/,
  )
})

t.test('names, values and types of form fields cannot add other fields or headers to a form', async (t) => {
  const names = ['a\r\nX: y', 'a"; filename="b', '--', 'a\r\n\r\n--x']
  const parts = await evaluate(`const form = new FormData()
    for (const name of ${JSON.stringify(names)}) { form.append(name, name); form.append(name, new Blob([name], { type: 'text/plain\\r\\nX: y' }), name) }
    const response = new Response(form); const type = response.headers.get('content-type'); const text = await response.text()
    const boundary = type.split('boundary=')[1]
    const heads = text.split('--' + boundary).slice(1, -1).map((part) => part.slice(2, part.indexOf('\\r\\n\\r\\n')).split('\\r\\n'))
    const back = await new Response(text, { headers: { 'content-type': type } }).formData()
    const other = new Response(form).headers.get('content-type').split('boundary=')[1]
    return { heads, count: [...back].length, names: [...back.keys()].filter((n, at) => at % 2 === 0), isFresh: other !== boundary, long: boundary.length >= 40 }`)
  const { heads, ...rest } = parts as { heads: string[][] }
  for (const head of heads)
    t.ok(head.length <= 2 && head[0]!.startsWith('Content-Disposition: form-data; name="'), head.join('|'))
  t.same(rest, { count: 8, isFresh: true, long: true, names })
})
