import fc from 'fast-check'
import t from 'tap'
import { readCsv } from '../../../src/cli/bulk/csv.js'
import { decodeChunks, type Row, readRows } from '../../../src/cli/bulk/rows.js'
import { neutralize, restore, toCsvLine } from '../../../src/domain/text/spreadsheet.js'

/** Yields the bytes of a text in chunks of these sizes. */
async function* cut(text: string, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  let at = 0
  for (const size of sizes) {
    yield bytes.subarray(at, at + size)
    at += size
  }
  yield bytes.subarray(at)
}

async function collect(rows: AsyncIterable<Row[]>): Promise<Row[]> {
  const all: Row[] = []
  for await (const some of rows) all.push(...some)
  return all
}

const read = (text: string, sizes: readonly number[] = [], format?: 'ndjson' | 'json') =>
  collect(readRows(decodeChunks(cut(text, sizes), 'The file'), format))
const brief = (rows: readonly Row[]) => rows.map(({ line, value, fault }) => [line, value ?? fault])

t.test('NDJSON and a JSON array give the same rows, however the bytes are split into chunks', async (t) => {
  const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)))
  const cases = fc.tuple(fc.array(json, { minLength: 1 }), fc.array(fc.nat(9)), fc.nat(2))
  const valuesOf = (rows: readonly Row[]) =>
    rows.filter(({ fault }) => fault === undefined).map(({ value }) => value)
  await fc.assert(
    fc.asyncProperty(cases, async ([values, sizes, spaces]) => {
      const text = values.map((value) => JSON.stringify(value)).join('\r\n\n')
      const lines = await read(`\ufeff${text}`, sizes, 'ndjson')
      const array = await read(` \n${JSON.stringify(values, undefined, spaces)}\n `, sizes)
      t.strictSame(valuesOf(lines), valuesOf(array))
      t.same([lines.length, array.length], [values.length, values.length])
    }),
    { numRuns: 150 },
  )
})

t.test('each row has its line number, and an unreadable row has a reason', async (t) => {
  for (const [text, rows] of [
    [
      '{"a":1}\n\n{"a":1,"a":2}\n7',
      [{ line: 1 }, { line: 3, fault: /refused at line 3, / }, { line: 4, value: 7 }],
    ],
    ['[1,\n\n  {"a":\nx}]', [{}, { line: 3, fault: /refused at line 4, column 1/ }]],
    ['[1,,2]', [{ value: 1 }, { fault: /row/ }, { value: 2 }]],
    // The time to read these rows must grow linearly with their length. If the time grows faster, the test exceeds
    // its time limit.
    [`[\n${' '.repeat(400_000)}1${'0'.repeat(500_000)}]`, [{ line: 2, fault: String }]],
  ] as const)
    t.match(await read(text), rows)
  const apart = await read('[\n{"a":\n1},\n\n{"b":2}]')
  t.strictSame(brief(apart), [
    [2, { a: 1 }],
    [5, { b: 2 }],
  ])
  for (const text of ['[]', '']) t.strictSame(await read(text), [])
  for (const text of ['[1', '["', '[1] 2', '{}'])
    await t.rejects(read(text, [], 'json'), { code: 'validation' }, text)
  const invalid = (async function* () {
    yield Buffer.from([0x22, 0xff])
  })()
  await t.rejects(collect(readRows(decodeChunks(invalid, 'The file'))), { code: 'validation' })
  for (const text of [`{"a":"${'x'.repeat(1024 * 1024)}"`, `[1,\n"${'x'.repeat(1024 * 1024)}`])
    await t.rejects(read(text, [4096]), { code: 'too_large', message: /Line 1:/ })
})

const csv = (text: string, map: readonly string[] = [], sizes: readonly number[] = []) =>
  collect(readCsv(decodeChunks(cut(text, sizes), 'The file'), map, (maps, isTyped) => `${maps} ${isTyped}`))

