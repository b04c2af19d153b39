import * as fc from 'fast-check'
import t from 'tap'
import { preparePackage, prepareSource, type SourceError } from '../../src/reactor/guest/source.js'

/**
 * The patterns for which SES refuses source text (from its `transforms.js`). The rewritten source must match none of
 * these patterns.
 */
const REFUSED = [/(?:<!--|-->)/, /(^|[^.]|\.\.\.)\bimport(\s*(?:\(|\/[/*]))/, /(^|[^.])\beval(\s*\()/]

function passes(text: string): boolean {
  return REFUSED.every((pattern) => !pattern.test(text))
}

/** Evaluates the body of a function in strict mode, as the realm does. */
function evaluate(body: string): unknown {
  return new Function(`'use strict';${body}`)()
}

t.test(
  'code that SES refuses only because of its spelling is rewritten without changing its meaning',
  async (t) => {
    const bodies: [string, unknown][] = [
      ["return 'import//' + 'import/*'", 'import//import/*'],
      ['return `a ${`import(${"eval("})`} -->`', 'a import(eval() -->'],
      ['return "\\import(" + "\\\\import("', 'import(\\import('],
      ['return "\\eval(" + "\\\\\\eval("', 'eval(\\eval('],
      ['return "a\\-->" + "\\<!--"', 'a--><!--'],
      ['return /import\\(/.test("import(")', true],
      ['return /^[<!--]+$/.test("<!-")', true],
      ['let n = 3, c = 0; while (n --> 0) c++; return c', 3],
      ['let n = 3; return [n-->2, n]', [true, 2]],
      ['let n = 9; return n-->=9', true],
      ['/* import("x") <!-- --> eval(1) */ return 1', 1],
      ['const a = 1 /* import(\n) */\nreturn a', 1],
      ['return { import(x) { return x }, eval(x) { return x + 1 } }.import(1)', 1],
      ['return { eval(x) { return x + 1 } }\n.\neval(1)', 2],
      [
        'return new (class { async import() { return 1 } static eval() {} #import() { return 5 } go() { return this.#import() } })().go()',
        5,
      ],
      ['const { import: a, eval: b } = { import: 1, eval: 2 }; return a + b', 3],
      ['const o = { constructor: 1, toString: 2, __proto__: null }; return o.constructor + o.toString', 3],
      ['return "\u{1F600} import(" + `\u2028`', '\u{1F600} import(\u2028'],
    ]
    for (const [body, expected] of bodies) {
      const text = prepareSource(body)
      // A line separator in the title of a test would break the line that reports the title.
      const title = JSON.stringify(body).replaceAll('\u2028', '\\u2028')
      t.ok(passes(text), `the realm accepts ${title}`)
      t.same(evaluate(body), expected, 'the code has the expected meaning')
      t.same(evaluate(text), expected, 'the rewritten code has the same meaning')
      t.equal(text.split('\n').length, body.split('\n').length, 'the lines are unchanged')
    }
  },
)

t.test('when code is rewritten, a literal with any text keeps its value', async (_t) => {
  const part = fc.constantFrom(
    ...'import( import ( eval( <!-- --> -- > \\ x " ` ${ /* //'.split(' '),
    ' ',
    '\n',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 12 }), async (parts) => {
      const value = parts.join('')
      for (const literal of [JSON.stringify(value), `\`${value.replaceAll(/[`\\$]/g, '\\$&')}\``]) {
        const text = prepareSource(`return ${literal}`)
        if (!passes(text) || evaluate(text) !== value) return false
      }
      return true
    }),
    { numRuns: 500 },
  )
})

