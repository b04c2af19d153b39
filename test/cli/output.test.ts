import t from 'tap'
import { measureWidth } from '../../src/cli/output/display.js'
import {
  chooseFormat,
  type PrintOptions,
  printNotice,
  printProblem,
  printResult,
  printWarning,
} from '../../src/cli/output/output.js'
import { CofferError, type Problem } from '../../src/errors.js'
import { createOutput, createTerminal, type FakeTerminal } from './fake-terminal.js'

const ID = 'c06d0789-0a38-40be-b7cc-c28a718f76f1'
const card = { id: ID, type: 'card', data: { number: 'XXXXXXXXXXXX4242', expiration_month: 12 } }
const hostile = { id: 'h', type: 'to\u001b[31mken', data: '=1\n\u202eevil' }
const listOf = (data: unknown[], total = data.length, page = 1, size = 20) => ({
  pagination: {
    total_items: total,
    page_number: page,
    page_size: size,
    total_pages: Math.ceil(total / size),
  },
  data,
})

async function print(
  result: unknown,
  options: Partial<PrintOptions>,
  terminal: FakeTerminal = createTerminal(),
) {
  await printResult(terminal, result, { format: 'table', columns: ['id', 'type', 'data'], ...options })
  return { out: terminal.stdout.text, err: terminal.stderr.text }
}

t.test('a table is the answer on a terminal and JSON everywhere else, unless asked otherwise', async (t) => {
  t.equal(chooseFormat(createTerminal({ columns: 80 }), undefined), 'table')
  t.equal(chooseFormat(createTerminal(), undefined), 'json')
  t.equal(chooseFormat(createTerminal(), 'csv'), 'csv')
  t.throws(() => chooseFormat(createTerminal(), 'xml'), {
    code: 'usage',
    message: /table, json, ndjson, id, csv/,
  })
})

t.test('JSON is the whole answer: one line for a program, indented for a person', async (t) => {
  const list = listOf([card], 57)
  t.same(await print(list, { format: 'json' }), { out: `${JSON.stringify(list)}\n`, err: '' })
  const terminal = createTerminal({ columns: 80 })
  t.same(await print(list, { format: 'json' }, terminal), {
    out: `${JSON.stringify(list, null, 2)}\n`,
    err: '',
  })
  t.equal(
    (await print(hostile, { format: 'json' })).out,
    `${'{"id":"h","type":"to\\u001b[31mken",'}"data":"=1\\n\\u202eevil"}\n`,
  )
  t.equal((await print(undefined, { format: 'json' })).out, '')
  t.equal((await print(null, { format: 'json' })).out, 'null\n')
})

t.test('fields are picked from one object and from each of a list', async (t) => {
  const fields = ['data.number']
  t.equal((await print(card, { format: 'json', fields })).out, '{"data":{"number":"XXXXXXXXXXXX4242"}}\n')
  const list = listOf([card, hostile])
  const picked = { ...list, data: [{ data: { number: 'XXXXXXXXXXXX4242' } }, {}] }
  t.equal((await print(list, { format: 'json', fields })).out, `${JSON.stringify(picked)}\n`)
  t.equal((await print(list, { format: 'ndjson', fields: ['id'] })).out, `{"id":"${ID}"}\n{"id":"h"}\n`)
  t.equal((await print(list, { fields: ['data.number'] })).out, 'data.number\nXXXXXXXXXXXX4242\n\n')
  t.equal(
    (await print(card, { fields: ['type', 'data.number'] })).out,
    'type:        card\ndata.number: XXXXXXXXXXXX4242\n',
  )
})

t.test('a field that nothing has is pointed out', async (t) => {
  const { err } = await print(listOf([card, hostile]), {
    format: 'json',
    fields: ['id', 'tpye', 'data.number'],
  })
  t.equal(err, 'No item has the field tpye.\n')
  t.equal((await print(listOf([]), { format: 'json', fields: ['tpye'] })).err, '')
})

