import * as fc from 'fast-check'
import t from 'tap'
import { encodeFrame, FrameReader } from '../../src/ipc/frames.js'
import { readGuestMessage } from '../../src/reactor/messages.js'

t.test('messages come out as they went in, however the stream is cut', async (_t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue(), { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
      async (messages, cuts) => {
        const stream = Buffer.concat(messages.map(encodeFrame))
        const reader = new FrameReader()
        const found: unknown[] = []
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const size = cuts[turn % cuts.length]!
          reader.add(stream.subarray(at, at + size))
          for (let frame = reader.next(1_000_000); frame !== undefined; frame = reader.next(1_000_000))
            found.push(JSON.parse(frame.toString()))
          at += size
        }
        return JSON.stringify(found) === JSON.stringify(messages)
      },
    ),
  )
})

t.test('a frame that claims to be too long ends the stream before it is held', async (t) => {
  const reader = new FrameReader()
  reader.add(encodeFrame('short'))
  t.equal(reader.next(100)?.toString(), '"short"')
  const claim = Buffer.alloc(4)
  claim.writeUInt32BE(101)
  reader.add(claim)
  t.equal(reader.next(100)?.length, 0)
})

t.test('a message of another shape than ours is no message', async (t) => {
  const good = [
    { kind: 'ready' },
    { kind: 'idle' },
    { kind: 'log', level: 'log', text: 'x' },
    { kind: 'call', call: 1, name: 'tokens.create', args: '[]' },
    { kind: 'done' },
    { kind: 'done', raw: '1', tokenize: '2' },
    { kind: 'failed', failure: { kind: 'invalid', message: 'x', line: 1, column: 2 } },
    {
      kind: 'failed',
      failure: { kind: 'thrown', message: 'x', status: 400, errors: { a: ['b'] }, stack: 's' },
    },
    { kind: 'report', args: ['a'], configuration: [], unknown: [] },
  ]
  for (const message of good) t.same(readGuestMessage(JSON.stringify(message)), message)
  const bad = [
    '',
    '{',
    'null',
    '[]',
    '1',
    '{}',
    '{"kind":"constructor"}',
    '{"kind":"__proto__"}',
    '{"kind":"log","level":"log"}',
    '{"kind":"call","call":"1","name":"a","args":"[]"}',
    '{"kind":"done","raw":1}',
    '{"kind":"done","body":"x"}',
    '{"kind":"done","hasBody":1}',
    '{"kind":"failed"}',
    '{"kind":"failed","failure":{"kind":"thrown","message":"x","errors":{"a":"b"}}}',
    '{"kind":"report","args":[1],"configuration":[]}',
  ]
  for (const text of bad) t.equal(readGuestMessage(text), undefined, text)
})
