/** What hostile reactor code has been seen to try, as a table. Each entry says how it has to end. */

/**
 * `time`: 408. `memory`, `log`, `calls`, `call size`: 500, ended by the host for that limit. `thrown`: 500 with what the
 * code itself was thrown. `invalid`: 422. `contained`: the code found nothing (`undefined`) or was refused (`refused`).
 */
export type End = 'time' | 'memory' | 'log' | 'calls' | 'call size' | 'thrown' | 'invalid' | 'contained'

export interface Attack {
  name: string
  code: string
  /** More than one where the speed of the machine decides which limit comes first. */
  ends: readonly End[]
}

/** Two invocations of one reactor: what the first leaves behind, the second must not find. */
export interface Leak {
  name: string
  first: string
  second: string
  /** The first leaves the child unfit, so that the second is given another. */
  endsChild?: true
}

const handler = (body: string) => `module.exports = async (req) => { ${body} }`

/** Gives back what `body` gets hold of, as text. */
const reach = (body: string) =>
  handler(
    `try { const got = await (async () => { ${body} })(); return { raw: String(got) } } catch (e) { return { raw: 'refused' } }`,
  )

function rows(ends: End[], bodies: Record<string, string>, wrap: (body: string) => string): Attack[] {
  return Object.entries(bodies).map(([name, body]) => ({ name, code: wrap(body), ends }))
}

const burning = rows(
  ['time'],
  {
    'a loop': 'for (;;);',
    'a loop in a finally block': 'for (;;) try { for (;;); } finally { continue }',
    'an endless for await': 'for await (const _ of (async function* () { for (;;) yield 1 })()) ;',
    'queueMicrotask without end':
      'const again = () => queueMicrotask(again); again(); await new Promise(() => {})',
    'a regular expression that backtracks for ever': 'return { raw: /^(a+)+$/.test("a".repeat(60) + "!") }',
    'a builtin that cannot be interrupted': 'return { raw: [].indexOf.call({ length: 2 ** 53 - 1 }, 0) }',
    'a join over a huge length': 'return { raw: [].reduce.call({ length: 2 ** 53 - 1 }, (a) => a, 0) }',
    'a promise that never settles': 'await new Promise(() => {})',
    'a result that is a thenable that never answers': 'return { then() {} }',
    'a thenable that answers with thenables': 'const t = { then(r) { r({ then: t.then }) } }; return t',
    'timers for ever': 'setInterval(() => {}, 1); await new Promise(() => {})',
    'setImmediate for ever': 'const again = () => setImmediate(again); again(); await new Promise(() => {})',
    'a getter of the result that loops': 'return { get raw() { for (;;); } }',
    'a toJSON that loops': 'return { raw: { toJSON() { for (;;); } } }',
    'a thrown error whose message loops': 'throw { get message() { for (;;); } }',
    'a thrown error whose status loops': 'throw { message: "x", get status() { for (;;); } }',
    'a thrown error whose errors loop':
      'throw { message: "x", status: 400, errors: new Proxy({}, { ownKeys() { for (;;); } }) }',
    'a console argument that loops': 'console.log(new Proxy({}, { ownKeys() { for (;;); } }))',
    'a call argument that loops': 'await req.svc.tokens.create({ toJSON() { for (;;); } })',
    'a sort that compares for ever': 'return { raw: [3, 2, 1].sort(() => { for (;;); }) }',
    'a key derivation of many rounds': 'require("crypto").pbkdf2Sync("a", "b", 2e9, 64, "sha512")',
    'a proxy that never stops giving keys': 'return { raw: new Proxy({}, { get() { for (;;); } }) }',
    'a conversion that loops': 'return { raw: `${{ [Symbol.toPrimitive]() { for (;;); } }}` }',
    'an iterator without end':
      'for (const _ of { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) });',
    'a call that is never awaited, then nothing':
      'req.svc.tokens.create({}).catch(() => {}); await new Promise(() => {})',
    'timers that cancel and set each other':
      'let a; const f = () => { clearTimeout(a); a = setTimeout(f, 0) }; f(); await new Promise(() => {})',
    'a loop that swallows every error': 'const f = () => { try { f() } catch { } }; for (;;) f()',
  },
  handler,
)

const burningWhileLoading: Attack[] = [
  { name: 'a loop before anything is exported', code: 'for (;;);', ends: ['time'] },
  {
    name: 'an exported getter that loops',
    code: 'Object.defineProperty(module, "exports", { get() { for (;;); } })',
    ends: ['time'],
  },
  {
    name: 'an exported proxy whose default loops',
    code: 'module.exports = new Proxy({}, { get() { for (;;); } })',
    ends: ['time'],
  },
]

