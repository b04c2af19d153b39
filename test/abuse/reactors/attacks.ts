/** A table of attacks that reactor code can make. Each entry says how the attack must end. */

/**
 * `time`: 408. `memory`, `log`, `calls`, `call size`: 500, because the host ended the run at the limit. `thrown`: 500
 * with an error that the code itself got. `invalid`: 422. `contained`: the code found nothing (`undefined`) or was
 * refused (`refused`).
 */
export type End = 'time' | 'memory' | 'log' | 'calls' | 'call size' | 'thrown' | 'invalid' | 'contained'

export interface Attack {
  name: string
  code: string
  /**
   * The ends of the attack that the test accepts. An attack has several accepted ends if the speed of the machine
   * decides which limit is reached first.
   */
  ends: readonly End[]
}

/** Two runs of one reactor. The second run must not find what the first run leaves behind. */
interface Leak {
  name: string
  first: string
  second: string
  /** The first run makes its child unusable, so the second run gets another child. */
  endsChild?: true
}

const handler = (body: string) => `module.exports = async (req) => { ${body} }`

/** Returns a handler that returns the result of `body` as text, or `refused` if `body` throws. */
const reach = (body: string) =>
  handler(
    `try { const got = await (async () => { ${body} })(); return { raw: String(got) } } catch (e) { return { raw: 'refused' } }`,
  )

function rows(ends: End[], bodies: readonly string[], wrap = handler): Attack[] {
  // Titles must be one line of ASCII.
  return bodies.map((body) => ({ name: body.replaceAll(/[^ -~]/g, '?'), code: wrap(body), ends }))
}

/** Writes an attack for each word of `words`. */
const of = (words: string, write: (word: string) => string) => words.split(/\s+/).map(write)

const burning = rows(
  ['time'],
  [
    'for (;;);',
    'for (;;) try { for (;;); } finally { continue }',
    'const again = () => queueMicrotask(again); again(); await new Promise(() => {})',
    'const again = () => process.nextTick(again); again(); await new Promise(() => {})',
    'process.nextTick(() => { for (;;); }); await new Promise(() => {})',
    'const { Readable } = require("stream"); for await (const chunk of new Readable({ read() { this.push("x") } }));',
    'const { Readable, pipeline } = require("stream"); pipeline(Readable.from((function* () { for (;;) yield "x" })()), async (s) => { for await (const c of s); }, () => {}); await new Promise(() => {})',
    'const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); const again = () => s.run({}, () => queueMicrotask(again)); again(); await new Promise(() => {})',
    'for await (const tick of require("timers/promises").setInterval(0));',
    'await require("events").once(new (require("events"))(), "never")',
    'const z = require("zlib"); const b = require("crypto").randomBytes(8e6); for (;;) z.brotliCompressSync(b)',
    'const make = (m) => new Set(Array.from({ length: 1e5 }, (_, n) => ({ [m]: n }))); require("util").isDeepStrictEqual(make("n"), make("m"))',
    'return { raw: /^(a+)+$/.test("a".repeat(60) + "!") }',
    'return { raw: [].indexOf.call({ length: 2 ** 53 - 1 }, 0) }',
    'await new Promise(() => {})',
    'return { then() {} }',
    'const t = { then(r) { r({ then: t.then }) } }; return t',
    'const again = () => setImmediate(again); again(); await new Promise(() => {})',
    'return { raw: { toJSON() { for (;;); } } }',
    'throw { get message() { for (;;); } }',
    'throw { message: "x", status: 400, errors: new Proxy({}, { ownKeys() { for (;;); } }) }',
    'console.log(new Proxy({}, { ownKeys() { for (;;); } }))',
    'await req.svc.tokens.create({ toJSON() { for (;;); } })',
    'require("crypto").pbkdf2Sync("a", "b", 2e9, 64, "sha512")',
    'req.svc.tokens.create({}).catch(() => {}); await new Promise(() => {})',
    'const f = () => { try { f() } catch { } }; for (;;) f()',
    'for await (const chunk of new ReadableStream({ pull(c) { c.enqueue(1) } })) chunk',
    'await new ReadableStream({ pull: () => new Promise(() => {}) }).getReader().read()',
    'await new Response(new ReadableStream()).text()',
    'new ReadableStream({ get pull() { for (;;); } })',
    'await new ReadableStream({ pull: () => ({ then(r) { r({ then: this.then }) } }) }).getReader().read(); await new Promise(() => {})',
    'const [a, b] = new ReadableStream({ pull(c) { c.enqueue(1) } }).tee(); await b.cancel(); for await (const one of a) one',
  ],
)