t.test('code that does not compile is refused, and the error has its place', async (t) => {
  const cases: [string, string, number, number][] = [
    ['let x = ;', 'Unexpected token', 1, 9],
    ['let a\n  let a', "Identifier 'a' has already been declared", 2, 7],
    ['}); process.exit(); (function () {', 'Unexpected token', 1, 1],
    ['const f = () => {\n  return 1\n', 'Unexpected token', 3, 1],
    ['\n\n  import("fs")', 'import() is not available to reactor code; use require("fs")', 3, 3],
    ['const x = `${eval("1")}`', 'eval() is not available to reactor code', 1, 14],
    ['a\n<!-- b', 'HTML-like comments are not part of this language; use //', 2, 1],
    ['a\n--> b', 'HTML-like comments are not part of this language; use //', 2, 1],
    ['with (a) b', "'with' in strict mode", 1, 1],
    ['return 010', 'Invalid number', 1, 8],
    ['import.meta', "Cannot use 'import.meta' outside a module", 1, 1],
    [`${'['.repeat(100_000)}`, 'The code nests too deeply to be compiled', 1, 1],
  ]
  for (const [code, message, line, column] of cases)
    t.throws(() => prepareSource(code), { message, line, column }, code.slice(0, 40))
})

t.test('the code of a package is parsed only if it contains text that SES refuses', async (t) => {
  const sloppy = 'with ({}) { 0 }'
  t.equal(preparePackage(sloppy), sloppy, 'the parser would refuse this text')
  t.throws(() => prepareSource(sloppy))
  t.equal(preparePackage('#!/usr/bin/env node\nexports.a = 1'), '///usr/bin/env node\nexports.a = 1')
  for (const found of ["exports.a = 'import(1)'", "exports.a = 'eval(1)'", 'let n = 3; while (n --> 0) {}'])
    t.ok(passes(preparePackage(found)), found)
  for (const refused of ['import("x")', 'eval("1")', '<!-- text'])
    t.throws(() => preparePackage(refused), refused)
})

t.test('an ES module is refused, and the error has the lines to write instead', async (t) => {
  const faultsOf = (code: string) => {
    try {
      prepareSource(code)
      return []
    } catch (error) {
      const { line, column, message, others } = error as SourceError
      return [{ line, column, message }, ...others]
    }
  }
  const written: [string, string][] = [
    ["import x from 'y'", "const x = require('y')"],
    ["import * as x from 'y'", "const x = require('y')"],
    ["import { a, b as c, 'd-e' as f } from 'y'", "const { a, b: c, 'd-e': f } = require('y')"],
    ["import x, { a } from 'y'", "const x = require('y'), { a } = x"],
    ["import 'y'", "require('y')"],
    ['export default async (event) => {\n  return {}\n}', 'module.exports = async (event) => {'],
    [
      'export default async function run(event) { return {} }',
      'module.exports = async function run(event) { return {} }',
    ],
    ['export const run = async (event) => ({})', 'module.exports = async (event) => ({})'],
    ['export async function run(event) {\n}', 'module.exports = async function run(event) {'],
    ['const run = () => 1\nexport { run as default }', 'module.exports = run'],
    ["export * from 'y'", "Object.assign(exports, require('y'))"],
    ['const x = await f()', 'module.exports = async (event) => { const x = await f() }'],
    ['for await (const x of y) f(x)', 'module.exports = async (event) => { for await (const x of y) f(x) }'],
  ]
  for (const [code, text] of written) {
    const [fault] = faultsOf(code)
    t.ok(fault?.message.includes(`write \`${text}\``), `${code}: ${fault?.message}`)
  }
  const module = `import a from 'a'\n\nexport const n = 1\n  export default async () => {\n  await a()\n}`
  t.match(faultsOf(module), [
    { line: 1, column: 1, message: /require\('a'\)/ },
    { line: 3, column: 1, message: /write `const n = 1` instead/ },
    { line: 4, column: 3, message: /module\.exports = async/ },
  ])
  // If the code is no valid ES module either, the parser reports the error that it found in the code as a script.
  t.match(faultsOf("import a from 'a'\nlet x = ;"), [{ line: 1, message: /import/ }])
  t.match(faultsOf('const f = () => { await g() }'), [{ line: 1, column: 25, message: 'Unexpected token' }])
  t.equal(faultsOf("import 'a'\n".repeat(1000)).length, 20)
  t.ok(faultsOf(`import '${'a'.repeat(10_000)}'`)[0]!.message.length < 300)
})