const devouring = [
  ...rows(
    ['memory', 'time'],
    {
      // Each promise waits for the next and all are held; which runs out first differs between versions of Node.
      'an endless chain of microtasks': 'const again = () => Promise.resolve().then(again); await again()',
      'arrays in an array': 'const a = []; for (;;) a.push(new Array(1e5).fill(0))',
      'a growing map': 'const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })',
      'a growing set': 'const s = new Set(); for (let i = 0; ; i++) s.add("k" + i)',
      'a growing object': 'const o = {}; for (let i = 0; ; i++) o["k" + i] = [i]',
      'closures that hold closures': 'let f = () => 0; for (;;) { const g = f; f = () => g }',
      'promises that wait': 'const a = []; for (;;) a.push(new Promise(() => {}), Promise.resolve(a))',
      'buffers outside the heap': 'const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))',
      'array buffers outside the heap': 'const a = []; for (;;) a.push(new Uint8Array(1e7).fill(1))',
      'a buffer of gigabytes': 'const b = Buffer.alloc(4e9, 1); await new Promise(() => {})',
      'a generator that is collected':
        'const a = [...(function* () { for (let i = 0; ; i++) yield { i } })()]',
      'random bytes without end': 'const a = []; for (;;) a.push(require("crypto").randomBytes(1e7))',
      'encoded text without end': 'const a = []; for (;;) a.push(new TextEncoder().encode("é".repeat(1e6)))',
      'microtasks in a heap': 'for (;;) Promise.resolve().then(() => {})',
    },
    handler,
  ),
  ...rows(
    ['memory', 'thrown', 'time'],
    {
      'one string of half a gigabyte, flattened':
        'const s = "ab".repeat(2 ** 28 - 20); return { raw: JSON.stringify({ s: s + s.slice(1) }).length }',
      'a string that doubles': 'let s = "x"; for (;;) s = s + s + Buffer.from(s.slice(0, 8)).toString("hex")',
      'a result that shares one part a billion times':
        'let a = ["x".repeat(100)]; for (let i = 0; i < 30; i++) a = [a, a]; return { raw: a }',
      'a sort of many elements':
        'const a = new Array(2 ** 26).fill(0).map(Math.random); a.sort(); return { raw: 1 }',
      'a normalization that grows': 'return { raw: "\\uFDFA".repeat(2 ** 26).normalize("NFKD").length }',
      'an exponent of many digits': 'return { raw: String((7n ** 299999999n) % 5n) }',
      'a number of a billion digits': 'let n = 1n << 30n; for (;;) n = n * n',
      'a fill of the longest array': 'return { raw: new Array(2 ** 32 - 1).fill({}).length }',
      'a replacement that multiplies':
        'return { raw: "a".repeat(2 ** 20).replace(/a/g, "b".repeat(2 ** 12)).length }',
      'a scrypt of gigabytes':
        'require("crypto").scryptSync("a", "b", 64, { N: 2 ** 21, r: 16, p: 1, maxmem: 2 ** 33 }); await new Promise(() => {})',
      'more timers than may be': 'for (;;) setTimeout(() => {}, 1e6)',
    },
    handler,
  ),
]