const burningWhileLoading = rows(
  ['time'],
  [
    'for (;;);',
    'Object.defineProperty(module, "exports", { get() { for (;;); } })',
    'module.exports = new Proxy({}, { get() { for (;;); } })',
  ],
  (code) => code,
)

const devouring = [
  ...rows(
    ['memory', 'time'],
    [
      // Each promise waits for the next promise, and all promises stay in memory. Which limit is reached first depends
      // on the version of Node.
      'const again = () => Promise.resolve().then(again); await again()',
      'const a = []; for (;;) a.push(new Array(1e5).fill(0))',
      'const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })',
      'const o = {}; for (let i = 0; ; i++) o["k" + i] = [i]',
      'const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))',
      'const b = Buffer.alloc(4e9, 1); await new Promise(() => {})',
      'const a = []; for (;;) a.push(require("crypto").randomBytes(1e7))',
      'const z = require("zlib"); const small = z.gzipSync(Buffer.alloc(8 << 20)); const a = []; for (;;) a.push(z.gunzipSync(small))',
      'const z = require("zlib"); const small = z.brotliCompressSync(Buffer.alloc(8 << 20)); const a = []; for (;;) a.push(z.brotliDecompressSync(small))',
      'const r = new (require("stream").Readable)({ read() {} }); for (;;) r.push(Buffer.alloc(1e6, 1))',
      'const w = new (require("stream").Writable)({ write() {} }); for (;;) w.write(Buffer.alloc(1e6, 1))',
      'const a = []; for (;;) a.push(new Blob([Buffer.alloc(1e7, 1)]))',
      'const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); const a = []; for (;;) s.run(Buffer.alloc(1e6, 1), () => a.push(Promise.resolve()))',
      'for (;;) Promise.resolve().then(() => {})',
    ],
  ),
  ...rows(
    ['memory', 'thrown', 'time'],
    [
      'const s = "ab".repeat(2 ** 28 - 20); return { raw: JSON.stringify({ s: s + s.slice(1) }).length }',
      'let s = "x"; for (;;) s = s + s + Buffer.from(s.slice(0, 8)).toString("hex")',
      'let a = ["x".repeat(100)]; for (let i = 0; i < 30; i++) a = [a, a]; return { raw: a }',
      'return { raw: "\\uFDFA".repeat(2 ** 26).normalize("NFKD").length }',
      'return { raw: String((7n ** 299999999n) % 5n) }',
      'return { raw: "a".repeat(2 ** 20).replace(/a/g, "b".repeat(2 ** 12)).length }',
      'require("crypto").scryptSync("a", "b", 64, { N: 2 ** 21, r: 16, p: 1, maxmem: 2 ** 33 }); await new Promise(() => {})',
      'for (;;) setTimeout(() => {}, 1e6)',
      'await new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1e7)) } })).text()',
      'const s = []; for (;;) s.push(new ReadableStream({ start(c) { c.enqueue(new Uint8Array(1e6).fill(1)) } }))',
      'await new Response(ReadableStream.from([new Uint8Array(5e8).fill(1)])).text()',
    ],
  ),
]

