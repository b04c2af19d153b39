import fc from 'fast-check'
import t from 'tap'
import { canonicalJson, decodeUtf8, exactNumber, mergePatch, parseJson } from '../../src/domain/json/json.js'
import { CofferError } from '../../src/errors.js'

function refusal(work: () => unknown): string {
  try {
    return `no refusal but ${JSON.stringify(work())}`
  } catch (error) {
    return error instanceof CofferError ? `${error.code}: ${error.message}` : `not ours: ${error}`
  }
}

const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

const TAKEN: [text: string, value: unknown][] = [
  [' \t\r\n true \n', true],
  ['-0.5e-3', -0.0005],
  ['9007199254740992', 2 ** 53],
  ['100000000000000000000', 1e20],
  ['0.1000000000000000000', 0.1],
  ['"\\u0000\\ud83d\\ude00\\n\\/"', '\0😀\n/'],
  ['{"constructor": {"name": 1}, "prototype": 2}', { constructor: { name: 1 }, prototype: 2 }],
  ['{"toString": 1, "hasOwnProperty": 2, "": 3}', { toString: 1, hasOwnProperty: 2, '': 3 }],
  ['{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}', { a: { a: 1 }, b: [{ a: 1 }, { a: 2 }] }],
]

const early = 'the text ends too early; '
const value = 'expected a JSON value (strings and names in double quotes)'
const name = 'expected a property name in double quotes'
const closing = 'expected a closing quote, or an escape such as \\n; control characters must be escaped'
const twice = 'this property occurs twice in one object; keep one of them'
const prototypes = 'a property of this name could change object prototypes and is refused'
const inexact = 'this number cannot be stored exactly; send it as a string'
const half = 'half of a surrogate pair stands alone'

/**
 * Cases that check the place and the reason of an error. The comparison with `JSON.parse` below finds all other texts
 * that the parser must refuse.
 */
const REFUSED: [text: string, place: string, reason: string][] = [
  [' \n ', '2, column 2', early + value],
  ['{"a": 1,\n "b" 2}', '2, column 6', 'expected ":" after the property name'],
  ['{"a": 1,\n "b": }', '2, column 7', value],
  ['{"a": 1 "b": 2}', '1, column 9', 'expected "," or "}"'],
  ["{'a': 1}", '1, column 2', name],
  ['{"a": 1', '1, column 8', `${early}expected "," or "}"`],
  ['[1, 2', '1, column 6', `${early}expected "," or "]"`],
  ['[1 2]', '1, column 4', 'expected "," or "]"'],
  ['{', '1, column 2', early + name],
  ['{} x', '1, column 4', 'expected nothing more after the value'],
  ['"abc', '1, column 5', early + closing],
  ['"a\nb"', '1, column 3', closing],
  ['"\\u12g4"', '1, column 2', closing],
  ['\ufeff{}', '1, column 1', 'it starts with a byte order mark; send plain UTF-8'],
  ['{"a": 1, "\\u0061": 2}', '1, column 10', twice],
  ['[{"k": {"a": 1, "b": 2, "a": 3}}]', '1, column 25', twice],
  ['{"__proto__": 1}', '1, column 2', prototypes],
  ['{"x": [{"\\u005f_proto__": {}}]}', '1, column 9', prototypes],
  ['{"constructor": {"a": 1, "\\u0070rototype": {}}}', '1, column 26', prototypes],
  [deep(65), '1, column 65', 'nested more than 64 levels deep'],
  ['-9007199254740993', '1, column 1', inexact],
  ['1e400', '1, column 1', inexact],
  ['1e-400', '1, column 1', inexact],
  [`1${'0'.repeat(2000)}`, '1, column 1', inexact],
  ['["ok", "\\udc00\\ud800"]', '1, column 8', `${half} in this string`],
  ['["\ud800"]', '1, column 3', half],
]

t.test('the JSON parser accepts unusual but valid JSON with at most 64 levels', async (t) => {
  for (const [text, value] of TAKEN) t.equal(JSON.stringify(parseJson(text)), JSON.stringify(value), text)
  t.equal(JSON.stringify(parseJson(deep(64))), deep(64), '64 levels')
})

t.test('each error of the JSON parser names the line, the column and the expected text', async (t) => {
  for (const [text, place, reason] of REFUSED) {
    const message = `validation: the JSON text is refused at line ${place}: ${reason}`
    const refused = refusal(() => parseJson(text))
    t.equal(refused, message, text.slice(0, 60))
  }
  const named = refusal(() => parseJson('{x', { source: '--data', code: 'usage' }))
  t.equal(named, `usage: --data is refused at line 1, column 2: ${name}`)
})