const flooding = [
  ...rows(
    // Short lines may take longer than the time there is, on a busy machine.
    ['log', 'time'],
    {
      'lines without end': 'for (;;) console.log("x".repeat(1000))',
      'short lines without end': 'for (;;) console.error(1)',
      'lines from timers':
        'setInterval(() => { for (let i = 0; i < 1e4; i++) console.warn("flood", i) }, 1); await new Promise(() => {})',
    },
    handler,
  ),
  ...rows(
    ['calls', 'time'],
    {
      'calls without end': 'for (;;) await req.svc.tokens.list({}).catch(() => {})',
      'calls that are not awaited':
        'for (let i = 0; i < 1e5; i++) req.svc.tokens.list({}).catch(() => {}); await new Promise(() => {})',
      'fetches without end': 'for (;;) await fetch("http://localhost").catch(() => {})',
    },
    handler,
  ),
  ...rows(
    ['call size', 'time'],
    {
      'calls of a megabyte':
        'for (let i = 0; i < 100; i++) req.svc.tokenize("x".repeat(1e6)).catch(() => {}); await new Promise(() => {})',
    },
    handler,
  ),
  // On a busy machine they may take longer than the time there is.
  ...rows(
    ['thrown', 'time'],
    {
      'a result of endless depth': 'let a = 1; for (let i = 0; i < 1e5; i++) a = [a]; return { raw: a }',
      'one call of ten megabytes': 'await req.svc.tokenize("x".repeat(1e7))',
    },
    handler,
  ),
  ...rows(
    ['thrown'],
    {
      'a result that is too long': 'return { raw: "x".repeat(2 ** 20) }',
      'a result of too many tokens': 'return { tokenize: Array(2e5).fill("12345") }',
      'a result in circles': 'const a = {}; a.a = a; return { raw: a }',
      'a result deeper than is taken': 'let a = 1; for (let i = 0; i < 100; i++) a = [a]; return { raw: a }',
      'a result that reaches prototypes': 'return { raw: JSON.parse(`{"__proto__": {"polluted": 1}}`) }',
      'a result with half a character': 'return { raw: "\\ud800" }',
      'a result that JSON has no text for': 'return { raw: 10n }',
      'a stack that overflows': 'const f = () => f() + 1; return { raw: f() }',
      'an error of ten megabytes': 'throw new Error("x".repeat(1e7))',
      'null, thrown': 'throw null',
      'a proxy that throws, thrown':
        'throw new Proxy({}, { get() { throw new Error("no") }, getPrototypeOf() { throw new Error("no") } })',
      'an error from a timer':
        'setTimeout(() => { throw new Error("late") }, 1); await new Promise(() => {})',
      'a rejection that nobody handles': 'Promise.reject(new Error("lost")); await new Promise(() => {})',
      'an error with a status out of range': 'throw Object.assign(new Error("x"), { status: 200 })',
    },
    handler,
  ),
]

const spelled: Attack[] = rows(
  ['invalid'],
  {
    'import() as it is': 'await import("fs")',
    'import() around a comment': 'await import/* */("fs")',
    'import() around a line separator': 'await import\u2028("fs")',
    'import() in a template': 'return { raw: `${await import("fs")}` }',
    'import.meta': 'return { raw: import.meta.url }',
    'a direct eval': 'return { raw: eval("process") }',
    'a direct eval with an escape': 'return { raw: \\u0065val("process") }',
    'an end of the wrapper': '}); process.exit(); (function () {',
    'an end of the wrapper by a comment': '*/ }); process.exit(); /*',
    'an HTML-like comment': 'let a = 1; a <!-- process.exit()\n return { raw: a }',
    'sloppy mode by with': 'with (req) { return { raw: args } }',
    'an octal literal': 'return { raw: 010 }',
    'a module declaration': 'import fs from "fs"',
  },
  handler,
)