t.test('ndjson, ids and CSV are one line an item', async (t) => {
  const list = listOf([card, hostile])
  t.equal(
    (await print(list, { format: 'ndjson' })).out,
    `${JSON.stringify(card)}\n${'{"id":"h","type":"to\\u001b[31mken",'}"data":"=1\\n\\u202eevil"}\n`,
  )
  t.equal((await print(list, { format: 'id' })).out, `${ID}\nh\n`)
  t.equal((await print(card, { format: 'id' })).out, `${ID}\n`)
  t.equal((await print('bare-id', { format: 'id' })).out, 'bare-id\n')
  t.equal(
    (await print(list, { format: 'csv' })).out,
    `"id","type","data"\n"${ID}","card","{""number"":""XXXXXXXXXXXX4242"",""expiration_month"":12}"\n"h","to\u001b[31mken","'=1\n\u202eevil"\n`,
  )
  await t.rejects(print([{ value: 'x' }], { format: 'id' }), { code: 'usage', message: /no id/ })
})

t.test('on a terminal even ids and CSV are harmless', async (t) => {
  const csv = await print([hostile], { format: 'csv' }, createTerminal({ columns: 80 }))
  t.equal(csv.out, '"id","type","data"\n"h","to\\u{1b}[31mken","\'=1↵\\u{202e}evil"\n')
  const ids = await print([{ id: 'a\u001b' }], { format: 'id' }, createTerminal({ columns: 80 }))
  t.equal(ids.out, 'a\\u{1b}\n')
})

t.test('CSV without columns has those of all items', async (t) => {
  const items = [{ a: 1 }, { b: 'x' }]
  const expected = '"a","b"\n"1",""\n"","x"\n'
  t.equal((await print(items, { format: 'csv', columns: [] })).out, expected)
})

t.test('a stream is printed as its items come', async (t) => {
  const seen: string[] = []
  const terminal = createTerminal()
  async function* items() {
    for (const id of ['one', 'two']) {
      seen.push(terminal.stdout.text)
      yield { id }
    }
  }
  t.equal((await print(items(), { format: 'ndjson' }, terminal)).out, '{"id":"one"}\n{"id":"two"}\n')
  t.same(seen, ['', '{"id":"one"}\n'])
})

t.test('a stream ends with its reader', async (t) => {
  for (const format of ['ndjson', 'id'] as const) {
    let produced = 0
    async function* endless() {
      for (;;) yield { id: String(produced++) }
    }
    const terminal = { ...createTerminal(), stdout: createOutput({ failure: 'EPIPE' }) }
    await print(endless(), { format, columns: ['id'] }, terminal)
    t.ok(produced <= 1, `${format} asked for ${produced}`)
  }
})

t.test('nothing to show is said on standard error, to people', async (t) => {
  t.same(await print(undefined, {}, createTerminal({ columns: 80 })), { out: '', err: 'Done.\n' })
  const hints = { done: 'Deleted.', empty: 'No tokens.' }
  t.same(await print(undefined, { hints }, createTerminal({ columns: 80 })), { out: '', err: 'Deleted.\n' })
  t.same(await print(undefined, { hints }), { out: '', err: '' })
  t.same(await print(listOf([]), { hints }, createTerminal({ columns: 80 })), {
    out: '',
    err: 'No tokens.\n',
  })
  t.same(await print([], {}, createTerminal({ columns: 80 })), { out: '', err: 'Nothing found.\n' })
  const quiet = { ...createTerminal({ columns: 80 }), quiet: true }
  t.same(await print(undefined, { hints }, quiet), { out: '', err: '' })
})

t.test('a list says where its page stands', async (t) => {
  const items = Array.from({ length: 20 }, () => ({ id: 'x' }))
  const footer = async (list: unknown) => (await print(list, { columns: ['id'] })).err
  t.equal(await footer(listOf(items, 57)), '1–20 of 57 · page 1 of 3\n')
  t.equal(await footer(listOf(items.slice(3), 57, 3)), '41–57 of 57 · page 3 of 3\n')
  t.equal(await footer(listOf([], 57, 9)), 'No items on page 9 of 3; 57 in total.\n')
})

const rows = [
  card,
  { ...card, id: 'short', data: 'สมชาย ใจดี' },
  { ...card, id: '王小明', data: undefined },
  hostile,
]

