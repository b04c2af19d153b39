import fc from 'fast-check'
import t from 'tap'
import {
  display,
  displayLines,
  fold,
  foldHelp,
  layOutJson,
  measureWidth,
  toJson,
  truncate,
} from '../../src/cli/output/display.js'

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('a', '\u001b', '\u0000', '\u202e', '\ud800', '王', '\u0301', '\n', '🎉', '\u2028'),
  }),
)

t.test('what would steer a terminal or hide is made visible', async (t) => {
  const rows: [string, string, string][] = [
    ['plain text', 'Zoë – 王小明 🎉 "x" \\ é', 'Zoë – 王小明 🎉 "x" \\ é'],
    ['colour (CSI)', '\u001b[31mred', '\\u{1b}[31mred'],
    ['window title (OSC)', '\u001b]0;t\u0007', '\\u{1b}]0;t\\u{7}'],
    ['hyperlink (OSC 8)', '\u001b]8;;http://x\u001b\\', '\\u{1b}]8;;http://x\\u{1b}\\'],
    ['one-character controls (C1)', '\u009b31m\u0085', '\\u{9b}31m\\u{85}'],
    ['backspace, return, NUL, DEL', 'a\b\r\0\u007f', 'a\\u{8}\\u{d}\\u{0}\\u{7f}'],
    ['bidi override and isolate', '\u202egnp\u202c\u2066x\u2069', '\\u{202e}gnp\\u{202c}\\u{2066}x\\u{2069}'],
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
  t.equal(foldHelp('  --id <text>  an id of the token', 36), '  --id <text>  an id of the token')
  t.equal(
    foldHelp('  --id <text>  an id of the new token', 36),
    '  --id <text>  an id of the new\n               token',
  )
  t.equal(
    foldHelp('  --container <text>  one of the token', 36),
    '  --container <text>\n      one of the token',
  )
  t.equal(
    foldHelp('  $ coffer token list  --all --output id', 20),
    '  $ coffer token list  --all --output id',
  )
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
      t.strictSame(JSON.parse(layOutJson(whole, 20)), whole)
      return !toJson(whole).includes('\n')
    }),
    { numRuns: 50 },
  )
  t.equal(toJson({ a: '\u009b\u{e0041}' }), '{"a":"\\u009b\\udb40\\udc41"}')
  t.equal(toJson({ a: 1 }, 2), '{\n  "a": 1\n}')
})

t.test('JSON for the eye opens only what is too wide', async (t) => {
  const value = { short: [1, 2], long: { a: 'x'.repeat(10), b: 'y'.repeat(10) }, none: [], empty: {} }
  t.equal(layOutJson(value, 100), toJson(value))
  t.equal(
    layOutJson(value, 35),
    [
      '{',
      '  "short": [1,2],',
      '  "long": {',
      '    "a": "xxxxxxxxxx",',
      '    "b": "yyyyyyyyyy"',
      '  },',
      '  "none": [],',
      '  "empty": {}',
      '}',
    ].join('\n'),
  )
  t.equal(layOutJson({}, 1), '{}')
  t.equal(layOutJson('a string is never broken', 5), '"a string is never broken"')
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
