import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { display, displayLines, fold, measureWidth, toJson, truncate } from '../../src/cli/output/display.js'
import { pickFields, readField, toCsvCell } from '../../src/cli/output/fields.js'
import { createProgress } from '../../src/cli/output/progress.js'
import { detectTerminal, write } from '../../src/cli/output/terminal.js'
import { toCsvLine } from '../../src/domain/text/spreadsheet.js'
import { createOutput, createTerminal, type FakeTerminal } from './fake-process.js'

interface Parts {
  env?: Record<string, string>
  flags?: Parameters<typeof detectTerminal>[2]
  tty?: boolean[]
}

function detect({ env = {}, flags = {}, tty = [true, true, true] }: Parts = {}) {
  const [stdin, stdout, stderr] = tty
  const streams = {
    stdin: Object.assign(new PassThrough(), { isTTY: stdin }),
    stdout: createOutput({ isTTY: stdout === true }),
    stderr: createOutput({ isTTY: stderr === true }),
  }
  return detectTerminal(streams, env, flags)
}

t.test('colour follows the flag, then NO_COLOR, then the kind of stream', async (t) => {
  const both = { stdout: true, stderr: true }
  const none = { stdout: false, stderr: false }
  for (const [parts, expected] of [
    [{}, { stdout: false, stderr: true }],
    [{ flags: { color: 'auto' } }, { stdout: false, stderr: true }],
    [{ flags: { color: 'always' }, env: { NO_COLOR: '1' } }, both],
    [{ flags: { color: 'never' } }, none],
    [{ env: { NO_COLOR: '1' } }, none],
    [{ env: { NO_COLOR: '' } }, { stdout: false, stderr: true }],
    [{ env: { TERM: 'dumb' } }, none],
  ] as [Parts, typeof both][])
    t.same(detect({ ...parts, tty: [true, false, true] }).colour, expected, JSON.stringify(parts))
})

t.test(
  'questions need a terminal for standard input and standard error, and are refused with --no-input',
  async (t) => {
    for (const [parts, mayPrompt] of [
      [{ tty: [true, false, true] }, true],
      [{ tty: [false, true, true] }, false],
      [{ tty: [true, true, false] }, false],
      [{ flags: { input: false } }, false],
    ] as [Parts, boolean][])
      t.equal(detect(parts).mayPrompt, mayPrompt)
  },
)

t.test('a write waits for the stream, and fails for every error except a closed reader', async (t) => {
  const slow = createOutput()
  let take = () => {}
  slow._write = (_chunk, _encoding, done) => {
    take = done
  }
  let isWritten = false
  const writing = write(slow, 'text').then((isRead) => {
    isWritten = isRead
  })
  await Promise.resolve()
  t.equal(isWritten, false)
  take()
  await writing
  t.equal(isWritten, true)
  for (const failure of ['EPIPE', 'EOF']) {
    const output = createOutput({ failure })
    t.same([await write(output, 'one'), await write(output, 'two')], [false, false], failure)
    // The stream emits the event `error` after the callback of `write`. Without a listener, the event `error` would
    // end this test.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const full = { code: 'storage_failed', message: /\(ENOSPC\)/ }
  await t.rejects(write(createOutput({ failure: 'ENOSPC' }), 'x'), full)
  const output = createOutput()
  for (let count = 0; count < 20; count++) await write(output, 'x')
  t.equal(output.listenerCount('error'), 1, 'listeners do not accumulate')
})

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'a\u001b\u0000\u202e\ud800王\u0301\n🎉\u2028') }),
)