const flooding = [
  ...rows(
    // On a busy machine, these attacks can reach the time limit before the limit of the log.
    ['log', 'time'],
    [
      'for (;;) console.log("x".repeat(1000))',
      'setInterval(() => { for (let i = 0; i < 1e4; i++) console.warn("flood", i) }, 1); await new Promise(() => {})',
    ],
  ),
  ...rows(
    ['calls', 'time'],
    [
      'for (;;) await req.svc.tokens.list({}).catch(() => {})',
      'for (let i = 0; i < 1e5; i++) req.svc.tokens.list({}).catch(() => {}); await new Promise(() => {})',
      'for (;;) await fetch("http://localhost").catch(() => {})',
    ],
  ),
  ...rows(
    ['call size', 'time'],
    [
      'for (let i = 0; i < 100; i++) req.svc.tokenize("x".repeat(1e6)).catch(() => {}); await new Promise(() => {})',
    ],
  ),
  // On a busy machine, these calls can reach the time limit before another limit.
  ...rows(
    ['thrown', 'time'],
    [
      'let a = 1; for (let i = 0; i < 1e5; i++) a = [a]; return { raw: a }',
      'await req.svc.tokenize("x".repeat(1e7))',
      'await fetch("http://localhost", { method: "POST", body: ReadableStream.from([new Uint8Array(5e6)]) })',
    ],
  ),
  ...rows(
    ['thrown'],
    [
      'return { tokenize: Array(2e5).fill("12345") }',
      'const a = {}; a.a = a; return { raw: a }',
      'let a = 1; for (let i = 0; i < 100; i++) a = [a]; return { raw: a }',
      'return { raw: JSON.parse(`{"__proto__": {"polluted": 1}}`) }',
      'return { raw: "\\ud800" }',
      'return { raw: 10n }',
      'const f = () => f() + 1; return { raw: f() }',
      'throw new Error("x".repeat(1e7))',
      'throw new Proxy({}, { get() { throw new Error("no") }, getPrototypeOf() { throw new Error("no") } })',
      'setTimeout(() => { throw new Error("late") }, 1); await new Promise(() => {})',
      'Promise.reject(new Error("lost")); await new Promise(() => {})',
      'throw Object.assign(new Error("x"), { status: 200 })',
      'new ReadableStream({ start(c) { for (;;) c.enqueue(1) } })',
      'const s = new ReadableStream().getReader(); const all = []; for (let i = 0; i < 10100; i++) all.push(s.read()); await Promise.all(all)',
      'const [a] = ReadableStream.from((function* () { for (;;) yield 1 })()).tee(); for await (const one of a) one',
      'await new ReadableStream({ get pull() { throw new Error("no") } })',
      'await new ReadableStream({ start() { return { get then() { throw new Error("no") } } } }).getReader().read()',
      'await new Response(new ReadableStream({ start(c) { c.enqueue(new Proxy(new Uint8Array(1), {})) } })).text()',
      'await new Response(new ReadableStream({ start(c) { c.enqueue({ buffer: 1, byteLength: 5, length: 5 }) } })).text()',
      'await new Response(Object.create(ReadableStream.prototype)).text()',
      'ReadableStream.prototype.getReader = 1',
      'const c = new ReadableStream().getReader().constructor; c.prototype.read = 1',
    ],
  ),
]

const spelled: Attack[] = rows(
  ['invalid'],
  [
    'await import("fs")',
    'await import\u2028("fs")',
    'return { raw: import.meta.url }',
    'return { raw: eval("process") }',
    'return { raw: \\u0065val("process") }',
    '}); process.exit(); (function () {',
    'let a = 1; a <!-- process.exit()\n return { raw: a }',
    'return { raw: 010 }',
    'import fs from "fs"',
  ],
)