t.test('a table that is not for a terminal is whole, aligned and without colours', async (t) => {
  const { out } = await print(listOf(rows), {})
  t.equal(
    out,
    [
      'id                                    type             data',
      `${ID}  card             {"number":"XXXXXXXXXXXX4242","expiration_month":12}`,
      'short                                 card             สมชาย ใจดี',
      '王小明                                card',
      'h                                     to\\u{1b}[31mken  =1↵\\u{202e}evil',
      '',
    ].join('\n'),
  )
})

t.test('one long value does not widen all rows of a piped table', async (t) => {
  const long = `a${' '.repeat(100_000)}b`
  const items = Array.from({ length: 100 }, (_, at) => ({ id: 'x', data: at === 50 ? long : 'y', type: 't' }))
  const { out } = await print(items, { columns: ['id', 'data', 'type'] })
  t.ok(out.includes(`${long}  t\n`), 'the value is whole')
  t.ok(out.length < 100_000 + 101 * 300)
})

t.test('a table fits the terminal, the widest column giving way first', async (t) => {
  const { out, err } = await print(listOf(rows), {}, createTerminal({ columns: 80 }))
  t.match(err, 'Cells are cut to fit: -o json shows all, --fields fewer columns.')
  t.notMatch((await print(listOf(rows), {}, createTerminal({ columns: 200 }))).err, 'cut')
  const lines = out.split('\n')
  t.equal(lines[1], `${ID}  card             {"number":"XXXXXXXXXXXX4…`)
  t.ok(lines.every((line) => measureWidth(line) <= 80))
  t.equal(Math.max(...lines.map(measureWidth)), 80)
})

t.test('what stands first is not cut: things stand one below the other before that', async (t) => {
  const entry = { created_at: '2026-01-02T03:04:05.000+00:00', message: 'm'.repeat(40), entity_id: ID }
  const options = { columns: Object.keys(entry) }
  const at = async (columns: number) =>
    (await print(listOf([entry]), options, createTerminal({ columns }))).out
  t.match(await at(60), /^2026-01-02 03:04:05Z {2}m+…/m)
  t.match(await at(38), /^created_at: /)
})

t.test('a time that would be cut is left out, unless a person chose the columns', async (t) => {
  const created_at = '2026-01-02T03:04:05.000+00:00'
  const app = { id: ID, name: 'starter private', type: 'private', permissions: ['token:read'], created_at }
  const options = { columns: Object.keys(app) }
  const narrow = createTerminal({ columns: 80 })
  const { out, err } = await print(listOf([app]), options, narrow)
  t.equal(
    out,
    `id${' '.repeat(36)}name             type     permissions\n${ID}  starter private  private  token:read\n`,
  )
  t.match(err, /^created_at is left out to fit: -o json shows all/m)
  const chosen = await print(listOf([app]), { ...options, fields: options.columns }, narrow)
  t.match(chosen, { out: /2026-01-…/, err: /^Cells are cut to fit/m })
  t.match((await print(listOf([app]), options, createTerminal({ columns: 120 }))).out, '2026-01-02 03:04:05Z')
})

t.test('a time that would wrap has seconds', async (t) => {
  const app = { permissions: ['token:read'], created_at: '2026-01-02T03:04:05.123+00:00' }
  const at = async (columns: number) => (await print(app, {}, createTerminal({ columns }))).out
  t.match(await at(40), 'created_at:  2026-01-02 03:04:05Z\n')
  t.match(await at(42), 'created_at:  2026-01-02T03:04:05.123+00:00\n')
})

t.test('where a column would be too narrow to be of use, things stand one below the other', async (t) => {
  const { out } = await print(listOf([card, hostile]), {}, createTerminal({ columns: 40 }))
  t.equal(
    out,
    [
      `id:   ${ID}`,
      'type: card',
      'data:',
      '  {',
      '    "number": "XXXXXXXXXXXX4242",',
      '    "expiration_month": 12',
      '  }',
      '',
      'id:   h',
      'type: to\\u{1b}[31mken',
      'data:',
      '  =1',
      '  \\u{202e}evil',
      '',
    ].join('\n'),
  )
})

