/** What is left for whoever gets out of the realm all the same: the start realm's global, its evaluators, the process object. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { findGuestFile } from '../../src/reactor/launch.js'

/** Stands in the guest's own script and holds what only the guest can hold; writes what it finds to standard error. */
const PROBE = `
const kept = { process, evaluate: globalThis.eval, Function: globalThis.Function, setTimeout: globalThis.setTimeout }
start(process)
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
  writeSync(2, JSON.stringify(found))
}
void looks()
`

interface Found {
  global: string[]
  intl: string[]
  process: string[]
  environment: string[]
  handles: string[]
  imports: string[]
  evaluators: string[]
}

t.test('behind the first wall there is a second: no power is left in the process', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'coffer-strip-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'guest.mjs')
  const start = JSON.stringify('start(process);').slice(1, -1)
  const program = readFileSync(findGuestFile(), 'utf8')
  t.equal(program.split(start).length, 2, 'the guest is started in one place')
  writeFileSync(
    file,
    program.replace(start, () => JSON.stringify(PROBE).slice(1, -1)),
  )
  // A tool that watches our children puts options for Node into their environment, which `env` takes away.
  const words = ['-i', process.execPath, '--no-warnings', file]
  const { stderr, stdout, status } = spawnSync('/usr/bin/env', words, {
    input: '',
    encoding: 'utf8',
  })
  t.match(stdout, /"kind":"ready"/, stderr.slice(0, 500))
  t.equal(status, 0)
  const found = JSON.parse(stderr) as Found
  // ECMA-262, edition 16, without what the second wall takes of it.
  const language =
    `AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
    Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number
    Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError Uint16Array
    Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape
    globalThis isFinite isNaN parseFloat parseInt undefined unescape`.split(/\s+/)
  t.same(
    found.global.filter((name) => !language.includes(name)),
    [],
    'the global holds nothing but the language',
  )
  t.notOk(found.intl.includes('v8BreakIterator'))
  t.same(found.evaluators, ['undefined', 'undefined', 'undefined'])
  t.same(found.imports, Array(5).fill('refused'), 'nothing can be imported, by whatever evaluator')
  t.same(found.environment, [])
  t.same(found.handles, [])
  const emitter = Object.getOwnPropertyNames(process.constructor.prototype).concat(
    Reflect.ownKeys(Object.getPrototypeOf(Object.getPrototypeOf(process)) as object).map(String),
  )
  t.same(
    found.process.filter((name) => !emitter.includes(name)).sort(),
    ['_fatalException', '_tickCallback', 'emitWarning', 'hasUncaughtExceptionCaptureCallback', 'nextTick'],
    'the process object is only what Node itself needs of it',
  )
  t.end()
})
