import t from 'tap'
import { measureWidth } from '../../src/cli/output/display.js'
import {
  chooseFormat,
  type PrintOptions,
  printLogLine,
  printNotice,
  printProblem,
  printResult,
  printWarning,
} from '../../src/cli/output/output.js'
import { CofferError, type Problem } from '../../src/errors.js'
import { createOutput, createTerminal, type FakeTerminal } from './fake-process.js'

const ID = 'c06d0789-0a38-40be-b7cc-c28a718f76f1'
const card = { id: ID, type: 'card', data: { number: 'XXXXXXXXXXXX4242', expiration_month: 12 } }
const hostile = { id: 'h', type: 'to\u001b[31mken', data: '=1\n\u202eevil' }
const HOSTILE_JSON = '{"id":"h","type":"to\\u001b[31mken","data":"=1\\n\\u202eevil"}\n'
const items = [
  card,
  { ...card, id: 'short', data: 'สมชาย ใจดี' },
  { ...card, id: '王小明', data: undefined },
  hostile,
]

function listOf(data: unknown[], total_items = data.length, page_number = 1) {
  const pages = { page_number, page_size: 20, total_pages: Math.ceil(total_items / 20) }
  return { pagination: { total_items, ...pages }, data }
}

async function print(result: unknown, options: Partial<PrintOptions>, terminal: FakeTerminal | number = 0) {
  const shown =
    typeof terminal === 'number' ? createTerminal(terminal ? { columns: terminal } : {}) : terminal
  await printResult(shown, result, { format: 'table', columns: ['id', 'type', 'data'], ...options })
  return { out: shown.stdout.text, err: shown.stderr.text }
}

t.test('the default format is a table on a terminal, and JSON everywhere else', async (t) => {
  t.equal(chooseFormat(createTerminal({ columns: 80 }), undefined), 'table')
  t.equal(chooseFormat(createTerminal(), undefined), 'json')
  t.equal(chooseFormat(createTerminal(), 'csv'), 'csv')
})

t.test('every format prints the answer, and no control character reaches a terminal', async (t) => {
  const list = listOf([card, hostile], 57)
  const one = listOf([card])
  const number = ['data.number']
  const ids = '"id","type","data"\n'
  const named = { '\u001bkey': 1, ['k'.repeat(60)]: 2 }
  const own = 'type:        card\ndata.number: XXXXXXXXXXXX4242\n'
  for (const [name, result, options, columns, out] of [
    ['json', one, { format: 'json' }, 0, `${JSON.stringify(one)}\n`],
    ['json for a person', one, { format: 'json' }, 80, `${JSON.stringify(one, null, 2)}\n`],
    ['escapes', hostile, { format: 'json' }, 0, HOSTILE_JSON],
    ['null', null, { format: 'json' }, 0, 'null\n'],
    ['a field', card, { format: 'json', fields: number }, 0, '{"data":{"number":"XXXXXXXXXXXX4242"}}\n'],
    ['ndjson', list, { format: 'ndjson' }, 0, `${JSON.stringify(card)}\n${HOSTILE_JSON}`],
    ['ids', list, { format: 'id' }, 0, `${ID}\nh\n`],
    ['the id of one', card, { format: 'id' }, 0, `${ID}\n`],
    ['an id on a terminal', [{ id: 'a\u001b' }], { format: 'id' }, 80, 'a\\u{1b}\n'],
    ['a value', card, { format: 'value', fields: number }, 0, 'XXXXXXXXXXXX4242\n'],
    ['csv', [hostile], { format: 'csv' }, 0, `${ids}"h","to\u001b[31mken","'=1\n\u202eevil"\n`],
    ['csv shown', [hostile], { format: 'csv' }, 80, `${ids}"h","to\\u{1b}[31mken","'=1↵\\u{202e}evil"\n`],
    ['csv of all', [{ a: 1 }, { b: 'x' }], { format: 'csv', columns: [] }, 0, '"a","b"\n"1",""\n"","x"\n'],
    ['some fields of one', card, { fields: ['type', ...number] }, 0, own],
    ['text', 'text\u001b', {}, 0, 'text\\u{1b}\n'],
    ['nothing in it', {}, {}, 0, '{}\n'],
    ['names of fields', named, {}, 0, `\\u{1b}key:                1\n${'k'.repeat(60)}: 2\n`],
  ] as [string, unknown, Partial<PrintOptions>, number, string][])
    t.equal((await print(result, options, columns)).out, out, name)
  await t.rejects(print([{ value: 'x' }], { format: 'id' }), { code: 'usage', message: /no id/ })
  await t.rejects(print(card, { format: 'value' }), { code: 'usage', message: /prints one field/ })
})