const escaping = rows(
  ['contained'],
  [
    ...of(
      `WebAssembly SharedArrayBuffer Atomics WeakRef FinalizationRegistry
      BroadcastChannel`,
      (name) => `return typeof ${name}`,
    ),
    ...[
      '(0).constructor.constructor',
      'await (async () => {}).constructor',
      'req.svc.tokens.create.constructor',
      'fetch("http://localhost").catch(() => {}).constructor.constructor',
      'new Event("a").constructor.constructor',
    ].map((maker) => `return typeof ${maker}("return process")()`),
    'return typeof (0, eval)("globalThis.process.getBuiltinModule")',
    'return typeof (await (async function* () {}).constructor("return process")().next()).value',
    'try { Buffer.alloc("x") } catch (e) { return typeof e.constructor.constructor("return process")() }',
    'const f = () => { try { return f() } catch (e) { return e.constructor.constructor("return process")() } }; return typeof f()',
    'return typeof (function () { return this })()',
    'return (function f() { return f.caller })()',
    'let sites; const o = {}; Error.prepareStackTrace = (_, s) => { sites = s; return s }; Error.captureStackTrace(o); o.stack; return sites',
    'try { Buffer.alloc("x") } catch (e) { return e.stack || undefined }',
    'Error.stackTraceLimit = 100; return /guest|node:/.test(new Error("x").stack) ? "leaked" : undefined',
    ...of(
      `fs node:fs/promises child_process worker_threads vm module net dgram dns inspector
      /etc/passwd ../../../../etc/passwd @x/../../../etc/passwd constructor __proto__`,
      (name) => `return typeof require("${name}")`,
    ),
    'return require.cache',
    'return module.constructor._load',
    'return typeof new Compartment({}).evaluate("globalThis.process")',
    'return (await new Compartment({ globals: {}, __options__: true, importHook: async () => ({ imports: [], exports: [], execute() {} }) }).import("node:fs")).namespace?.readFileSync',
    'let got; const b = Buffer.from("x"); b.a = { [Symbol.for("nodejs.util.inspect.custom")]: (d, o, i) => { got = i } }; b[Symbol.for("nodejs.util.inspect.custom")](2, { customInspect: true }); return got',
    'let got; require("util").inspect({ a: { [Symbol.for("nodejs.util.inspect.custom")]: (d, o, i) => { got = i } } }, { customInspect: true }); return got',
    'return Buffer.from("x").buffer.byteLength === 1 ? undefined : "pool"',
    'return Buffer.allocUnsafe(1e5).some((b) => b !== 0) ? "dirty" : undefined',
    'Object.prototype.polluted = 1; return ({}).polluted',
    'Array.prototype.push = () => "mine"; return undefined',
    'Object.prototype.then = (r) => r("mine"); return undefined',
    'Object.defineProperty(Object.prototype, "stack", { set(v) { globalThis.got = v } }); return globalThis.got',
    'URL.prototype.toString = () => "mine"; return String(new URL("http://a/")) === "mine" ? "mine" : undefined',
    'return ({}).__proto__',
    'const o = {}; o.__proto__ = { a: 1 }; return Object.getPrototypeOf(o) === Object.prototype ? undefined : "moved"',
    'return Intl.DateTimeFormat().resolvedOptions().timeZone === "UTC" ? undefined : "zone"',
    'return req.svc.tokens.destroyEverything',
    'return await req.svc.tokens.create.call(null, "__proto__")',
    ...of(
      `http://127.0.0.1:80/ http://2130706433/ http://[::ffff:127.0.0.1]/
      http://169.254.169.254/latest/meta-data/ http://api.example.com@127.0.0.1/ file:///etc/passwd
      data:text/plain,x`,
      (url) => `return await fetch("${url}")`,
    ),
  ],
  reach,
)

