import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { display, displayLines, fold, measureWidth, toJson, truncate } from '../../src/cli/output/display.js'
import { neutralize, pickFields, readField, toCsvCell, toCsvLine } from '../../src/cli/output/fields.js'
import { createProgress } from '../../src/cli/output/progress.js'
import { detectTerminal, write } from '../../src/cli/output/terminal.js'
import { createOutput, createTerminal, type FakeTerminal } from './fake-terminal.js'

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

t.test('colour follows the flag, then NO_COLOR, then what each stream is', async (t) => {
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

t.test('questions need terminals as standard input and error, and no --no-input', async (t) => {
  t.equal(detect({ tty: [true, false, true] }).mayPrompt, true, 'standard output does not matter')
  t.equal(detect({ tty: [false, true, true] }).mayPrompt, false)
  t.equal(detect({ tty: [true, true, false] }).mayPrompt, false)
  t.equal(detect({ flags: { input: false } }).mayPrompt, false)
})

t.test('writing waits for the stream, and only a reader that went away is no error', async (t) => {
  const taken: (() => void)[] = []
  const slow = createOutput()
  slow._write = (_chunk, _encoding, done) => taken.push(done)
  let isWritten = false
  const writing = write(slow, 'text').then((isRead) => {
    isWritten = isRead
  })
  await Promise.resolve()
  t.equal(isWritten, false)
  taken[0]?.()
  await writing
  t.equal(isWritten, true)
  for (const failure of ['EPIPE', 'EOF']) {
    const output = createOutput({ failure })
    t.same([await write(output, 'one'), await write(output, 'two')], [false, false], failure)
    // The stream's `error` event comes after the callback; without a listener it would end this test.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const full = { code: 'storage_failed', message: /\(ENOSPC\)/ }
  await t.rejects(write(createOutput({ failure: 'ENOSPC' }), 'x'), full)
  t.equal(await write(createOutput({ failure: 'ENOSPC' }), ''), true, 'nothing is written for nothing')
  const output = createOutput()
  for (let count = 0; count < 20; count++) await write(output, 'x')
  t.equal(output.listenerCount('error'), 1, 'listeners do not pile up')
})

t.test('display', async (t) => {
  const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u
  const anyText = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'a\u001b\u0000\u202e\ud800王\u0301\n🎉\u2028') }),
  )

  t.test('what would steer a terminal or hide is made visible', async (t) => {
    const rows: [string, string, string][] = [
      ['plain text', 'Zoë – 王小明 🎉 "x" \\ é', 'Zoë – 王小明 🎉 "x" \\ é'],
      ['colour (CSI)', '\u001b[31mred', '\\u{1b}[31mred'],
      ['window title (OSC)', '\u001b]0;t\u0007', '\\u{1b}]0;t\\u{7}'],
      ['hyperlink (OSC 8)', '\u001b]8;;http://x\u001b\\', '\\u{1b}]8;;http://x\\u{1b}\\'],
      ['one-character controls (C1)', '\u009b31m\u0085', '\\u{9b}31m\\u{85}'],
      ['backspace, return, NUL, DEL', 'a\b\r\0\u007f', 'a\\u{8}\\u{d}\\u{0}\\u{7f}'],
      [
        'bidi override and isolate',
        '\u202egnp\u202c\u2066x\u2069',
        '\\u{202e}gnp\\u{202c}\\u{2066}x\\u{2069}',
      ],
      ['bidi marks', 'a\u200e\u200f\u061c', 'a\\u{200e}\\u{200f}\\u{61c}'],
      ['zero-width', 'a\u200bb\u200cc\u200dd\ufeff', 'a\\u{200b}b\\u{200c}c\\u{200d}d\\u{feff}'],
      ['separators', 'a\u2028b\u2029', 'a\\u{2028}b\\u{2029}'],
      ['tags', 'a\u{e0041}', 'a\\u{e0041}'],
      ['fillers and variation selectors', 'a\u3164\ufe0f\u00ad', 'a\\u{3164}\\u{fe0f}\\u{ad}'],
      ['half a character', 'a\ud83d', 'a\\u{d83d}'],
      ['line breaks and tabs', 'a\nb\tc', 'a↵b\\u{9}c'],
    ]
    for (const [name, text, shown] of rows) t.equal(display(text), shown, name)
  })

  t.test('text of several lines keeps its lines and nothing else', async (t) => {
    t.equal(displayLines('a\r\n\tb\u001b[0m\rc\n'), 'a\n  b\\u{1b}[0m\\u{d}c\n')
  })

  t.test('text is folded, but for what a person pastes', async (t) => {
    const rows: [string, number, string][] = [
      ['one two three', 8, 'one two\nthree'],
      ['Run it: coffer init --store ADDRESS', 20, 'Run it:\ncoffer init --store ADDRESS'],
      ['coffer vault status. Run it there, or here.', 24, 'coffer vault status. Run\nit there, or here.'],
      ['as {{ data | last4 }} says', 12, 'as\n{{ data | last4 }}\nsays'],
      ['  left as it is, with a space before', 10, '  left as it is, with a space before'],
    ]
    for (const [text, width, folded] of rows) t.equal(fold(text, width), folded, text)
  })

  t.test('nothing unseen survives, whatever the text', async (t) => {
    fc.assert(fc.property(anyText, (text) => !UNSEEN.test(display(text))))
    fc.assert(fc.property(anyText, (text) => !UNSEEN.test(displayLines(text).replaceAll('\n', ''))))
    fc.assert(fc.property(anyText, (text) => !UNSEEN.test(toJson({ [text]: text }))))
    t.pass('holds')
  })

  t.test('JSON reads back as what it was, on one line or indented', async (t) => {
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
  })

  t.test('widths are those of a terminal', async (t) => {
    // Each was compared with the cursor of tmux 3.3a.
    const rows: [string, number][] = [
      ['', 0],
      ['abc', 3],
      ['é', 1],
      ['e\u0301', 1],
      ['王小明', 6],
      ['가나', 4],
      ['ｱｲ', 2],
      ['①', 1],
      ['☎', 1],
      ['🎉', 2],
      ['🫠', 2],
      ['🇩🇪', 2],
      ['👍🏽', 4],
      ['สมชาย ใจดี', 9],
      ['हिन्दी', 5],
      ['நிலா', 4],
      ['שָׁלוֹם', 4],
      ['…', 1],
    ]
    for (const [text, width] of rows) t.equal(measureWidth(text), width, JSON.stringify(text))
  })

  t.test('text is cut between characters, and only when it must be', async (t) => {
    t.equal(truncate('abcdef', 6), 'abcdef')
    t.equal(truncate('abcdef', 5), 'abcd…')
    t.equal(truncate('abcdef', 1), '…')
    t.equal(truncate('王小明', 6), '王小明')
    t.equal(truncate('王小明', 5), '王小…')
    t.equal(truncate('王小明', 4), '王…')
    t.equal(truncate('ae\u0301bc', 3), 'ae\u0301…')
    t.equal(truncate('🎉🎉', 3), '🎉…')
    fc.assert(
      fc.property(anyText.map(display), fc.integer({ min: 1, max: 30 }), (text, width) => {
        const cut = truncate(text, width)
        const isWhole = measureWidth(text) <= width
        return isWhole ? cut === text : measureWidth(cut) <= width && text.startsWith(cut.slice(0, -1))
      }),
    )
  })
})