const escaping = rows(
  ['contained'],
  {
    'process by its name': 'return typeof process',
    'process by the global object': 'return typeof globalThis.process',
    'process through the constructor of a literal':
      'return typeof (0).constructor.constructor("return process")()',
    'process through Function':
      'return typeof Function("return typeof process === `object` ? process : undefined")()',
    'process through an indirect eval': 'return typeof (0, eval)("globalThis.process")',
    'process through the constructor of async functions':
      'return typeof await (async () => {}).constructor("return process")()',
    'process through the constructor of generators':
      'return typeof (function* () {}).constructor("return process")().next().value',
    'process through the constructor of async generators':
      'return typeof (await (async function* () {}).constructor("return process")().next()).value',
    'process through the constructor of require': 'return typeof require.constructor("return process")()',
    'process through the constructor of console.log':
      'return typeof console.log.constructor("return process")()',
    'process through the constructor of the client':
      'return typeof req.svc.tokens.create.constructor("return process")()',
    'process through the constructor of the request':
      'return typeof req.constructor.constructor("return process")()',
    'process through the constructor of module':
      'return typeof module.constructor.constructor("return process")()',
    'process through the constructor of a timer': 'return typeof setTimeout.constructor("return process")()',
    'process through the constructor of a promise of the host':
      'return typeof fetch("http://localhost").catch(() => {}).constructor.constructor("return process")()',
    'process through an error of the host':
      'try { Buffer.alloc("x") } catch (e) { return typeof e.constructor.constructor("return process")() }',
    'process through an error of atob':
      'try { atob("%%%") } catch (e) { return typeof e.constructor.constructor("return process")() }',
    'process through an overflow of the stack':
      'const f = () => { try { return f() } catch (e) { return e.constructor.constructor("return process")() } }; return typeof f()',
    'process through this': 'return typeof (function () { return this })()',
    'process through the caller': 'return (function f() { return f.caller })()',
    'process through arguments.callee': 'return (function () { return arguments.callee })()',
    'the call sites of an error':
      'let sites; Error.prepareStackTrace = (_, s) => { sites = s }; new Error("x").stack; return sites && sites[0].getThis()',
    'the call sites by captureStackTrace':
      'let sites; const o = {}; Error.prepareStackTrace = (_, s) => { sites = s; return s }; Error.captureStackTrace(o); o.stack; return sites',
    'the stack of an error': 'return new Error("x").stack || undefined',
    'the stack of an error of the host':
      'try { Buffer.alloc("x") } catch (e) { return e.stack || undefined }',
    'a longer stack':
      'Error.stackTraceLimit = 100; return /guest|node:/.test(new Error("x").stack) ? "leaked" : undefined',
    'the file system': 'return typeof require("fs")',
    'the file system by its full name': 'return typeof require("node:fs/promises")',
    'child processes': 'return typeof require("child_process")',
    'worker threads': 'return typeof require("worker_threads")',
    'virtual machines': 'return typeof require("vm")',
    'the module system': 'return typeof require("module")',
    'the process module': 'return typeof require("process")',
    sockets: 'return typeof require("net")',
    datagrams: 'return typeof require("dgram")',
    'name resolution': 'return typeof require("dns")',
    'the inspector': 'return typeof require("inspector")',
    'a file by its path': 'return typeof require("/etc/passwd")',
    'a file by a relative path': 'return typeof require("../../../../etc/passwd")',
    'a file by a path in a scope': 'return typeof require("@x/../../../etc/passwd")',
    'a module named as a property of objects': 'return typeof require("constructor")',
    'a module named __proto__': 'return typeof require("__proto__")',
    'the cache of modules': 'return require.cache',
    'the main module': 'return require.main',
    'a loader of module': 'return module.constructor._load',
    'process.binding': 'return globalThis.process?.binding("fs")',
    'process in a compartment of its own': 'return typeof new Compartment({}).evaluate("globalThis.process")',
    'a module in a compartment of its own': 'return (await new Compartment({}).import("fs")).namespace',
    'an import hook':
      'return (await new Compartment({ globals: {}, __options__: true, importHook: async () => ({ imports: [], exports: [], execute() {} }) }).import("node:fs")).namespace?.readFileSync',
    'another lockdown': 'return globalThis.lockdown?.()',
    'the stacks that the lockdown keeps': 'return globalThis.getStackString',
    'the details that assert keeps':
      'try { assert.fail(assert.details`x ${1}`) } catch (e) { return e.stack || undefined }',
    'process through the constructor of events':
      'return typeof new Event("a").constructor.constructor("return process")()',
    'process through a clone':
      'return typeof structuredClone(new Error("x")).constructor.constructor("return process")()',
    WebAssembly: 'return typeof WebAssembly',
    'shared memory': 'return typeof SharedArrayBuffer',
    'waiting on shared memory': 'return typeof Atomics',
    'weak references, which show the collector at work': 'return typeof WeakRef',
    finalizers: 'return typeof FinalizationRegistry',
    'high-resolution time': 'return typeof performance',
    'messages to the parent': 'return typeof globalThis.postMessage',
    'channels between threads': 'return typeof BroadcastChannel',
    'an inspection that hands out inspect':
      'let got; console.log({ [Symbol.for("nodejs.util.inspect.custom")]: (d, o, inspect) => { got = inspect } }); return got',
    'an inspection through a buffer':
      'let got; const b = Buffer.from("x"); b.a = { [Symbol.for("nodejs.util.inspect.custom")]: (d, o, i) => { got = i } }; b[Symbol.for("nodejs.util.inspect.custom")](2, { customInspect: true }); return got',
    'an inspection through a URL':
      'class U extends URL { get href() { return { [Symbol.for("nodejs.util.inspect.custom")]: (d, o, i) => { got = i } } } } let got; new U("http://a")[Symbol.for("nodejs.util.inspect.custom")](2, {}); return got',
    'an inspection with options of its own':
      'let got; require("util").inspect({ a: { [Symbol.for("nodejs.util.inspect.custom")]: (d, o, i) => { got = i } } }, { customInspect: true }); return got',
    'the pool of buffers': 'return Buffer.from("x").buffer.byteLength === 1 ? undefined : "pool"',
    'memory that was used before':
      'return Buffer.allocUnsafe(1e5).some((b) => b !== 0) ? "dirty" : undefined',
    'slow memory that was used before':
      'return Buffer.allocUnsafeSlow(1e5).some((b) => b !== 0) ? "dirty" : undefined',
    'the emitter behind a hash': 'return require("crypto").createHash("sha256").on',
    'the stream behind a cipher':
      'return require("crypto").createCipheriv("aes-256-gcm", Buffer.alloc(32), Buffer.alloc(12)).pipe',
    'the timer behind a number': 'return setTimeout(() => {}, 1e6)._idlePrev',
    'a change of Object.prototype': 'Object.prototype.polluted = 1; return ({}).polluted',
    'a change of Array.prototype.push': 'Array.prototype.push = () => "mine"; return undefined',
    'a change of JSON.stringify': 'JSON.stringify = () => `{"kind":"ready"}`; return undefined',
    'a change of Promise.prototype.then': 'Promise.prototype.then = () => {}; return undefined',
    'a then for every object': 'Object.prototype.then = (r) => r("mine"); return undefined',
    'a setter for every object':
      'Object.defineProperty(Object.prototype, "stack", { set(v) { globalThis.got = v } }); return globalThis.got',
    'a change of a facade': 'require("crypto").createHash = () => "mine"; return undefined',
    'a change of a shared class':
      'URL.prototype.toString = () => "mine"; return String(new URL("http://a/")) === "mine" ? "mine" : undefined',
    'the prototype of the prototype': 'return ({}).__proto__',
    'a prototype set by its accessor':
      'const o = {}; o.__proto__ = { a: 1 }; return Object.getPrototypeOf(o) === Object.prototype ? undefined : "moved"',
    'the environment': 'return globalThis.process?.env',
    'the time zone of the machine':
      'return Intl.DateTimeFormat().resolvedOptions().timeZone === "UTC" ? undefined : "zone"',
    'a signal to the host': 'return globalThis.process?.kill(1)',
    'an end of the child': 'return globalThis.process?.exit()',
    'a client without an application': 'return req.svc.tokens.destroyEverything',
    'a call that the client does not have': 'return await req.svc.tokens.create.call(null, "__proto__")',
    'a host on this machine': 'return await fetch("http://127.0.0.1:80/")',
    'a host on this machine, as a number': 'return await fetch("http://2130706433/")',
    'a host on this machine, mapped': 'return await fetch("http://[::ffff:127.0.0.1]/")',
    'a service that hands out credentials': 'return await fetch("http://169.254.169.254/latest/meta-data/")',
    'a host in front of an at sign': 'return await fetch("http://api.example.com@127.0.0.1/")',
    'a file by its URL': 'return await fetch("file:///etc/passwd")',
    'data by its URL': 'return await fetch("data:text/plain,x")',
    'an object by its URL': 'return typeof URL.createObjectURL',
    'a request through require': 'return await require("node-fetch")("http://127.0.0.1/")',
  },
  reach,
)