t.test('a long table is as aligned at its end as at its start', async (t) => {
  const items = Array.from({ length: 1000 }, (_, index) => ({
    id: `${index}`.padStart(4, 'i'),
    type: 'x'.repeat(index % 7),
  }))
  const { out } = await print([...items, { id: 'a-longer-id', type: 'last' }], { columns: ['id', 'type'] })
  const lines = out.split('\n')
  t.equal(lines.length, 1 + 1001 + 1)
  t.ok(items.every(({ id, type }, index) => lines[index + 1] === `${id.padEnd(13)}${type}`.trimEnd()))
  t.equal(lines[1001], 'a-longer-id  last')
})

t.test('no width breaks a table', async (t) => {
  for (let columns = 1; columns <= 130; columns++) {
    const { out } = await print(listOf(rows), {}, createTerminal({ columns }))
    const isTable = out.startsWith('id  ')
    t.equal(isTable, columns >= 36 + 2 + 8 + 2 + 8, `${columns} columns`)
    if (isTable) t.ok(Math.max(...out.split('\n').map(measureWidth)) <= columns, `${columns} columns fit`)
  }
})

t.test('one object is a line a field, its text untouched but for what is unseen', async (t) => {
  const code = 'module.exports = async () => {\r\n\treturn {}\n}'
  const object = {
    id: ID,
    count: 0,
    none: null,
    gone: undefined,
    list: ['a\u0007', 'b'],
    mixed: [1, 'x'],
    code,
  }
  const { out, err } = await print(object, {})
  t.equal(
    out,
    [
      `id:    ${ID}`,
      'count: 0',
      'none:  null',
      'list:  a\\u{7}, b',
      'mixed: [1,"x"]',
      'code:',
      '  module.exports = async () => {',
      '    return {}',
      '  }',
      '',
    ].join('\n'),
  )
  t.equal(err, '')
  t.equal((await print({}, {})).out, '{}\n')
  t.equal((await print('text\u001b', {})).out, 'text\\u{1b}\n')
  t.equal((await print(['a', 'b\u001b'], {})).out, 'a\nb\\u{1b}\n')
  t.equal(
    (await print({ '\u001bkey': 1, ['k'.repeat(60)]: 2 }, {})).out,
    `\\u{1b}key: 1\n${'k'.repeat(60)}: 2\n`,
  )
})

