/**
 * Child processes for reactor code: how they start, their messages, the measured memory, and the confinement outside
 * the realm.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import t from 'tap'
import { encodeFrame, FrameReader } from '../../src/ipc/frames.js'
import { GuestProcess } from '../../src/reactor/child.js'
import { describeLaunch, findGuestFile } from '../../src/reactor/confinement.js'
import { readGuestMessage } from '../../src/reactor/messages.js'
import { DEFAULT_LIMITS, guestSizeOf } from '../../src/reactor/settings.js'
import { createMemoryMeter } from '../../src/reactor/watchdog.js'

const launchOf = (version: string, platform = 'linux', modulesDirectory?: string, wrapper: string[] = []) =>
  describeLaunch({
    node: { path: '/usr/bin/node', version, platform },
    guestFile: '/app/guest.mjs',
    modulesDirectory,
    size: guestSizeOf(DEFAULT_LIMITS, false),
    confinement: { wrapper },
  })

t.test('a child process gets the flags that its version of Node supports', async (t) => {
  for (const [version, flag, isGiven] of [
    ['20.19.0', '--experimental-permission', true],
    ['22.12.0', '--experimental-permission', true],
    ['22.13.0', '--permission', true],
    ['26.1.0', '--permission', true],
    ['22.13.1', '--disable-sigusr1', false],
    ['22.14.0', '--disable-sigusr1', true],
    ['22.4.1', '--no-experimental-sqlite', false],
    ['22.5.0', '--no-experimental-sqlite', true],
  ] as const)
    t.equal(launchOf(version).args.includes(flag), isGiven, `${version} ${flag}`)
})

t.test(
  'the guest may read only its own file and the bundles, and if there is a shell, the shell limits the resources of the guest',
  async (t) => {
    const { command, args } = launchOf('20.19.0', 'linux', undefined, ['unshare', '--net'])
    t.equal(command, '/bin/sh')
    t.match(args[1], /ulimit -c 0\nulimit -t "\$1"/)
    t.match(args[1], '\nexec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-\nexec "$@"')
    t.same(args.slice(2, 9).join(' '), 'sh 130 unshare --net /usr/bin/env -i TZ=UTC')
    const flags =
      '--experimental-permission --max-old-space-size=128 --no-addons --disable-proto=delete --zero-fill-buffers --no-warnings --allow-fs-read=/app/guest.mjs'
    t.same(args.slice(9).join(' '), `/usr/bin/node ${flags} /app/guest.mjs`)
    const bundles = '--allow-fs-read=/app/guest.mjs --allow-fs-read=/bundles/* /app/guest.mjs /bundles'
    t.equal(launchOf('20.19.0', 'linux', '/bundles').args.slice(-4).join(' '), bundles)
    t.equal(launchOf('20.19.0', 'win32').command, '/usr/bin/node')
  },
)

t.test(
  'a child for asynchronous runs has more CPU time, and a child for large resources has more memory',
  async (t) => {
    const argsOf = (factor: number, isAsync: boolean) =>
      describeLaunch({
        node: { path: '/usr/bin/node', version: '20.19.0', platform: 'linux' },
        guestFile: '/app/guest.mjs',
        size: guestSizeOf({ ...DEFAULT_LIMITS, memoryMiB: 128 * factor }, isAsync),
        confinement: { wrapper: [] },
      }).args
    t.equal(argsOf(1, false)[3], '130')
    t.equal(argsOf(1, true)[3], '1870')
    t.ok(argsOf(4, false).includes('--max-old-space-size=512'))
  },
)

t.test('if a message to a guest process cannot be written, only this guest is ended', async (t) => {
  const node = { path: process.execPath, version: process.versions.node, platform: process.platform }
  const guest = new GuestProcess({
    node,
    guestFile: '/none.mjs',
    size: guestSizeOf(DEFAULT_LIMITS, false),
    confinement: { wrapper: [] },
  })
  // JSON cannot express a BigInt, so this message cannot be written.
  await guest.send({ kind: 'check', code: 1n as unknown as string })
  await guest.ended
  t.equal(await guest.ready, false)
})

t.test(
  'the measured memory of a process is close to the memory that the process itself reports',
  { skip: process.platform === 'win32' },
  async (t) => {
    for (const platform of process.platform === 'linux' ? ['linux', 'darwin'] : [process.platform]) {
      const meter = createMemoryMeter(platform, { readFileSync, execFileSync })
      const readMiB = meter(process.pid) ?? 0
      const ownMiB = process.memoryUsage.rss() / 2 ** 20
      t.ok(Math.abs(readMiB - ownMiB) < ownMiB / 4, platform, { readMiB, ownMiB })
      t.equal(meter(2 ** 22 + 1), undefined, 'a missing process has no memory')
    }
  },
)

t.test(
  'messages of a guest process are read as they were written, however the stream is split',
  async (_t) => {
    const cut = fc.integer({ min: 1, max: 40 })
    const cuts = fc.array(cut, { minLength: 1, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { maxLength: 6 }), cuts, async (messages, cuts) => {
        const stream = Buffer.concat(messages.map((message) => encodeFrame(message)))
        const reader = new FrameReader()
        const found: unknown[] = []
        for (let at = 0, turn = 0; at < stream.length; at += cuts[turn++ % cuts.length]!) {
          reader.add(stream.subarray(at, at + cuts[turn % cuts.length]!))
          for (let frame = reader.next(1_000_000); frame !== undefined; frame = reader.next(1_000_000))
            found.push(JSON.parse(frame.toString()))
        }
        return JSON.stringify(found) === JSON.stringify(messages)
      }),
    )
  },
)

t.test('a frame with an excessive length ends the stream before the frame is held in memory', async (t) => {
  const reader = new FrameReader()
  reader.add(encodeFrame('short'))
  t.equal(reader.next(100)?.toString(), '"short"')
  const claim = Buffer.alloc(4)
  claim.writeUInt32BE(101)
  reader.add(claim)
  t.equal(reader.next(100)?.length, 0)
})

const plain = { maxBytes: 1000, maxBodyBytes: 0 }
const transform = { maxBytes: 1000, maxBodyBytes: 3 }
const read = (text: string, most = plain) => readGuestMessage(Buffer.from(text), most)

t.test('a message of a guest has a body only if messages of its kind may have a body', async (t) => {
  const frame = encodeFrame({ kind: 'done' }, Buffer.from('\n{}')).subarray(4)
  t.same(readGuestMessage(frame, transform), { kind: 'done', body: Buffer.from('\n{}') })
  t.equal(readGuestMessage(frame, { maxBytes: 1000, maxBodyBytes: 2 }), undefined)
  t.equal(read('{"kind":"done"}\n'), undefined)
  t.equal(read('{"kind":"idle"}\n', transform), undefined)
  t.equal(read(JSON.stringify({ kind: 'log', level: 'log', text: 'x'.repeat(1000) }), transform), undefined)
})

t.test(
  'a message of a guest that is not JSON or does not have the shape of a known kind is refused',
  async (t) => {
    const good = [
      { kind: 'ready' },
      { kind: 'idle' },
      { kind: 'log', level: 'log', text: 'x' },
      { kind: 'call', call: 1, name: 'tokens.create', args: '[]' },
      { kind: 'done' },
      { kind: 'done', raw: '1', tokenize: '2' },
      { kind: 'done', failure: { kind: 'invalid', message: 'x', line: 1, column: 2 } },
      {
        kind: 'done',
        failure: { kind: 'thrown', message: 'x', status: 400, errors: { a: ['b'] }, stack: 's' },
      },
    ]
    for (const message of good) t.same(read(JSON.stringify(message)), message)
    const bad = [
      ...['', '{', 'null', '[]', '1', '{}', '{"kind":"constructor"}', '{"kind":"__proto__"}'],
      '{"kind":"log","level":"log"}',
      '{"kind":"call","call":"1","name":"a","args":"[]"}',
      '{"kind":"done","raw":1}',
      '{"kind":"done","body":"x"}',
      '{"kind":"done","failure":{}}',
      '{"kind":"done","failure":{"kind":"thrown","message":"x","errors":{"a":"b"}}}',
    ]
    for (const text of bad) t.equal(read(text), undefined, text)
  },
)

/**
 * This code runs in the script of the guest process, where it can use the variables of the script. The code writes its
 * findings to standard error.
 */