const reaching = rows(
  ['contained'],
  [
    // In some versions of Node, a decoder kept its native handle in a property. The constructor of this handle, called
    // without a receiver, returned the global object.
    ...of(
      'utf-16be gbk utf-8',
      (label) =>
        `const d = new TextDecoder('${label}'); d.decode(new Uint8Array([0xd8, 0]), { stream: true }); return Reflect.ownKeys(d).map((key) => { const C = d[key]?.constructor; try { return C().process.version } catch {} }).find(Boolean)`,
    ),
    'return typeof await (async () => {}).constructor("return im" + "port(`node:fs`)")()',
    'return typeof await new Function("return import/**/(`fs`)")()',
    'return globalThis.harden ?? globalThis.assert ?? globalThis.lockdown',
    'const f = Buffer[Symbol.species]; return f === Buffer && Buffer.from("a").slice(0).constructor === Buffer ? undefined : f',
    'let got; const b = new ArrayBuffer(4); for (const name of ["byteLength", "slice", "constructor", "maxByteLength"]) Object.defineProperty(b, name, { get() { got = "read"; return 1e9 } }); const u = new Uint8Array(4); for (const name of ["buffer", "byteOffset", "byteLength", "length"]) Object.defineProperty(u, name, { get() { got = "read"; return 1e9 } }); for (const work of [(x) => Buffer.from("a").equals(x), (x) => require("crypto").createHash("sha256").update(x), (x) => new TextDecoder().decode(x), (x) => crypto.getRandomValues(x)]) for (const x of [b, u]) try { work(x) } catch {} ; return got',
    'const b = Buffer.from(new ArrayBuffer(8)); b.toString(); b.buffer.transfer?.(); const before = b.length; try { b.writeUInt8(1, 0) } catch {} return before > 0 && b.buffer.detached ? "kept" : undefined',
    'const m = new ArrayBuffer(64, { maxByteLength: 64 }); const b = Buffer.from(m); b.fill(1); m.resize?.(8); try { return b.toString("latin1").length > 8 && m.byteLength === 8 ? "kept" : undefined } catch { return undefined }',
    'const works = [() => Buffer.from("a").toString("hex"), () => new TextDecoder("gbk").decode(new Uint8Array(2)), () => new URL("http://a").href, () => require("crypto").createHash("md5").update("a").digest(), () => atob("aa=="), () => crypto.randomUUID(), () => require("util").inspect({ a: [1] }), () => require("querystring").parse("a=b"), () => structuredClone([{}])]; const kinds = [Error, RangeError, TypeError, EvalError, SyntaxError].map((kind) => Object.getPrototypeOf(Object.create(kind.prototype))); let got; const look = (e) => { if (!kinds.includes(Object.getPrototypeOf(e))) got = e }; for (const work of works) { let left = 50; const f = () => { try { f() } catch (e) { if (left-- > 0) { look(e); try { work() } catch (x) { look(x) } } throw e } }; try { f() } catch (e) { look(e) } } return got',
    'let got; try { Error.prepareStackTrace = (e, sites) => { got = sites } } catch {} const o = {}; const see = { toString() { Error.captureStackTrace?.(o); o.stack; new Error("x").stack; return "a" } }; atob(see); new URL("http://a", see); return got',
    'class A extends URL { constructor() { super("http://a"); } get raw() { return Reflect.ownKeys(this) } } class B extends TextDecoder {} class C extends Response {} return [new A(), new B("gbk"), new C("x")].flatMap((x) => Reflect.ownKeys(x))[0]',
    'const seen = []; const base = function () { return new Proxy({}, { defineProperty(t, k) { seen.push(k); return true }, set(t, k) { seen.push(k); return true } }) }; class A extends base {} Object.setPrototypeOf(A, TextDecoder); try { new A() } catch {} try { Reflect.construct(URL, ["http://a"], base); Reflect.construct(Buffer, ["a"], base); Reflect.construct(Response, ["a"], base) } catch {} return seen[0]',
    'return await req.svc.tokens.create({ toJSON: () => ({ get: () => 1 }) })',
    ...of(
      'getBuiltinModule mainModule moduleLoadList report reallyExit _linkedBinding permission stdin channel send',
      (name) => `return process.${name}`,
    ),
    ...of('binding dlopen kill exit abort', (name) => `return process.${name}("fs")`),
    'return process.constructor === Object ? undefined : process.constructor',
    'return typeof process.nextTick.constructor("return process.getBuiltinModule")()',
    'let got; process.nextTick(function () { got = this }); await new Promise((r) => setTimeout(r, 5)); return got === globalThis ? undefined : got',
    'let got; setTimeout(function () { got = this }, 1); await new Promise((r) => setTimeout(r, 5)); return got',
    ...of('coffer:internals node:coffer:internals', (name) => `return require("${name}")`),
    'let got; const { require: own } = globalThis; globalThis.require = (name) => { got = name; return own(name) }; for (const name of ["zlib", "util", "http", "async_hooks"]) own(name); return got',
    'const seen = []; for (const name of ["zlib", "stream", "http", "util"]) { const { constructor } = require(name).constructor; seen.push(constructor("return typeof process.getBuiltinModule")()) } return seen.find((each) => each !== "undefined")',
    'class A extends DOMException {} return Object.getPrototypeOf(DOMException) === Error && new A("x").constructor === A ? undefined : Object.getPrototypeOf(DOMException)',
    'const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); const p = s.run({ a: 1 }, async () => { await null }); return Reflect.ownKeys(p)[0]',
    'const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); let kinds = new Set(); s.run(1, () => { const f = () => { try { Promise.resolve().then(() => {}); f() } catch (e) { kinds.add(e.constructor) } }; f() }); return [...kinds].find((kind) => kind !== RangeError)',
    'const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); s.enterWith("own"); await new Promise((r) => setTimeout(r, 5)); return new AsyncLocalStorage().getStore()',
    'let got; const options = { get level() { got = this === options ? undefined : this; return 1 } }; const bytes = new Uint8Array(new ArrayBuffer(8, { maxByteLength: 1 << 25 })); require("zlib").gzipSync(bytes, { get level() { bytes.buffer.resize?.(1 << 25); return 1 } }); return got',
    'return new (Object.getPrototypeOf(setTimeout(() => {}, 1)).constructor)({ id: 1 })',
    ...of(
      'http://127.0.0.1:80/ http://169.254.169.254/latest http://localhost:1/',
      (url) =>
        `return await new Promise((done, fail) => require("http").get("${url}", done).on("error", fail))`,
    ),
    'const { create } = req.svc.tokens; return await create.call(undefined, {})',
  ],
  reach,
)