t.test('each column of a CSV is a path in its row', async (t) => {
  const text =
    '\ufeffkind,data.number,month,customer.id,notes\r\ncard,4242424242424242,07,"a\nb",x\r\n\r\nbank,,,,\n'
  const map = ['kind=type', 'month=data.expiration_month', 'customer.id=metadata.customer.id', 'notes=']
  const data = { number: '4242424242424242', expiration_month: 7 }
  t.strictSame(brief(await csv(text, map, [3, 1, 20])), [
    [2, { type: 'card', data, metadata: { 'customer.id': 'a\nb' } }],
    [4, { type: 'bank' }],
  ])
  const names = 'type,data,containers,metadata,deduplicate_token'
  const first = 'token,"{""a"":[1]}",/a/,"{""k"":""v""}",true'
  const whole = { data: { a: [1] }, containers: ['/a/'], metadata: { k: 'v' }, deduplicate_token: true }
  t.strictSame(brief(await csv(`${names}\n${first}\ntoken,42,"[""/a/"",""/b/""]",,\n`)), [
    [2, { type: 'token', ...whole }],
    [3, { type: 'token', data: '42', containers: ['/a/', '/b/'] }],
  ])
  t.strictSame(brief(await csv('data.toString.x\ny\n')), [[2, { data: { toString: { x: 'y' } } }]])
  const faults = [{ line: 2, fault: /data/ }, { fault: /3 cells/ }]
  t.match(await csv('type,data\ntoken,{oops\ntoken,4242,7'), faults)
})

t.test(
  'a column that does not name a token field, or an invalid CSV, is refused, and the error does not contain the cells',
  async (t) => {
    const refused: [string, string[], RegExp][] = [
      ['type,secret\n', [], /without a token field: "secret"\. .*:\n {2}--map secret=data.secret true$/],
      ['type,data\n', ['typ=type'], /no column "typ"; did you mean type\?$/],
      ['type,a\n', ['a=type'], /Two columns have the same target/],
      ['data,data.x\n', [], /contains the target of another column/],
      ['Ada,4242424242424242\n', [], /its column 2 looks like a value\.$/],
      ['a,b,c\n', ['a=data..x', 'b=data.__proto__.x', 'c=data.constructor.prototype.x'], /: "a", "b", "c"/],
      [`type,data${'.a'.repeat(100_000)}\n`, [], /without a token field/],
      ['type\n', ['type'], /column=path/],
      ['', [], /no header line/],
      ['type,data\ntoken,"4242', [], /Line 2: this is not CSV/],
      ['type,data\ntoken,4242"4242', [], /Line 2: this is not CSV/],
      [`type,data\ntoken,"${'4'.repeat(1024 * 1024 + 1)}`, [], /not CSV/],
    ]
    for (const [text, map, message] of refused) {
      const error = await t.rejects(csv(text, map), { message }, text.slice(0, 30))
      t.notMatch(String(error), /4242/)
    }
  },
)

t.test('reading a hostile file takes a limited time and a limited amount of memory', async (t) => {
  // If the parser compared each column with every other column, this file would take minutes.
  const names = Array.from({ length: 100_000 }, (_, at) => `data.${at.toString(36)}`)
  const [row] = await csv(`${names.join()}\n${'1,'.repeat(names.length - 1)}1\n`)
  t.equal(Object.keys((row!.value as { data: object }).data).length, names.length)
  const cell = 'x'.repeat(600_000)
  const large = `type,data\n${`token,${cell}\n`.repeat(5)}`
  async function* texts() {
    yield large
  }
  for await (const rows of readCsv(texts(), [], String)) t.equal(rows.length, 1)
})

t.test(
  'an exported cell never begins like a formula, and an import restores the original text of the cell',
  async (t) => {
    const text = fc.oneof(fc.string(), fc.constantFrom("'=1", "''+1", '=1', '-1', "'a", '\t', '＝1', '@x'))
    await fc.assert(
      fc.asyncProperty(text, async (value) => {
        t.equal(restore(neutralize(value)), value)
        t.notMatch(neutralize(value), /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/)
        // The import skips empty cells and parses cells that begin like JSON, so this check leaves out these values.
        fc.pre(value !== '' && !/^\s*(?:["[]|\{)/.test(value))
        const line = toCsvLine(['token', neutralize(value)])
        t.strictSame((await csv(`type,data\n${line}\n`))[0]?.value, { type: 'token', data: value })
      }),
      { numRuns: 200 },
    )
  },
)
