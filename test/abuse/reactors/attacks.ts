/** A table of known attacks by reactor code. Each entry says how the attack must end. */

/**
 * `time`: 408. `memory`, `log`, `calls`, `call size`: 500, because the host ended the run at the limit. `thrown`: 500
 * with an error that the code itself got. `invalid`: 422. `contained`: the code found nothing (`undefined`) or was
 * refused (`refused`).
 */
export type End = 'time' | 'memory' | 'log' | 'calls' | 'call size' | 'thrown' | 'invalid' | 'contained'

export interface Attack {
  name: string
  code: string
  /** Has several ends if the speed of the machine decides which limit is reached first. */
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

/** Returns the text of the object that `body` gets. */
const reach = (body: string) =>
  handler(
    `try { const got = await (async () => { ${body} })(); return { raw: String(got) } } catch (e) { return { raw: 'refused' } }`,
  )

function rows(ends: End[], bodies: readonly string[], wrap = handler): Attack[] {
  // Titles must be one line of ASCII.
  return bodies.map((body) => ({ name: body.replaceAll(/[^ -~]/g, '?'), code: wrap(body), ends }))
}

/** One attack for each of several words. */
const of = (words: string, write: (word: string) => string) => words.split(/\s+/).map(write)

const burning = rows(
  ['time'],
  [
    'for (;;);',
    'for (;;) try { for (;;); } finally { continue }',
    'const again = () => queueMicrotask(again); again(); await new Promise(() => {})',
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
      // Each promise waits for the next, and all promises are kept. Which limit is reached first depends on the version
      // of Node.
      'const again = () => Promise.resolve().then(again); await again()',
      'const a = []; for (;;) a.push(new Array(1e5).fill(0))',
      'const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })',
      'const o = {}; for (let i = 0; ; i++) o["k" + i] = [i]',
      'const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))',
      'const b = Buffer.alloc(4e9, 1); await new Promise(() => {})',
      'const a = []; for (;;) a.push(require("crypto").randomBytes(1e7))',
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
    // Short lines may exceed the time limit on a busy machine.
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
  // These calls may exceed the time limit on a busy machine.
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
      `process WebAssembly SharedArrayBuffer Atomics WeakRef FinalizationRegistry performance
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
    'return typeof (0, eval)("globalThis.process")',
    'return typeof (await (async function* () {}).constructor("return process")().next()).value',
    'try { Buffer.alloc("x") } catch (e) { return typeof e.constructor.constructor("return process")() }',
    'const f = () => { try { return f() } catch (e) { return e.constructor.constructor("return process")() } }; return typeof f()',
    'return typeof (function () { return this })()',
    'return (function f() { return f.caller })()',
    'let sites; const o = {}; Error.prepareStackTrace = (_, s) => { sites = s; return s }; Error.captureStackTrace(o); o.stack; return sites',
    'try { Buffer.alloc("x") } catch (e) { return e.stack || undefined }',
    'Error.stackTraceLimit = 100; return /guest|node:/.test(new Error("x").stack) ? "leaked" : undefined',
    ...of(
      `fs node:fs/promises child_process worker_threads vm module process net dgram dns inspector
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
    // In some versions of Node, a decoder kept its native handle in a property. The constructor of the handle, called
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