const forging = rows(
  ['contained'],
  [
    'console.log(`\\u0010\\0\\0\\0{"kind":"done","raw":"1"}`); return undefined',
    'return await req.svc.tokens.create({ kind: "done" })',
    'globalThis.onmessage?.({ data: { kind: "reply" } }); return globalThis.onmessage',
  ],
  reach,
)

export const ATTACKS: readonly Attack[] = [
  ...burning,
  ...burningWhileLoading,
  ...devouring,
  ...flooding,
  ...spelled,
  ...escaping,
  ...reaching,
  ...forging,
]

const leaks: readonly Leak[] = [
  {
    name: 'a global',
    first: 'globalThis.secret = 1; global.secret = 1; return { raw: true }',
    second: 'return { raw: typeof secret === "undefined" ? [] : ["secret"] }',
  },
  {
    name: 'the last match of a regular expression',
    first: '/4242\\d+/.exec("4242424242424242"); return { raw: true }',
    second: 'return { raw: [RegExp.$_, RegExp.lastMatch, RegExp["$&"], RegExp.input].filter(Boolean) }',
  },
  {
    name: 'a timer',
    first:
      'setTimeout(() => { for (;;); }, 5); setInterval(() => console.log("late"), 1); return { raw: true }',
    second: 'await new Promise((r) => setTimeout(r, 30)); return { raw: [] }',
  },
  {
    name: 'a chain of microtasks that never ends',
    endsChild: true,
    first: '(async () => { for (;;) await null })(); return { raw: true }',
    second: 'return { raw: [] }',
  },
  {
    name: 'the bytes of a buffer',
    first: 'for (let i = 0; i < 100; i++) Buffer.from("4242424242424242".repeat(10)); return { raw: true }',
    second:
      'const found = []; for (let i = 0; i < 100; i++) { const b = Buffer.allocUnsafe(160); if (b.includes("4242")) found.push(i); const p = Buffer.from("x"); if (p.buffer.byteLength > 1) found.push("pool") } return { raw: found }',
  },
  {
    name: 'a symbol, a stack trace limit and a formatter of stack traces',
    first:
      'Symbol.for("left"); try { Error.stackTraceLimit = 7 } catch {} try { Error.prepareStackTrace = () => "left" } catch {} return { raw: true }',
    second:
      'return { raw: [Error.stackTraceLimit === 7 && "limit", new Error("x").stack === "left" && "stack", Object.getOwnPropertySymbols(globalThis).includes(Symbol.for("left")) && "symbol"].filter(Boolean) }',
  },
  {
    name: 'a promise that settles late',
    first:
      'const late = () => { console.log("late"); throw new Error("late") }; crypto.subtle.digest("SHA-256", new Uint8Array(1e6)).then(late); require("crypto").pbkdf2("a", "b", 1e4, 8, "sha1", late); require("crypto").randomBytes(1e5, late); req.svc.tokens.list({}).then(late, late); setImmediate(late); return { raw: true }',
    second:
      'await new Promise((r) => setTimeout(r, 40)); await crypto.subtle.digest("SHA-256", new Uint8Array(1)); return { raw: [] }',
  },
  {
    name: 'memory that Node is still writing to',
    endsChild: true,
    first:
      'require("crypto").scrypt("a", "b", 64, { N: 2 ** 21, r: 8, maxmem: 2 ** 32 }, () => {}); return { raw: true }',
    second: 'return { raw: await new Promise((r) => require("crypto").randomBytes(1, () => r([]))) }',
  },
  {
    name: 'the state of a locale, a decoder and a random number generator',
    first:
      'new Intl.DateTimeFormat("de", { timeZone: "Asia/Tokyo" }).format(); new TextDecoder("gbk").decode(new Uint8Array([0x81]), { stream: true }); require("util").inspect.defaultOptions; try { Math.seed = 1 } catch {} try { Intl.left = 1 } catch {} return { raw: true }',
    second:
      'return { raw: [new Intl.DateTimeFormat().resolvedOptions().timeZone === "UTC" ? 0 : "zone", new TextDecoder("gbk").decode(new Uint8Array([65])) === "A" ? 0 : "bytes", Math.seed, Intl.left].filter(Boolean) }',
  },
  {
    name: 'a chain of ticks that never ends',
    first:
      'const again = () => process.nextTick(again); setTimeout(again, 1); await null; again(); return { raw: true }',
    second: 'await new Promise((r) => setTimeout(r, 30)); return { raw: [] }',
  },
  {
    name: 'the values of an AsyncLocalStorage',
    first:
      'const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); s.enterWith({ secret: 1 }); globalThis.s = s; (async () => { await new Promise((r) => setTimeout(r, 20)); console.log(s.getStore()) })(); await null; return { raw: true }',
    second:
      'const { AsyncLocalStorage } = require("async_hooks"); const s = new AsyncLocalStorage(); await new Promise((r) => setTimeout(r, 30)); return { raw: [s.getStore(), globalThis.s, s.run(1, () => s.getStore()) === 1 ? undefined : "lost"].filter(Boolean) }',
  },
  {
    name: 'a stream, an event and a request that go on',
    first:
      'const { Readable } = require("stream"); globalThis.r = new Readable({ read() { setTimeout(() => { console.log("late"); this.push("x") }, 1) } }); r.resume(); require("http").get("http://localhost:1/").on("error", () => { console.log("late"); throw new Error("late") }); require("zlib").gzip("x", () => { throw new Error("late") }); process.on("exit", () => {}); return { raw: true }',
    second:
      'await new Promise((r) => setTimeout(r, 40)); return { raw: [typeof r === "undefined" ? 0 : "r"].filter(Boolean) }',
  },
  {
    name: 'a change of a built-in module, a global or process',
    first:
      'const names = "events stream util assert http https zlib os timers timers/promises async_hooks perf_hooks stream/promises path url buffer string_decoder process".split(" "); for (const name of names) { const m = require(name); for (const each of [m, m.prototype, m.Readable?.prototype, m.globalAgent, m.Agent?.prototype, m.AsyncLocalStorage?.prototype, m.StringDecoder?.prototype]) try { each.leak = 1 } catch {} } require("events").defaultMaxListeners = 77; for (const each of [Blob, File, FormData, DOMException, AbortSignal, process, process.env, performance, Object.getPrototypeOf(setTimeout(() => {}, 1))]) for (const target of [each, each.prototype]) try { target.leak = 1 } catch {} return { raw: true }',
    second:
      'const names = "events stream util assert http https zlib os timers timers/promises async_hooks perf_hooks stream/promises path url buffer string_decoder process".split(" "); const found = []; for (const name of names) { const m = require(name); for (const each of [m, m.prototype, m.Readable?.prototype, m.globalAgent, m.Agent?.prototype, m.AsyncLocalStorage?.prototype, m.StringDecoder?.prototype]) if (each?.leak) found.push(name) } if (require("events").defaultMaxListeners === 77) found.push("max"); for (const each of [Blob, File, FormData, DOMException, AbortSignal, process, process.env, performance, Object.getPrototypeOf(setTimeout(() => {}, 1))]) for (const target of [each, each.prototype]) if (target?.leak) found.push(String(each)); return { raw: found }',
  },
  {
    name: 'a change of a module',
    first:
      'const e = require("coffer/errors"); e.BadRequestError = 1; e.BasisTheoryReactorError.prototype.leak = 1; module.exports.leak = 1; return { raw: true }',
    second:
      'const e = require("coffer/errors"); return { raw: [typeof e.BadRequestError === "function" ? 0 : 1, e.BasisTheoryReactorError.prototype.leak, module.exports.leak].filter(Boolean) }',
  },
]

export const LEAKS = leaks.map((leak) => ({
  ...leak,
  first: handler(leak.first),
  second: handler(leak.second),
}))