t.test('fields', async (t) => {
  const token = {
    id: 'a',
    data: { number: '4242', exp: { month: 12 } },
    metadata: { 'a.b': 'dotted', a: 'plain', env: 'test' },
    containers: ['/pci/high/'],
    rules: [{ container: '/a/', priority: 1 }, { container: '/b/' }],
    mask: null,
  }

  t.test('a field is read by its path', async (t) => {
    const rows: [string, unknown][] = [
      ['id', 'a'],
      ['data.number', '4242'],
      ['data.exp.month', 12],
      ['data.exp', { month: 12 }],
      ['metadata.a.b', 'dotted'],
      ['metadata.a', 'plain'],
      ['rules.container', ['/a/', '/b/']],
      ['rules.priority', [1]],
      ['mask', null],
      ['nothing', undefined],
      ['id.length', undefined],
      ['data.', undefined],
      ['', undefined],
      ['containers.length', undefined],
      ['toString', undefined],
      ['__proto__', undefined],
      ['mask.deeper', undefined],
    ]
    for (const [path, value] of rows) t.strictSame(readField(token, path), value, JSON.stringify(path))
  })

  t.test('picked fields keep their place, in the order asked for', async (t) => {
    const pick = (...paths: string[]) => JSON.stringify(pickFields(token, paths))
    t.equal(pick('data.number', 'id'), '{"data":{"number":"4242"},"id":"a"}')
    t.equal(pick('data.exp.month', 'data.number'), '{"data":{"exp":{"month":12},"number":"4242"}}')
    t.equal(pick('data', 'data.number'), '{"data":{"number":"4242","exp":{"month":12}}}')
    t.equal(pick('metadata.a.b'), '{"metadata":{"a.b":"dotted"}}')
    t.equal(pick('rules.container'), '{"rules":[{"container":"/a/"},{"container":"/b/"}]}')
    t.equal(pick('mask', 'missing', 'data.missing'), '{"mask":null}')
    t.equal(JSON.stringify(pickFields([token, 1], ['id'])), '[{"id":"a"},1]')
  })

  t.test('picking a field gives what reading it gives', async (t) => {
    const key = fc.constantFrom('a', 'b', 'a.b', 'constructor')
    const tree = fc.dictionary(key, fc.oneof(fc.integer(), fc.dictionary(key, fc.integer())))
    const path = fc.array(key, { minLength: 1, maxLength: 3 }).map((keys) => keys.join('.'))
    fc.assert(
      fc.property(tree, path, (value, wanted) => {
        const found = readField(value, wanted)
        const picked = pickFields(value, [wanted])
        if (found === undefined) return JSON.stringify(picked) === '{}'
        return JSON.stringify(readField(picked, wanted)) === JSON.stringify(found)
      }),
      { numRuns: 500 },
    )
    t.pass('holds')
  })

  t.test('CSV quotes everything and disarms what a spreadsheet would run', async (t) => {
    t.equal(toCsvLine(['a', 'b "c"', 'd,e', 'f\ng', '']), '"a","b ""c""","d,e","f\ng",""')
    for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1', '＠x']) {
      t.equal(neutralize(text), `'${text}`, JSON.stringify(text))
    }
    for (const text of ['', 'a=b', '1', ' =1', "'a"]) t.equal(neutralize(text), text, JSON.stringify(text))
    t.equal(neutralize("'=1"), "''=1", 'so that it can be told from =1')
    t.equal(toCsvCell('-1'), "'-1")
    t.equal(toCsvCell(-1), '-1')
    t.equal(toCsvCell(undefined), '')
    t.equal(toCsvCell(null), '')
    t.equal(toCsvCell(true), 'true')
    t.equal(toCsvCell({ a: ['=1'] }), '{"a":["=1"]}')
  })
})