/** A decoder of Node's kept its native handle in a property: its constructor, called without a receiver, gave the global. */
const handleOf = (label: string, options: string) =>
  `const d = new TextDecoder('${label}', ${options}); d.decode(new Uint8Array([0xd8, 0]), { stream: true }); return Reflect.ownKeys(d).map((key) => { const C = d[key]?.constructor; try { return C().process.version } catch {} }).find(Boolean)`

/** Gives back what a hostile argument was called with, or by, other than itself. */
const spy =
  'const got = []; const see = function (...all) { for (const each of [this, ...all]) if (Object(each) === each && each !== hostile && each !== globalThis) got.push(each); return "a" }; const hostile = { toString: see, valueOf: see, toJSON: see, [Symbol.toPrimitive]: see, get length() { see.call(this); return 1 } }'
const spied =
  'return got.length === 0 ? undefined : got.map((each) => Object.getOwnPropertyNames(each)).join()'

const reaching = rows(
  ['contained'],
  {
    ...Object.fromEntries(
      ['utf-16be', 'utf-16le', 'gbk', 'shift_jis', 'euc-kr', 'utf-8'].flatMap((label) =>
        ['{}', '{ fatal: true }'].map((options) => [
          `the handle of a decoder, ${label} ${options}`,
          handleOf(label, options),
        ]),
      ),
    ),
    'import() by the constructor of functions': 'return typeof await Function(`return im` + `port("fs")`)()',
    'import() by the constructor of async functions':
      'return typeof await (async () => {}).constructor("return im" + "port(`node:fs`)")()',
    'import() by an indirect eval': 'return typeof await (0, eval)("im" + "port(`fs`)")',
    'import() around a comment, in text': 'return typeof await new Function("return import/**/(`fs`)")()',
    'a compartment': 'return typeof Compartment === "undefined" ? undefined : Compartment',
    'what the lockdown calls its own': 'return globalThis.harden ?? globalThis.assert ?? globalThis.lockdown',
    'a native method of a buffer':
      'const b = Buffer.from("a"); return b.latin1Slice ?? b.utf8Write ?? b.hexSlice ?? b.parent ?? b.inspect ?? b.asciiWrite',
    'the class that buffers are made with':
      'const f = Buffer[Symbol.species]; return f === Buffer && Buffer.from("a").slice(0).constructor === Buffer ? undefined : f',
    'a class that is not named':
      'return Object.getPrototypeOf(Buffer) === Uint8Array && Object.getPrototypeOf(Buffer.prototype) === Uint8Array.prototype ? undefined : Object.getPrototypeOf(Buffer)',
    'a species of its own': `${spy}; const b = Buffer.from("abc"); b.constructor = { [Symbol.species]: function (...all) { see(...all.filter((each) => each !== b.buffer)); return new Uint8Array(3) } }; b.slice(1); b.subarray(1); b.map((x) => x); b.filter(() => true); ${spied}`,
    'a conversion of an argument, by text': `${spy}; for (const work of [atob, btoa, (x) => new URL(x), (x) => new URLSearchParams(x), (x) => new TextDecoder(x), (x) => new TextEncoder().encode(x), (x) => Buffer.from(x), (x) => Buffer.from("a", x), (x) => Buffer.alloc(2, x), (x) => new Headers({ a: x }), (x) => new Request(x), (x) => new Event(x)]) try { work(hostile) } catch {} ; ${spied}`,
    'a conversion of an argument, in crypto': `${spy}; const c = require("crypto"); for (const name of Object.keys(c)) if (typeof c[name] === "function") for (const all of [[hostile], ["sha256", hostile], ["aes-256-gcm", hostile, hostile], [hostile, hostile, 1, 8, "sha1"], [8, hostile]]) try { c[name](...all) } catch {} ; for (const name of Object.keys(crypto.subtle)) await crypto.subtle[name](hostile, hostile, hostile, hostile, hostile).catch(() => {}); ${spied}`,
    'a conversion of what is printed': `${spy}; console.log(hostile, "%s %d %j %o %i %f %c", hostile); console.log("%s %d %j %o %O %i %f %c", ...Array(8).fill(hostile)); require("util").inspect(hostile); require("util").format("%s", hostile); ${spied}`,
    'traps of a proxy as options':
      'let got; const p = new Proxy({}, { get: (t, k, r) => { if (r !== p) got = r; return p }, ownKeys: () => ["a"], getOwnPropertyDescriptor: () => ({ value: p, enumerable: true, configurable: true }) }); for (const work of [() => require("crypto").createCipheriv("aes-256-gcm", Buffer.alloc(32), p, p), () => require("crypto").scryptSync("a", "b", 1, p), () => require("crypto").generateKeyPairSync("rsa", p), () => new TextDecoder("gbk", p), () => new Response("", p), () => structuredClone(p)]) try { work() } catch {} ; return got',
    'properties of memory that say otherwise':
      'let got; const b = new ArrayBuffer(4); for (const name of ["byteLength", "slice", "constructor", "maxByteLength"]) Object.defineProperty(b, name, { get() { got = "read"; return 1e9 } }); const u = new Uint8Array(4); for (const name of ["buffer", "byteOffset", "byteLength", "length"]) Object.defineProperty(u, name, { get() { got = "read"; return 1e9 } }); for (const work of [(x) => Buffer.from("a").equals(x), (x) => require("crypto").createHash("sha256").update(x), (x) => new TextDecoder().decode(x), (x) => crypto.getRandomValues(x)]) for (const x of [b, u]) try { work(x) } catch {} ; return got',
    'memory that is given away in between':
      'const b = Buffer.from(new ArrayBuffer(8)); b.toString(); b.buffer.transfer?.(); const before = b.length; try { b.writeUInt8(1, 0) } catch {} return before > 0 && b.buffer.detached ? "kept" : undefined',
    'memory that shrinks':
      'const m = new ArrayBuffer(64, { maxByteLength: 64 }); const b = Buffer.from(m); b.fill(1); m.resize?.(8); try { return b.toString("latin1").length > 8 && m.byteLength === 8 ? "kept" : undefined } catch { return undefined }',
    'an error of another realm by an overflow in every facade':
      'const works = [() => Buffer.from("a").toString("hex"), () => new TextDecoder("gbk").decode(new Uint8Array(2)), () => new URL("http://a").href, () => require("crypto").createHash("md5").update("a").digest(), () => atob("aa=="), () => crypto.randomUUID(), () => require("util").inspect({ a: [1] }), () => require("querystring").parse("a=b"), () => structuredClone([{}])]; const kinds = [Error, RangeError, TypeError, EvalError, SyntaxError].map((kind) => Object.getPrototypeOf(Object.create(kind.prototype))); let got; const look = (e) => { if (!kinds.includes(Object.getPrototypeOf(e))) got = e }; for (const work of works) { let left = 50; const f = () => { try { f() } catch (e) { if (left-- > 0) { look(e); try { work() } catch (x) { look(x) } } throw e } }; try { f() } catch (e) { look(e) } } return got',
    'call sites inside of a facade':
      'let got; try { Error.prepareStackTrace = (e, sites) => { got = sites } } catch {} const o = {}; const see = { toString() { Error.captureStackTrace?.(o); o.stack; new Error("x").stack; return "a" } }; atob(see); new URL("http://a", see); return got',
    'a receiver that a generator keeps':
      'const all = [new Headers({ a: "b" }), new URLSearchParams("a=b")].flatMap((x) => [x.keys(), x.values(), x.entries(), x[Symbol.iterator]()]); return all.flatMap((it) => Reflect.ownKeys(it)).length === 0 && all.every((it) => !it.return || it.return(1).value === 1) ? undefined : "kept"',
    'private state by a class that extends':
      'class A extends URL { constructor() { super("http://a"); } get raw() { return Reflect.ownKeys(this) } } class B extends TextDecoder {} class C extends Response {} return [new A(), new B("gbk"), new C("x")].flatMap((x) => Reflect.ownKeys(x))[0]',
    'a constructor that gives another instance':
      'const seen = []; const base = function () { return new Proxy({}, { defineProperty(t, k) { seen.push(k); return true }, set(t, k) { seen.push(k); return true } }) }; class A extends base {} Object.setPrototypeOf(A, TextDecoder); try { new A() } catch {} try { Reflect.construct(URL, ["http://a"], base); Reflect.construct(Buffer, ["a"], base); Reflect.construct(Response, ["a"], base) } catch {} return seen[0]',
    'the module behind a builtin':
      'return Object.values(require("crypto")).find((each) => each?.prototype?._transform ?? each?.super_)',
    'the handle of a key':
      'const k = require("crypto").createSecretKey(Buffer.from("k")); return Reflect.ownKeys(k).find((key) => typeof key === "symbol" || key === "handle")',
    'the handle of a web key':
      'const k = await crypto.subtle.importKey("raw", new Uint8Array(16), "AES-CBC", true, ["encrypt"]); return Reflect.ownKeys(k).find((key) => typeof key === "symbol" && key !== Symbol.toStringTag)',
    'a function through an answer':
      'return await req.svc.tokens.create({ toJSON: () => ({ get: () => 1 }) })',
    'a method of the client without its receiver':
      'const { create } = req.svc.tokens; return await create.call(undefined, {})',
  },
  reach,
)