t.test('colours are there when they are wanted, and only then', async (t) => {
  const colour = { stdout: true, stderr: true }
  const { out } = await print(
    listOf([hostile]),
    { columns: ['id', 'type'] },
    createTerminal({ columns: 80, colour }),
  )
  t.equal(out, '\u001b[1mid\u001b[22m  \u001b[1mtype\u001b[22m\nh   to\\u{1b}[31mken\n')
  const one = await print({ id: 'h' }, {}, createTerminal({ columns: 80, colour }))
  t.equal(one.out, '\u001b[1mid:\u001b[22m h\n')
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

t.test('a problem is told in words, a line for each message', async (t) => {
  const terminal = createTerminal()
  await printProblem(terminal, problem, 'table')
  t.equal(
    terminal.stderr.text,
    [
      'error: The token is not valid.',
      '  data.number  must pass the Luhn check',
      '  data.number  must be 12 to 19 digits',
      '  type         must be \\u{1b}[31mcard',
      '',
    ].join('\n'),
  )
  t.equal(terminal.stdout.text, '')
})

t.test('a problem with one property does not say everything twice', async (t) => {
  const terminal = createTerminal({ colour: { stdout: false, stderr: true } })
  const once = { ...problem, detail: 'type: must be card', errors: { type: ['must be card'] } }
  await printProblem(terminal, once, 'table')
  t.equal(terminal.stderr.text, '\u001b[31m\u001b[1merror:\u001b[22m\u001b[39m type: must be card\n')
})

t.test('a problem with several properties is told by them alone', async (t) => {
  const terminal = createTerminal()
  const errors = { type: ['must be card'], id: ['is too short'] }
  await printProblem(terminal, { ...problem, detail: 'type: must be card (and 1 more)', errors }, 'table')
  t.equal(
    terminal.stderr.text,
    'error: The input has 2 errors:\n  type  must be card\n  id    is too short\n',
  )
})

t.test('a problem is the object itself where JSON is spoken', async (t) => {
  for (const format of ['json', 'ndjson'] as const) {
    const terminal = createTerminal()
    await printProblem(terminal, problem, format)
    t.equal(terminal.stderr.text.indexOf('\n'), terminal.stderr.text.length - 1, 'one line')
    t.strictSame(JSON.parse(terminal.stderr.text), problem)
  }
  const terminal = createTerminal({ columns: 80 })
  await printProblem(terminal, { ...problem, errors: {} }, 'json')
  t.equal(terminal.stderr.text.split('\n').length, 9)
})

t.test('quiet silences notices and warnings, never problems', async (t) => {
  const loud = createTerminal()
  await printNotice(loud, 'a\u001b note')
  await printWarning(loud, 'careful')
  t.equal(loud.stderr.text, 'a\\u{1b} note\nwarning: careful\n')
  const quiet = createTerminal({ quiet: true })
  await printNotice(quiet, 'note')
  await printWarning(quiet, 'careful')
  await printProblem(quiet, { ...problem, errors: {} }, 'table')
  t.equal(quiet.stderr.text, 'error: The token is not valid.\n')
})

t.test('on a terminal words are not broken, nor what is to be pasted', async (t) => {
  const terminal = createTerminal({ columns: 32, colour: { stdout: false, stderr: true } })
  const errors = { id: ['must not hold any of these: a slash, a plus'], type: ['must be card'] }
  await printNotice(terminal, 'Other users may read it. Run `chmod 700 /a/b` first, then again.')
  await printNotice(terminal, 'See it:   coffer token list --output json')
  await printNotice(terminal, 'There is no vault here. Create one: coffer init --vault /a/b')
  await printWarning(terminal, 'careful with what is long')
  await printProblem(terminal, { ...problem, errors }, 'table')
  t.equal(
    terminal.stderr.text.replace(/\u001b\[\d+m/g, ''),
    [
      'Other users may read it. Run',
      '`chmod 700 /a/b` first, then',
      'again.',
      'See it:   coffer token list --output json',
      'There is no vault here. Create',
      'one: coffer init --vault /a/b',
      'warning: careful with what is',
      'long',
      'error: The token is not valid.',
      '  id    must not hold any of',
      '        these: a slash, a plus',
      '  type  must be card',
      '',
    ].join('\n'),
  )
  const file = createTerminal()
  await printNotice(file, 'word '.repeat(99).trim())
  t.equal(file.stderr.text.split('\n').length, 2, 'a file has no width')
})

t.test('who says no, or leaves, made no error', async (t) => {
  const interrupted = { ...problem, type: 'urn:coffer:problem:interrupted', detail: 'Nothing was changed.' }
  const terminal = createTerminal({ columns: 80, quiet: true })
  await printProblem(terminal, interrupted, 'table')
  t.equal(terminal.stderr.text, 'Nothing was changed.\n')
})

t.test('times in a table are short, and whole everywhere else', async (t) => {
  const at = '2030-08-27T02:23:57.123+00:00'
  const items = [{ id: 'a', created_at: at, data: at, metadata: { seen_at: at }, expires_at: 'soon' }]
  const columns = ['created_at', 'data', 'metadata.seen_at', 'expires_at']
  const table = await print(items, { columns }, createTerminal({ columns: 200 }))
  t.equal(table.out.split('\n')[1], `2030-08-27 02:23:57Z  ${at}  ${at}  soon`)
  t.match((await print(items, { columns, format: 'csv' })).out, `"${at}"`)
  t.match((await print(items[0], {}, createTerminal({ columns: 80 }))).out, `created_at: ${at}`)
})

t.test('a failure to print is a failure, but for a notice, which nobody waits for', async (t) => {
  await printNotice({ ...createTerminal(), stderr: createOutput({ failure: 'ENOSPC' }) }, 'What was done.')
  const terminal = { ...createTerminal(), stdout: createOutput({ failure: 'ENOSPC' }) }
  await t.rejects(print(card, { format: 'json' }, terminal), CofferError)
})