t.test(
  'the items of a stream are printed one by one, and the stream ends when the reader closes the output',
  async (t) => {
    const seen: string[] = []
    const terminal = createTerminal()
    async function* list() {
      for (let at = 0; ; at++) {
        seen.push(terminal.stdout.text)
        if (at === 2) return
        yield { id: String(at) }
      }
    }
    await print(list(), { format: 'ndjson' }, terminal)
    t.same(seen, ['', '{"id":"0"}\n', '{"id":"0"}\n{"id":"1"}\n'])
    for (const format of ['ndjson', 'id'] as const) {
      seen.length = 0
      await print(list(), { format }, { ...createTerminal(), stdout: createOutput({ failure: 'EPIPE' }) })
      t.ok(seen.length <= 1, `${format} asked for ${seen.length}`)
    }
  },
)

t.test('a notice says that an answer is empty, or which page is shown', async (t) => {
  const hints = { done: 'Deleted.', empty: 'No tokens.' }
  const page = Array.from({ length: 20 }, () => ({ id: 'x' }))
  const columns = ['id']
  for (const [result, options, width, err] of [
    [undefined, {}, 80, 'Done.\n'],
    [undefined, { hints }, 80, 'Deleted.\n'],
    [undefined, { hints }, 0, ''],
    [listOf([]), { hints }, 80, 'No tokens.\n'],
    [[], {}, 80, 'Nothing found.\n'],
    [listOf(page, 57), { columns }, 0, '1–20 of 57 · page 1 of 3\n'],
    [listOf(page.slice(3), 57, 3), { columns }, 0, '41–57 of 57 · page 3 of 3\n'],
    [listOf([], 57, 9), { columns }, 0, 'No items on page 9 of 3; 57 in total.\n'],
  ] as [unknown, Partial<PrintOptions>, number, string][])
    t.equal((await print(result, options, width)).err, err)
  t.equal((await print(undefined, {}, createTerminal({ columns: 80, quiet: true }))).err, '')
})

t.test('a piped table is complete, aligned and without colours at any length', async (t) => {
  t.equal(
    (await print(listOf(items), {})).out,
    [
      'id                                    type             data',
      `${ID}  card             {"number":"XXXXXXXXXXXX4242","expiration_month":12}`,
      'short                                 card             สมชาย ใจดี',
      '王小明                                card',
      'h                                     to\\u{1b}[31mken  =1↵\\u{202e}evil',
      '',
    ].join('\n'),
  )
  const long = `a${' '.repeat(100_000)}b`
  const rows = Array.from({ length: 1000 }, (_, at) => ({ id: 'x', data: at === 50 ? long : 'y', type: 't' }))
  const { out } = await print(rows, { columns: ['id', 'data', 'type'] })
  t.ok(out.includes(`${long}  t\n`), 'the value is not truncated')
  t.ok(out.length < 100_000 + 1001 * 300, 'a long value does not widen the other rows')
  t.equal(out.split('\n')[1000], out.split('\n')[1], 'the last row is aligned like the first')
})

t.test(
  'a table fits the width of every terminal, or becomes a list of fields if the terminal is too narrow',
  async (t) => {
    for (let columns = 1; columns <= 130; columns++) {
      const { out, err } = await print(listOf(items), {}, columns)
      const isTable = out.startsWith('id  ')
      t.equal(isTable, columns >= 36 + 2 + 8 + 2 + 8, `${columns} columns`)
      if (!isTable) continue
      t.ok(Math.max(...out.split('\n').map(measureWidth)) <= columns, `${columns} columns fit`)
      t.equal(/Cells are cut\s+to fit\. Show all with -o json/.test(err), out.includes('…'))
    }
    t.match((await print(listOf(items), {}, 80)).out, `${ID}  card             {"number":"XXXXXXXXXXXX4…`)
    const data = '  {\n    "number": "XXXXXXXXXXXX4242",\n    "expiration_month": 12\n  }\n'
    const narrow = await print(listOf([card, hostile]), { optional: ['type'] }, 40)
    const second = 'id:   h\ntype: to\\u{1b}[31mken\ndata:\n  =1\n  \\u{202e}evil\n'
    t.match(narrow, { out: `id:   ${ID}\ntype: card\ndata:\n${data}\n${second}`, err: /^(?!.*cut)/s })
  },
)

t.test('a table shows times with seconds, and other formats show complete times', async (t) => {
  const at = '2030-08-27T02:23:57.123+00:00'
  const item = { created_at: at, data: at, expires_at: 'soon' }
  const { out } = await print([item], { columns: ['created_at', 'data', 'expires_at'] }, 200)
  t.equal(out.split('\n')[1], `2030-08-27T02:23:57Z  ${at}  soon`)
  t.match((await print(item, {}, 40)).out, `created_at: ${at}\n`)
})

t.test(
  'an object is printed with one line for each field, and only invisible characters are escaped',
  async (t) => {
    const code = 'module.exports = async () => {\r\n\treturn {}\n}'
    const object = { id: ID, none: null, gone: undefined, list: ['a\u0007', 'b'], mixed: [1, 'x'], code }
    const lines = ['module.exports = async () => {', '  return {}', '}'].map((line) => `  ${line}\n`)
    const { out } = await print(object, {})
    t.equal(out, `id:    ${ID}\nnone:  null\nlist:  a\\u{7}, b\nmixed: [1,"x"]\ncode:\n${lines.join('')}`)
  },
)

