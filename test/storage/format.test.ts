/**
 * The bytes of format 1, fixed for ever: each layout spelled out once, and whole files by their digest. A failure here
 * means that vaults made by released versions would no longer open.
 */
import sodium from 'libsodium-wrappers'
import t from 'tap'
import { decodeId, encodeId, packRows, unpackRows } from '../../src/storage/bytes.js'
import { associateBlock, decodeFooter, decodeTail } from '../../src/storage/lsm/sstable/format.js'
import {
  type Change,
  decodeFrame,
  encodeFrame,
  INSERT,
  LOG,
  nameRow,
  REMOVE,
  REPLACE,
} from '../../src/storage/lsm/sstable/row-change.js'
import { finish, writeSSTable } from '../../src/storage/lsm/sstable/row-writer.js'
import { createWal } from '../../src/storage/lsm/wal.js'
import { draftOf } from './engine-suite.js'
import { asLog, createFileEngine, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock, engineKeys, repeatableRandom, testHeader } from './powers.js'

const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex')
const fill = (byte: number, length: number) => new Uint8Array(length).fill(byte)
const digestOf = (bytes: Uint8Array) => hex(sodium.crypto_generichash(16, bytes, null))

const row = {
  kind: 3,
  tenant: 0x0102,
  id: fill(0xaa, 16),
  seq: 5,
  rev: 9,
  created: 0x010203040506,
  modified: 7,
  expires: 8,
  keys: fill(0xbb, 16),
  sealed: fill(0xcc, 5),
}

t.test('a frame', (t) => {
  const changes: Change[] = [
    { kind: INSERT, row },
    {
      kind: LOG,
      row: {
        ...row,
        kind: 255,
        rev: 10,
        keys: fill(0xdd, 8),
        sealed: Buffer.concat([fill(0xee, 16), row.sealed]),
      },
    },
    { kind: REMOVE, row: nameRow(3, 1, fill(0x11, 16), 11) },
  ]
  const plain = encodeFrame(changes, 0x1234)
  t.equal(
    hex(plain),
    `01${'0300'}${'090000000000'}${'341200000000'}` +
      `01${'03'}${'0201'}${'aa'.repeat(16)}050000000000060504030201070000000000080000000000${'02'}05000000${'bb'.repeat(16)}${'cc'.repeat(5)}` +
      `04${'ff'}${'0201'}${'aa'.repeat(16)}050000000000060504030201070000000000080000000000${'01'}15000000${'dd'.repeat(8)}${'ee'.repeat(16)}${'cc'.repeat(5)}` +
      `03${'03'}${'0100'}${'11'.repeat(16)}${'00'.repeat(24)}${'00'}00000000`,
  )
  const frame = decodeFrame(plain)
  t.match(frame, { rev: 9, time: 0x1234, changes: { length: 3 } })
  t.strictSame(encodeFrame(frame.changes, frame.time), plain, 'reads back as it was')
  t.strictSame(
    frame.changes.map(({ row }) => row.rev),
    [9, 10, 11],
  )
  for (let cut = 0; cut < plain.length; cut++) {
    t.throws(() => decodeFrame(plain.subarray(0, cut)), { code: 'vault_damaged' }, `cut at ${cut}`)
  }
  const later = Buffer.from(plain)
  later[0] = 2
  t.throws(() => decodeFrame(later), { code: 'vault_unsupported' })
  t.end()
})

t.test('a log, its header and the chain of its frames', (t) => {
  const files = new FakeFiles()
  files.makeDirectory('/vault')
  const keys = engineKeys()
  const vault = decodeId('aaaqeayeaudaocajbifqydiob4')!
  const context = { files, directory: '/vault', vault, wal: keys.wal, head: keys.head }
  const wal = createWal(context, { bytes: (count) => fill(0x77, count) }, fill(0x99, 16))
  wal.append(fill(1, 3))
  const tag = wal.position.tag
  wal.append(fill(2, 3))
  wal.acknowledge()
  const [path] = [...files.contents().keys()]
  t.equal(path, `/vault/journal-${encodeId(fill(0x77, 16))}`)
  const bytes = files.contents().get(path!)!
  t.equal(
    hex(bytes.subarray(0, 64)),
    `${hex(Buffer.from('COFFERJ1'))}01000000${'77'.repeat(16)}000102030405060708090a0b0c0d0e0f${'00'.repeat(20)}`,
  )
  t.equal(hex(bytes.subarray(64, 72)), '2b000000d4ffffff')
  t.equal(bytes.length, 64 + 2 * (8 + 40 + 3))
  const first = Buffer.concat([fill(0x77, 16), Buffer.from('000000000000', 'hex'), fill(0x99, 16)])
  const second = Buffer.concat([fill(0x77, 16), Buffer.from('010000000000', 'hex'), tag])
  t.equal(hex(keys.wal.open(bytes.subarray(72, 115), first)), '010101')
  t.equal(hex(keys.wal.open(bytes.subarray(123), second)), '020202')
  const head = keys.head.open(files.contents().get('/vault/head')!, vault)
  t.equal(hex(head), `${'77'.repeat(16)}020000000000a60000000000${hex(bytes.subarray(bytes.length - 16))}`)
  t.end()
})