t.test('control characters and invisible characters are printed in a visible form', async (t) => {
  for (const [name, text, shown] of [
    ['plain text', 'Zoë – 王小明 🎉 "x" \\ é', 'Zoë – 王小明 🎉 "x" \\ é'],
    ['colour (CSI)', '\u001b[31mred', '\\u{1b}[31mred'],
    ['hyperlink (OSC 8)', '\u001b]8;;http://x\u001b\\', '\\u{1b}]8;;http://x\\u{1b}\\'],
    ['one-character controls (C1)', '\u009b31m\u0085', '\\u{9b}31m\\u{85}'],
    ['backspace, return, NUL, DEL', 'a\b\r\0\u007f', 'a\\u{8}\\u{d}\\u{0}\\u{7f}'],
    ['bidi override and marks', '\u202egnp\u202c\u200e\u061c', '\\u{202e}gnp\\u{202c}\\u{200e}\\u{61c}'],
    ['zero-width', 'a\u200bb\u200cc\u200dd\ufeff', 'a\\u{200b}b\\u{200c}c\\u{200d}d\\u{feff}'],
    ['tags and variation selectors', 'a\u{e0041}\ufe0f\u00ad', 'a\\u{e0041}\\u{fe0f}\\u{ad}'],
    ['half a character', 'a\ud83d', 'a\\u{d83d}'],
    ['line breaks and tabs', 'a\nb\tc\u2028', 'a↵b\\u{9}c\\u{2028}'],
  ] as const)
    t.equal(display(text), shown, name)
  const lines = 'a\r\n\tb\u001b[0m\rc\n'
  t.equal(displayLines(lines), 'a\n  b\\u{1b}[0m\\u{d}c\n', 'text of several lines keeps its lines')
})

t.test('text is wrapped, but commands and expressions that people paste stay on one line', async (t) => {
  const rows: [string, number, string][] = [
    ['one two three', 8, 'one two\nthree'],
    ['Run it: coffer init --store ADDRESS', 20, 'Run it:\ncoffer init --store ADDRESS'],
    ['coffer vault status. Run it there, or here.', 24, 'coffer vault status. Run\nit there, or here.'],
    ['as {{ data | last4 }} says', 12, 'as\n{{ data | last4 }}\nsays'],
    ['  left as it is, with a space before', 10, '  left as it is, with a space before'],
  ]
  for (const [text, width, folded] of rows) t.equal(fold(text, width), folded, text)
})

t.test('text that is printed contains no invisible character', async (t) => {
  fc.assert(fc.property(anyText, (text) => !UNSEEN.test(display(text))))
  fc.assert(fc.property(anyText, (text) => !UNSEEN.test(displayLines(text).replaceAll('\n', ''))))
  fc.assert(fc.property(anyText, (text) => !UNSEEN.test(toJson({ [text]: text }))))
  t.pass('holds')
})

t.test(
  'the JSON output is parsed to the original value, whether it is on one line or indented',
  async (t) => {
    const value = fc.jsonValue()
    fc.assert(
      fc.property(value, anyText, (json, text) => {
        const whole = JSON.parse(JSON.stringify({ json, text }))
        t.strictSame(JSON.parse(toJson(whole)), whole)
        t.strictSame(JSON.parse(toJson(whole, 2)), whole)
        return !toJson(whole).includes('\n')
      }),
      { numRuns: 50 },
    )
    t.equal(toJson({ a: '\u009b\u{e0041}' }), '{"a":"\\u009b\\udb40\\udc41"}')
    t.equal(toJson({ a: 1 }, 2), '{\n  "a": 1\n}')
  },
)

t.test('the measured width of a text is its width in a terminal', async (t) => {
  // In tmux 3.3a, each text of a row moves the cursor by the number of columns at the start of the row.
  for (const [width, texts] of [
    [1, 'é e\u0301 ① ☎ …'],
    [2, 'ｱｲ 🎉 🫠 🇩🇪'],
    [3, 'abc'],
    [4, '가나 👍🏽 நிலா שָׁלוֹם'],
    [5, 'हिन्दी สมชาย'],
    [6, '王小明'],
  ] as const)
    for (const text of texts.split(' ')) t.equal(measureWidth(text), width, JSON.stringify(text))
})

t.test('text is truncated between characters, and only if it is too long', async (t) => {
  for (const [text, width, cut] of [
    ['abcdef', 6, 'abcdef'],
    ['abcdef', 5, 'abcd…'],
    ['abcdef', 1, '…'],
    ['王小明', 6, '王小明'],
    ['王小明', 5, '王小…'],
    ['王小明', 4, '王…'],
    ['ae\u0301bc', 3, 'ae\u0301…'],
  ] as const)
    t.equal(truncate(text, width), cut)
  fc.assert(
    fc.property(anyText.map(display), fc.integer({ min: 1, max: 30 }), (text, width) => {
      const cut = truncate(text, width)
      const isWhole = measureWidth(text) <= width
      return isWhole ? cut === text : measureWidth(cut) <= width && text.startsWith(cut.slice(0, -1))
    }),
  )
})