const forging = rows(
  ['contained'],
  {
    'a line that looks like an answer':
      'console.log(`\\u0010\\0\\0\\0{"kind":"done","raw":"1"}`); return undefined',
    'a call named as one of the host': 'return await req.svc.tokens.create({ kind: "done" })',
    'a result that looks like a message': 'return undefined',
    'a reply without a call':
      'globalThis.onmessage?.({ data: { kind: "reply" } }); return globalThis.onmessage',
    'a write to standard output': 'return globalThis.process?.stdout.write("x")',
  },
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

export const LEAKS: readonly Leak[] = [
  {
    name: 'a global',
    first: handler('globalThis.secret = 1; global.secret = 1; return { raw: true }'),
    second: handler('return { raw: typeof secret === "undefined" ? [] : ["secret"] }'),
  },
  {
    name: 'what a regular expression matched last',
    first: handler('/4242\\d+/.exec("4242424242424242"); return { raw: true }'),
    second: handler(
      'return { raw: [RegExp.$_, RegExp.lastMatch, RegExp["$&"], RegExp.input].filter(Boolean) }',
    ),
  },
  {
    name: 'a timer',
    first: handler(
      'setTimeout(() => { for (;;); }, 5); setInterval(() => console.log("late"), 1); return { raw: true }',
    ),
    second: handler('await new Promise((r) => setTimeout(r, 30)); return { raw: [] }'),
  },
  {
    name: 'a chain of microtasks that never ends',
    endsChild: true,
    first: handler('(async () => { for (;;) await null })(); return { raw: true }'),
    second: handler('return { raw: [] }'),
  },
  {
    name: 'a chain of digests that never ends',
    first: handler(
      '(async () => { for (;;) await crypto.subtle.digest("SHA-256", new Uint8Array(1)) })(); return { raw: true }',
    ),
    second: handler('await new Promise((r) => setTimeout(r, 20)); return { raw: [] }'),
  },
  {
    name: 'a chain of calls that never ends',
    first: handler(
      '(async () => { for (;;) await req.svc.tokens.list({}).catch(() => {}) })(); return { raw: true }',
    ),
    second: handler('await new Promise((r) => setTimeout(r, 20)); return { raw: [] }'),
  },
  {
    name: 'the bytes of a buffer',
    first: handler(
      'for (let i = 0; i < 100; i++) Buffer.from("4242424242424242".repeat(10)); return { raw: true }',
    ),
    second: handler(
      'const found = []; for (let i = 0; i < 100; i++) { const b = Buffer.allocUnsafe(160); if (b.includes("4242")) found.push(i); const p = Buffer.from("x"); if (p.buffer.byteLength > 1) found.push("pool") } return { raw: found }',
    ),
  },
  {
    name: 'a symbol, a limit and a formatter of stacks',
    first: handler(
      'Symbol.for("left"); try { Error.stackTraceLimit = 7 } catch {} try { Error.prepareStackTrace = () => "left" } catch {} return { raw: true }',
    ),
    second: handler(
      'return { raw: [Error.stackTraceLimit === 7 && "limit", new Error("x").stack === "left" && "stack", Object.getOwnPropertySymbols(globalThis).includes(Symbol.for("left")) && "symbol"].filter(Boolean) }',
    ),
  },
  {
    name: 'a promise that settles late',
    first: handler(
      'const late = () => { console.log("late"); throw new Error("late") }; crypto.subtle.digest("SHA-256", new Uint8Array(1e6)).then(late); require("crypto").pbkdf2("a", "b", 1e4, 8, "sha1", late); require("crypto").randomBytes(1e5, late); req.svc.tokens.list({}).then(late, late); setImmediate(late); return { raw: true }',
    ),
    second: handler(
      'await new Promise((r) => setTimeout(r, 40)); await crypto.subtle.digest("SHA-256", new Uint8Array(1)); return { raw: [] }',
    ),
  },
  {
    name: 'state of a locale, a decoder and a generator of numbers',
    first: handler(
      'new Intl.DateTimeFormat("de", { timeZone: "Asia/Tokyo" }).format(); new TextDecoder("gbk").decode(new Uint8Array([0x81]), { stream: true }); require("util").inspect.defaultOptions; try { Math.seed = 1 } catch {} try { Intl.left = 1 } catch {} return { raw: true }',
    ),
    second: handler(
      'return { raw: [new Intl.DateTimeFormat().resolvedOptions().timeZone === "UTC" ? 0 : "zone", new TextDecoder("gbk").decode(new Uint8Array([65])) === "A" ? 0 : "bytes", Math.seed, Intl.left].filter(Boolean) }',
    ),
  },
  {
    name: 'a change of a module',
    first: handler(
      'const e = require("coffer/errors"); e.BadRequestError = 1; e.ReactorError.prototype.leak = 1; module.exports.leak = 1; return { raw: true }',
    ),
    second: handler(
      'const e = require("coffer/errors"); return { raw: [typeof e.BadRequestError === "function" ? 0 : 1, e.ReactorError.prototype.leak, module.exports.leak].filter(Boolean) }',
    ),
  },
  {
    name: 'the listeners and options of inspection',
    first: handler(
      'try { require("util").inspect.defaultOptions = { depth: 0 } } catch {} return { raw: true }',
    ),
    second: handler(
      'return { raw: require("util").inspect({ a: { b: 1 } }).includes("b: 1") ? [] : ["changed"] }',
    ),
  },
]