t.test('the JSON parser agrees with JSON.parse on every valid document', async (t) => {
  const spaced = fc.tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'))
  fc.assert(
    fc.property(spaced, ([value, space]) => {
      const text = JSON.stringify(value, null, space)
      if (/__proto__/.test(text)) return
      if (JSON.stringify(parseJson(text)) !== JSON.stringify(JSON.parse(text))) throw new Error(text)
    }),
    { numRuns: 300 },
  )
  t.pass()
})

t.test('the JSON parser never accepts a text that JSON.parse refuses', async (t) => {
  const pieces = fc.constantFrom(' ', ...'{ } [ ] , : "a" "b" " 1 - 0 . e true null \\ u'.split(' '))
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const text = parts.join('')
      let isValid = true
      try {
        JSON.parse(text)
      } catch {
        isValid = false
      }
      const message = refusal(() => parseJson(text))
      if (message.startsWith('not ours')) throw new Error(`${text}: ${message}`)
      if (!isValid && message.startsWith('no refusal')) throw new Error(`taken: ${text}`)
      if (isValid && !message.startsWith('no refusal') && !message.includes(twice))
        throw new Error(`refused: ${text}`)
    }),
    { numRuns: 3000 },
  )
  t.pass()
})

t.test('a JSON number is accepted only if a double can represent its value exactly', async (t) => {
  fc.assert(
    fc.property(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      (value) => exactNumber(String(value).replace('e+', 'e')) === value,
    ),
  )
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 30n }),
      (value) => (exactNumber(String(value)) !== undefined) === isKept(value),
    ),
  )
  t.equal(exactNumber('007'), 7)
  t.equal(exactNumber('1.'), undefined)
  t.equal(exactNumber(' 1'), undefined)
  t.equal(exactNumber(''), undefined)
})

/**
 * Returns whether a double can represent the integer: the shortest decimal text of the double must be the integer
 * itself.
 */
function isKept(value: bigint): boolean {
  const [digits = '', power = '0'] = String(Number(value)).split('e+')
  const [whole = '', fraction = ''] = digits.split('.')
  return BigInt(whole + fraction) * 10n ** (BigInt(power) - BigInt(fraction.length)) === value
}

t.test('text that is not valid UTF-8, and a byte order mark, are refused', async (t) => {
  const decode = (...bytes: number[]) => refusal(() => decodeUtf8(Uint8Array.from(bytes), 'the body'))
  const message = 'validation: the body is not UTF-8; encode it as UTF-8 without a byte order mark'
  t.equal(decode(0xed, 0xa0, 0x80), message)
  t.equal(decode(0xc0, 0x80), message)
  t.match(
    refusal(() => parseJson(decodeUtf8(Uint8Array.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d])))),
    /byte order mark/,
  )
})

t.test(
  'a JSON patch is merged as RFC 7396 says, and `__proto__` and `constructor` are ordinary names',
  async (t) => {
    const rows: [target: string, patch: string, merged: string][] = [
      ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
      ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
      ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
      ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
      ['{"hasOwnProperty":1,"a":2}', '{"a":null}', '{"hasOwnProperty":1}'],
      ['{}', '{"constructor":{"name":"x"},"toString":null}', '{"constructor":{"name":"x"}}'],
      ['{}', '{"__proto__":{"polluted":1}}', '{"__proto__":{"polluted":1}}'],
    ]
    for (const [target, patch, merged] of rows)
      t.equal(JSON.stringify(mergePatch(JSON.parse(target), JSON.parse(patch))), merged, patch)
    t.notOk('polluted' in {})
  },
)

t.test('equal values have the same canonical JSON', async (t) => {
  t.equal(
    canonicalJson({ b: [1, { d: null, c: 'é' }], a: 1.0, A: '\u2028' }),
    '{"A":"\u2028","a":1,"b":[1,{"c":"é","d":null}]}',
  )
  t.equal(canonicalJson({ a: undefined, b: [undefined] }), '{"b":[null]}')
  t.equal(canonicalJson(undefined), 'null')
  t.equal(
    canonicalJson({ '\u{1f600}': 1, '\ufb01': 2 }),
    '{"\u{1f600}":1,"\ufb01":2}',
    'the names are in code unit order',
  )
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value)
      return text === canonicalJson(shuffled(value)) && canonicalJson(JSON.parse(text)) === text
    }),
    { numRuns: 300 },
  )
})

/** Reverses the order of names in every object of the value. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, shuffled(member)]),
  )
}