const token = {
  id: 'a',
  data: { number: '4242', exp: { month: 12 } },
  metadata: { 'a.b': 'dotted', a: 'plain', env: 'test' },
  containers: ['/pci/high/'],
  rules: [{ container: '/a/', priority: 1 }, { container: '/b/' }],
  mask: null,
}

t.test('a field of a record is read by its path', async (t) => {
  for (const [path, value] of [
    ['id', 'a'],
    ['data.exp.month', 12],
    ['data.exp', { month: 12 }],
    ['metadata.a.b', 'dotted'],
    ['metadata.a', 'plain'],
    ['rules.container', ['/a/', '/b/']],
    ['rules.priority', [1]],
    ['mask', null],
    ['', undefined],
  ] as const)
    t.strictSame(readField(token, path), value, path)
  for (const path of 'nothing id.length data. containers.length toString __proto__ mask.deeper'.split(' '))
    t.equal(readField(token, path), undefined, path)
})

t.test('selected fields are printed in the requested order', async (t) => {
  for (const [paths, picked] of [
    ['data.number id', '{"data":{"number":"4242"},"id":"a"}'],
    ['data.exp.month data.number', '{"data":{"exp":{"month":12},"number":"4242"}}'],
    ['data data.number', '{"data":{"number":"4242","exp":{"month":12}}}'],
    ['metadata.a.b', '{"metadata":{"a.b":"dotted"}}'],
    ['rules.container', '{"rules":[{"container":"/a/"},{"container":"/b/"}]}'],
    ['mask missing data.missing', '{"mask":null}'],
  ] as const)
    t.equal(JSON.stringify(pickFields(token, paths.split(' '))), picked)
  t.equal(JSON.stringify(pickFields([token, 1], ['id'])), '[{"id":"a"},1]')
})

t.test('CSV output quotes every value and neutralizes formulas', async (t) => {
  t.equal(toCsvLine(['a', 'b "c"', 'd,e', 'f\ng', '']), '"a","b ""c""","d,e","f\ng",""')
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1', '＠x', "'=1"])
    t.equal(toCsvCell(text), `'${text}`, JSON.stringify(text))
  for (const text of ['', 'a=b', '1', ' =1', "'a"]) t.equal(toCsvCell(text), text, JSON.stringify(text))
  t.same([-1, undefined, null, true, { a: ['=1'] }].map(toCsvCell), ['-1', '', '', 'true', '{"a":["=1"]}'])
})

t.test('a progress bar shows percentage and count on one line, at most ten times a second', async (t) => {
  let nowMs = 1_000_000
  const draw = async (terminal: FakeTerminal, counts: [count: number, ms: number][]) => {
    const progress = createProgress(terminal, { label: 'Importing\u001b 王小明', total: 2000 }, () => nowMs)
    for (const [count, ms] of counts) {
      await progress.show(count)
      nowMs += ms
    }
    await progress.finish()
    return terminal.stderr.text.split('\r\u001b[2K')
  }
  const label = 'Importing\\u{1b} 王小明'
  const counts: [number, number][] = [
    [1, 50],
    [2, 10_000],
    [1000, 10_000],
  ]
  t.same(await draw(createTerminal({ columns: 100 }), counts), [
    '',
    `${label}  ░░░░░░░░░░░░░░░░░░░░  0 %  1/2,000`,
    `${label}  ██████████░░░░░░░░░░  50 %  1,000/2,000`,
    `${label}: 1,000 in 20.1 s\n`,
  ])
  for (const columns of [1, 10, 30]) {
    const [, narrow = ''] = await draw(createTerminal({ columns }), [[1, 0]])
    t.equal(measureWidth(narrow), Math.max(1, columns - 1), `${columns} columns`)
  }
  for (const nobody of [createTerminal(), createTerminal({ columns: 100, quiet: true })])
    t.same(await draw(nobody, counts), [''])
})