t.test('a table, its sections, footer and tail', (t) => {
  const files = new FakeFiles()
  files.makeDirectory('/vault')
  files.makeDirectory('/vault/segments')
  const keys = engineKeys()
  const random = { bytes: (count: number) => fill(0x55, count) }
  const other = {
    ...row,
    id: fill(0x0a, 16),
    seq: 6,
    expires: 0,
    keys: Buffer.concat([fill(0xbb, 8), fill(0x01, 8)]),
  }
  const context = { files, directory: '/vault', cipher: keys.sstable, random }
  const name = finish(writeSSTable(context, [row, other]))
  t.match(name, { rows: 2, from: 5, to: 6 })
  const bytes = files.contents().get(`/vault/segments/r-${encodeId(fill(0x55, 16))}`)!
  t.equal(bytes.length, name.bytes)
  t.equal(hex(bytes.subarray(0, 10)), 'cc'.repeat(10), 'the records, as they were sealed')
  const tail = decodeTail(bytes.subarray(bytes.length - 32))!
  t.equal(
    hex(bytes.subarray(bytes.length - 32)),
    `${hex(Buffer.from('COFFERS1'))}${hex(u48(tail.position))}${hex(u32(tail.length))}${'00'.repeat(14)}`,
  )
  const sealed = bytes.subarray(tail.position, tail.position + tail.length)
  t.equal(hex(sealed.subarray(sealed.length - 16)), hex(name.tag))
  const plain = keys.sstable.open(sealed, associateBlock(fill(0x55, 16), 0, 0))!
  const footer = decodeFooter(plain)!
  const block = (section: 1 | 2 | 3 | 4 | 5) => {
    const { start, length } = footer.sections[section]
    const associated = Buffer.concat([fill(0x55, 16), Buffer.from([section]), u32(0)])
    return hex(keys.sstable.open(bytes.subarray(start, start + length + 40), associated))
  }
  t.equal(block(1), `${'0a'.repeat(8)}01000000${'aa'.repeat(8)}00000000`, 'ids')
  t.equal(
    block(2),
    `${'aa'.repeat(16)}050000000000090000000000060504030201070000000000080000000000${'000000000000'}05000000030002010000${'0000'}` +
      `${'0a'.repeat(16)}060000000000090000000000060504030201070000000000000000000000${'050000000000'}05000000030002010000${'0000'}`,
    'rows',
  )
  t.equal(block(3), `${'01'.repeat(8)}0100000001000000${'bb'.repeat(8)}0000000002000000`, 'dict')
  t.equal(block(4), '0000000001000000', 'post')
  t.equal(block(5), '080000000000000000000000', 'expiry')
  t.equal(
    hex(plain),
    `01010000${'02000000'}${'050000000000060000000000'}${'060504030201060504030201'}${'080000000000080000000000'}0a0000000000` +
      ([1, 2, 3, 4, 5] as const)
        .map(
          (section) => hex(u48(footer.sections[section].start)) + hex(u48(footer.sections[section].length)),
        )
        .join('') +
      `01000000${'0201'}02000000` +
      `01000000${'0a'.repeat(8)}01000000${'01'.repeat(8)}`,
    'footer',
  )
  t.end()
})

function u48(number: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntLE(number, 0, 6)
  return bytes
}

function u32(number: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(number)
  return bytes
}

t.test('whole files, made with fixed keys and randomness', async (t) => {
  const files = new FakeFiles()
  const random = repeatableRandom('format 2')
  const shape = {
    files,
    directory: '/vault',
    header: testHeader(),
    clock: createClock(),
    notice: () => undefined,
  }
  const options = { ...shape, random, keys: engineKeys(random), role: 'command' as const }
  const engine = await createFileEngine(options)
  await engine.write(async (writer) => {
    await writer.put(draftOf({ name: 'a', keys: ['red', 'blue'], expires: 9_000 }))
    await writer.put(draftOf({ name: 'b', keys: ['red'] }))
    await writer.append(asLog(draftOf({ name: 'log' })))
  })
  await engine.compact()
  await engine.write((writer) =>
    writer.put({ ...draftOf({ name: 'a', text: 'again' }), seq: 1, created: 1_000 }),
  )
  await engine.write((writer) => writer.dropTenant(2))
  await engine.close()
  const state = JSON.parse(
    Buffer.from(
      options.keys.state.open(files.contents().get('/vault/state')!, decodeId(shape.header.vault)!)!,
    ).toString(),
  )
  t.matchOnlyStrict(
    { ...state, segments: state.segments.length, journals: state.journals.length },
    {
      generation: 2,
      headers: ['wyHw3SIktD8LiOYFStiwV2lIWFmcgUm2en82N+kGc2s='],
      counters: {
        seq: 4,
        rev: 4,
        time: 1_000,
      },
      journals: 1,
      segments: 1,
    },
  )
  const digests = [...files.contents()].map(
    ([path, bytes]) => `${path.replace(/-.*/, '')} ${digestOf(bytes)}`,
  )
  t.strictSame(digests.sort(), [
    '/vault/head 1ca4e03122b12e5f15dd0aac6e307d75',
    '/vault/journal a7ac82089f5be22c1a56a34c787d74d7',
    '/vault/segments/r 2c7b313963ac51dc64e86075575a8e8d',
    '/vault/state b746630b6baf5846bac0916d5d5a40dc',
    '/vault/vault.json 119ebe1446ba841a1a97bd0828c44895',
  ])
  await (await openFileEngine(options)).close()
})

t.test('ids and lists of rows', (t) => {
  t.equal(encodeId(Buffer.from('foobar')), 'mzxw6ytboi', 'RFC 4648 section 10')
  t.strictSame(Buffer.from(decodeId('mzxw6ytboi')!).toString(), 'foobar')
  for (const wrong of ['MZXW6', 'm1', 'a', 'mzxw6ytboj']) t.equal(decodeId(wrong), undefined, wrong)
  for (const rows of [[], [0], [0, 1, 2], [127, 128, 255, 256, 16_511, 16_512], [262_143], [4_294_967_295]]) {
    t.strictSame([...unpackRows(packRows(rows))], rows)
  }
  t.equal(packRows([0, 1, 200]), 'gYFHgQ==')
  t.equal(REPLACE, 2)
  t.end()
})