const PROBE = `
const kept = { process, evaluate: globalThis.eval, Function: globalThis.Function, writeSync: fromNode$('node:fs').writeSync }
START
const functionsOf = (value) => {
  const found = []
  for (let level = value; level !== null && level !== Object.prototype; level = Object.getPrototypeOf(level))
    for (const key of Reflect.ownKeys(level)) if (typeof value[key] === 'function') found.push(String(key))
  return found
}
const attempt = async (work) => { try { return String(Object.keys(await work())) } catch (error) { return 'refused' } }
const looks = async () => {
  const found = {
    global: Reflect.ownKeys(globalThis).map(String),
    intl: Object.getOwnPropertyNames(Intl),
    process: functionsOf(kept.process),
    environment: Object.keys(kept.process.env),
    handles: ['_getActiveHandles', 'stdout', 'stdin', 'mainModule', 'binding', 'report'].filter((name) => kept.process[name] !== undefined),
    imports: [
      await attempt(() => kept.evaluate('import("node:net")')),
      await attempt(() => kept.Function('return import("node:net")')()),
      await attempt(() => import('node:child_process')),
      await attempt(() => kept.process.getBuiltinModule('fs')),
      await attempt(() => kept.evaluate('require("fs")')),
    ],
    evaluators: [typeof globalThis.eval, typeof globalThis.Function, typeof globalThis.WebAssembly],
  }
  kept.writeSync(2, JSON.stringify(found))
}
void looks()
`