t.test('colours are printed if they are requested', async (t) => {
  const terminal = () => createTerminal({ columns: 80, colour: { stdout: true, stderr: true } })
  const { out } = await print(listOf([hostile]), { columns: ['id', 'type'] }, terminal())
  t.equal(out, '\u001b[1mid\u001b[22m  \u001b[1mtype\u001b[22m\nh   to\\u{1b}[31mken\n')
  t.equal((await print({ id: 'h' }, {}, terminal())).out, '\u001b[1mid:\u001b[22m h\n')
})

const problem: Problem = {
  type: 'urn:coffer:problem:validation',
  title: 'Bad Request',
  status: 400,
  detail: 'The token is not valid.',
  instance: 'trace',
  errors: {
    'data.number': ['must pass the Luhn check', 'must be 12 to 19 digits'],
    type: ['must be \u001b[31mcard'],
  },
}

t.test('a problem document is printed in words, and no detail is printed twice', async (t) => {
  const interrupted = { type: 'urn:coffer:problem:interrupted', detail: 'Nothing was changed.', errors: {} }
  const type = ['must be card']
  const luhn = '  data.number: must pass the Luhn check\n  data.number: must be 12 to 19 digits\n'
  for (const [change, text] of [
    [{}, `error: The token is not valid.\n${luhn}  type: must be \\u{1b}[31mcard\n`],
    [{ detail: 'type: must be card', errors: { type } }, 'error: type: must be card\n'],
    [
      { detail: 'type: must be card (and 1 more)', errors: { type, id: ['is too short'] } },
      'error: The input has 2 errors:\n  type: must be card\n  id: is too short\n',
    ],
    [interrupted, 'Nothing was changed.\n'],
    [
      { detail: 'a\nerror: b', errors: { x: ['c\nerror: d'], y: ['e'] } },
      'error: a\n  error: b\n  x: c\n    error: d\n  y: e\n',
    ],
  ] as [Partial<Problem>, string][]) {
    const terminal = createTerminal({ quiet: true })
    await printProblem(terminal, { ...problem, ...change }, 'table')
    t.same([terminal.stderr.text, terminal.stdout.text], [text, ''])
  }
  const coloured = createTerminal({ colour: { stdout: false, stderr: true } })
  await printProblem(coloured, problem, 'table')
  t.match(coloured.stderr.text, '\u001b[31m\u001b[1merror:\u001b[22m\u001b[39m The token')
  for (const format of ['json', 'ndjson'] as const) {
    const terminal = createTerminal()
    await printProblem(terminal, problem, format)
    t.equal(terminal.stderr.text.indexOf('\n'), terminal.stderr.text.length - 1, 'one line')
    t.strictSame(JSON.parse(terminal.stderr.text), problem)
  }
})

t.test(
  'notices and warnings are wrapped, but commands in them are not, and --quiet hides notices',
  async (t) => {
    const terminal = createTerminal({ columns: 32 })
    await printNotice(terminal, 'Other users may read it. Run `chmod 700 /a/b` first, then again.')
    await printNotice(terminal, 'There is no vault here. Create one: coffer init --vault /a/b')
    await printWarning(terminal, 'careful with \u001b what is long')
    t.equal(
      terminal.stderr.text,
      `Other users may read it. Run
\`chmod 700 /a/b\` first, then
again.
There is no vault here. Create
one: coffer init --vault /a/b
warning: careful with \\u{1b}
what is long
`,
    )
    const [quiet, file] = [createTerminal({ quiet: true }), createTerminal()]
    await printNotice(quiet, 'note')
    await printWarning(quiet, 'careful\nwarning: not ours')
    t.equal(quiet.stderr.text, 'warning: careful\n  warning: not ours\n')
    await printNotice(file, 'word '.repeat(99).trim())
    t.equal(file.stderr.text.split('\n').length, 2, 'text for a file is not wrapped')
  },
)

t.test(
  'an error of standard output ends the command as failed, but an error while a notice is printed does not',
  async (t) => {
    const full = { ...createTerminal(), stderr: createOutput({ failure: 'ENOSPC' }) }
    await printNotice(full, 'What was done.')
    await printWarning(full, 'What was ignored.')
    const terminal = { ...createTerminal(), stdout: createOutput({ failure: 'ENOSPC' }) }
    await t.rejects(print(card, { format: 'json' }, terminal), CofferError)
  },
)

t.test(
  'each report in the log of a server is one line, whatever characters the name in the report contains',
  async (t) => {
    const terminal = createTerminal()
    await printLogLine(terminal, 'Webhook "a\nWebhook "b": 5 events were dropped\r\u001b[2K\u2028": refused.')
    const name = 'a↵Webhook "b": 5 events were dropped\\u{d}\\u{1b}[2K\\u{2028}'
    t.equal(terminal.stderr.text, `Webhook "${name}": refused.\n`)
  },
)
