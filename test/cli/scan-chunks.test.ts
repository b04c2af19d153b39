/** What a scan finds is what a plain search finds in each line and each decoding of it, wherever chunks end. */
import fc from 'fast-check'
import t from 'tap'
import { scanChunks } from '../../src/cli/commands/scan.js'
import { ValueFinder } from '../../src/domain/text/value-finder.js'

const latin1 = (text: string) => Buffer.from(text).toString('latin1')
const base64 = (text: string) => Buffer.from(text).toString('base64')
const escapeAll = (text: string) =>
  text.replace(/./gs, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)

const ENCODINGS: ((text: string) => string)[] = [
  String,
  (text) => JSON.stringify(text),
  escapeAll,
  encodeURIComponent,
  (text) => new URLSearchParams({ q: text }).toString(),
  base64,
  (text) => Buffer.from(`{${text}`).toString('base64url'),
  (text) => (/^\d+$/.test(text) ? text.replace(/\d{4}(?=\d)/g, '$& ') : text),
]

const value = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 6, maxLength: 14 }),
  fc.string({ unit: fc.constantFrom('1', '2', '3'), minLength: 8, maxLength: 19 }),
  fc.string({ unit: fc.constantFrom('a', ' ', '+', '%', '"', 'ë', '\\', '4'), minLength: 6, maxLength: 30 }),
)
const encoding = fc.constantFrom(...ENCODINGS)
const values = fc.array(value, { minLength: 1, maxLength: 12 })

/** A text with some of the values, parts of them and other letters, each encoded twice at the most. */
const textWith = (of: readonly string[]) =>
  fc
    .array(
      fc.tuple(
        fc.oneof(
          fc.constantFrom(...of),
          fc.constantFrom(...of).map((each) => each.slice(1)),
          value,
        ),
        encoding,
        encoding,
        fc.constantFrom(' ', '\n', 'x', '', '\u0001', '\r\n'),
      ),
      { maxLength: 8 },
    )
    .map((parts) => parts.map(([each, inner, outer, end]) => outer(inner(each)) + end).join(''))

/** Lists what a text stands for, without any care for time. */
function decode(text: string): { plain: string; isNested: boolean }[] {
  const whole = [
    text.replace(/%([\da-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16))),
    text.replace(/\\u([\da-f]{4})|\\(.)/gi, (each, code, letter) => {
      if (code !== undefined) return latin1(String.fromCharCode(Number.parseInt(code, 16)))
      return '"\\/bfnrt'.includes(letter) ? (JSON.parse(`"\\${letter}"`) as string) : each
    }),
    ...(text.match(/\d(?:[ .-]?\d){7,}/g) ?? []).map((run) => run.replace(/\D/g, '')),
    ...text.split(/[ \t\r\n]/).map((word) => {
      const spaced = word.replaceAll('+', ' ')
      return spaced.replace(/%([\da-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    }),
  ]
  const runs = (text.match(/[\w+/-]{8,}/g) ?? []).flatMap((run) =>
    [0, 1, 2, 3].map((at) => Buffer.from(run.slice(at), 'base64').toString('latin1')),
  )
  return [
    ...whole.filter((plain) => plain !== text).map((plain) => ({ plain, isNested: true })),
    ...runs.map((plain) => ({ plain, isNested: TEXT.test(plain) })),
  ]
}

/** Without control characters. */
const TEXT = /^[^\0-\x08\x0e-\x1f\x7f]*$/

function isFound(value: string, text: string, depth: number): boolean {
  if (text.includes(value)) return true
  if (depth === 0) return false
  return decode(text).some(({ plain, isNested }) => isFound(value, plain, isNested ? depth - 1 : 0))
}

/** As chunks that end at these places. */
async function* cut(text: string, places: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  for (const [at, end] of [...ends, bytes.length].entries()) yield bytes.subarray(ends[at - 1] ?? 0, end)
}

const places = fc.array(fc.nat(4000), { maxLength: 6 })

t.test('a scan finds in each line what a plain search finds', async () => {
  const cases = values.chain((of) => fc.tuple(fc.constant(of), textWith(of), places))
  await fc.assert(
    fc.asyncProperty(cases, async ([of, text, ends]) => {
      const finder = new ValueFinder()
      for (const each of of) finder.add(each, each)
      const found: string[] = []
      for await (const { id, line } of scanChunks(cut(text, ends), finder)) found.push(`${line} ${id}`)
      const wanted = latin1(text)
        .split('\n')
        .flatMap((line, at) =>
          [...new Set(of)]
            .filter((each) => isFound(latin1(each), line, 2))
            .map((each) => `${at + 1} ${each}`),
        )
      return found.sort().join() === wanted.sort().join()
    }),
    { numRuns: 200 },
  )
})

t.test('a value in a long line is found once, across the pieces of the line', async () => {
  const cases = fc.tuple(value, encoding, encoding, fc.nat(3000), fc.nat(3000), places)
  await fc.assert(
    fc.asyncProperty(cases, async ([text, inner, outer, before, after, ends]) => {
      const finder = new ValueFinder()
      finder.add('id', text)
      const line = `one\n${'~'.repeat(before)} ${outer(inner(text))} ${'~'.repeat(after)}`
      const found: unknown[] = []
      for await (const each of scanChunks(cut(line, ends), finder, { piece: 1300, overlap: 1200 }))
        found.push(each)
      return JSON.stringify(found) === '[{"id":"id","line":2}]'
    }),
    { numRuns: 150 },
  )
})