type Found = Record<
  'global' | 'intl' | 'process' | 'environment' | 'handles' | 'imports' | 'evaluators',
  string[]
>

t.test(
  'code that escaped from its realm finds only globals of the language, no modules and no open handles',
  (t) => {
    const program = readFileSync(findGuestFile(), 'utf8')
    const starts = program.match(/[\w$]+\(process\);/g) ?? []
    t.equal(starts.length, 1, 'the source has one place where the guest starts')
    const probe = JSON.stringify(PROBE.replace('START', () => starts[0]!)).slice(1, -1)
    const file = join(t.testdir({ 'guest.mjs': program.replace(starts[0]!, () => probe) }), 'guest.mjs')
    // A tool that watches child processes may set options for Node in their environment. The command `env -i` removes
    // these options.
    const words = ['-i', process.execPath, '--no-warnings', file]
    const { stderr, stdout, status } = spawnSync('/usr/bin/env', words, { input: '', encoding: 'utf8' })
    t.match(stdout, /"kind":"ready"/, stderr.slice(0, 500))
    t.equal(status, 0)
    const found = JSON.parse(stderr) as Found
    // The globals of ECMA-262, edition 16, except the globals that the guest removes.
    const language =
      `AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
    Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number
    Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError Uint16Array
    Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape
    globalThis isFinite isNaN parseFloat parseInt undefined unescape`.split(/\s+/)
    const more = found.global.filter((name) => !language.includes(name))
    t.same(more, [], 'the global object has only the globals of the language')
    t.notOk(found.intl.includes('v8BreakIterator'))
    t.same(found.evaluators, ['undefined', 'undefined', 'undefined'])
    t.same(found.imports, Array(5).fill('refused'), 'no evaluator can import a module')
    t.same(found.environment, [])
    t.same(found.handles, [])
    const emitter = Object.getOwnPropertyNames(process.constructor.prototype).concat(
      Reflect.ownKeys(Object.getPrototypeOf(Object.getPrototypeOf(process)) as object).map(String),
    )
    t.same(
      found.process.filter((name) => !emitter.includes(name)).sort(),
      ['_fatalException', '_tickCallback', 'emitWarning', 'hasUncaughtExceptionCaptureCallback', 'nextTick'],
      'the process object has only the properties that Node itself needs',
    )
    t.end()
  },
)