t.test('a progress bar shows share and count, at most ten times a second, on one line', async (t) => {
  const ERASE = '\r\u001b[2K'
  let nowMs = 1_000_000
  const start = (terminal: FakeTerminal, label: string, total: number) =>
    createProgress(terminal, { label, total }, () => nowMs)
  const terminal = createTerminal({ columns: 100 })
  const progress = start(terminal, 'Importing\u001b', 2000)
  for (const [count, ms] of [
    [1, 50],
    [2, 10_000],
    [1000, 10_000],
  ] as const) {
    await progress.show(count)
    nowMs += ms
  }
  await progress.finish()
  t.same(terminal.stderr.text.split(ERASE), [
    '',
    'Importing\\u{1b}  ░░░░░░░░░░░░░░░░░░░░  0 %  1/2,000',
    'Importing\\u{1b}  ██████████░░░░░░░░░░  50 %  1,000/2,000',
    'Importing\\u{1b}: 1,000 in 20.1 s\n',
  ])
  t.equal(terminal.stdout.text, '')
  for (const columns of [1, 10, 30]) {
    const narrow = createTerminal({ columns })
    await start(narrow, 'A rather long label 王小明', 7).show(1)
    t.equal(
      measureWidth(narrow.stderr.text.split(ERASE)[1] ?? ''),
      Math.max(1, columns - 1),
      `${columns} columns`,
    )
  }
  for (const nobody of [createTerminal(), createTerminal({ columns: 100, quiet: true })]) {
    const unseen = start(nobody, 'x', 2)
    await unseen.show(1)
    await unseen.finish()
    t.equal(nobody.stderr.text, '')
  }
})
