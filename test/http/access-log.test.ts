import t from 'tap'
import { type AccessEntry, createAccessLog, formatEntry } from '../../src/http/access-log.js'
import { createRateLimit } from '../../src/http/rate-limit.js'

const TIME = Date.parse('2030-01-15T12:00:00Z')
const entry: AccessEntry = {
  method: 'GET',
  route: '/tokens/{id}',
  status: 200,
  ms: 1.23456,
  traceId: 'trace',
  applicationId: 'app',
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

t.test('a log entry is one line of text or of JSON', async (t) => {
  const text = '2030-01-15T12:00:00.000Z GET /tokens/{id} 200 1.23 ms trace'
  t.equal(formatEntry(entry, TIME, 'text'), `${text} app\n`)
  t.equal(formatEntry({ ...entry, applicationId: undefined }, TIME, 'text'), `${text} -\n`)
  const shown = {
    ...{ time: '2030-01-15T12:00:00.000Z', method: 'GET', route: '/tokens/{id}', status: 200, ms: 1.23 },
    ...{ trace_id: 'trace', application_id: 'app' },
  }
  t.equal(formatEntry(entry, TIME, 'json'), `${JSON.stringify(shown)}\n`)
})

t.test(
  'log lines of one turn of the event loop are written together, and a slow reader gets a count of dropped lines',
  async (t) => {
    const writes: string[] = []
    const sink = { writableLength: 0, write: (text: string) => writes.push(text) }
    const log = createAccessLog(sink, 'text', () => TIME)
    log(entry)
    log(entry)
    t.equal(writes.length, 0)
    await turn()
    t.equal(writes.length, 1)
    t.equal(writes[0], formatEntry(entry, TIME, 'text').repeat(2))
    sink.writableLength = 70_000
    log(entry)
    log(entry)
    await turn()
    t.equal(writes.length, 1, 'dropped')
    sink.writableLength = 0
    log(entry)
    await turn()
    t.equal(writes[1], `{"dropped_lines":2}\n${formatEntry(entry, TIME, 'text')}`)
    for (let count = 0; count < 10_000; count++) log(entry)
    await turn()
    t.ok((writes[2] ?? '').length < 66_000, 'the number of pending lines in one turn is limited too')
  },
)

t.test('a rate limit remembers a limited number of callers, and forgets the oldest callers', async (t) => {
  const limit = createRateLimit({ count: 1, periodMs: 1_000 }, () => 0)
  t.equal(limit.take('first'), 0)
  t.equal(limit.take('first'), 1)
  for (let count = 0; count < 9_999; count++) limit.take(`other ${count}`)
  t.equal(limit.take('first'), 1, 'still known')
  for (let count = 0; count < 10_000; count++) limit.take(`another ${count}`)
  t.equal(limit.take('first'), 0, 'the caller was forgotten, so its bucket is full again')
})
