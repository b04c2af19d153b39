/**
 * Tests of tables with unusual sizes: rows, postings and ids at block borders, the blocks that a look-up reads, and the
 * memory of the cache.
 */
import t, { type Test } from 'tap'
import { BoundedMap } from '../../src/bounded-map.js'
import { CofferError } from '../../src/errors.js'
import type { Query, Row, Where } from '../../src/storage/engine.js'
import { createContext } from '../../src/storage/lsm/context.js'
import {
  encodeCopies,
  encodeOnlyCopy,
  findCopies,
  MAX_FOUND,
} from '../../src/storage/lsm/sstable/footer-copies.js'
import {
  associateBlock,
  BLOCK_SEAL,
  EXPIRY,
  encodeFooter,
  FOOTER,
  IDS,
  ROWS,
} from '../../src/storage/lsm/sstable/format.js'
import { LiveSSTable } from '../../src/storage/lsm/sstable/live-sstable.js'
import { SSTable } from '../../src/storage/lsm/sstable/reader.js'
import { search, seek } from '../../src/storage/lsm/sstable/search.js'
import { finish, writeRows } from '../../src/storage/lsm/sstable/write-tables.js'
import { diskOptions } from './disk.js'
import { createFileEngine, draftOf, idOf as idOfName, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { digest, repeatableRandom } from './powers.js'

const ALL = digest('all', 8)
const keyOf = (name: string) => digest(`key ${name}`, 8)
const idOf = (number: number) => digest(`id ${number}`, 16)

/**
 * Row `number` has a key for each of its divisors: every row has the key `all`, every second row the key `2`, and every
 * third row the key `3`. Each row also has a unique key.
 */
function rowOf(number: number): Row {
  const keys = [
    ALL,
    ...[2, 3, 1000].filter((by) => number % by === 0).map((by) => keyOf(String(by))),
    keyOf(`own ${number}`),
  ]
  const times = { created: 1_000 + number * 2, modified: number % 5 === 0 ? 50 + number : 0 }
  const expires = number % 7 === 0 ? 10_000_000 + number : 0
  return {
    kind: 3,
    tenant: 1,
    id: idOf(number),
    seq: 10 + number * 3,
    rev: number + 1,
    ...times,
    expires,
    keys: Buffer.concat(keys),
    sealed: Buffer.from(`row ${number}`),
  }
}

function makeSSTable(rows: readonly Row[], blocks = 500): { live: LiveSSTable; files: FakeFiles } {
  const files = new FakeFiles()
  files.makeDirectory('/vault')
  files.makeDirectory('/vault/segments')
  const context = { ...createContext(diskOptions(files)), blocks: new BoundedMap<number, Buffer>(blocks) }
  return { live: finish(writeRows(context, rows))[0]!, files }
}

const rowsUpTo = (count: number) => Array.from({ length: count }, (_, number) => rowOf(number))

/** Searches a table of rows, and asserts that seeking finds the same rows. */
function searchFor(live: LiveSSTable, where?: Where, now = 5): number[] {
  const shape = { kind: 3, tenant: 1, all: ALL, page: 1, size: 1 } as const
  const query: Query = where === undefined ? shape : { ...shape, where }
  const matches = search(live, [], query, now)
  const found = Array.from({ length: matches.count }, (_, index) => matches.row(index))
  const sought = [[...seek(live, [], query, now)].reverse(), [...seek(live, [], { ...query, above: 0 }, now)]]
  for (const rows of sought)
    if (JSON.stringify(rows) !== JSON.stringify(found)) throw new Error(`sought ${rows}, found ${found}`)
  return found
}

const numbers = (rows: number, isIn: (number: number) => boolean) =>
  Array.from({ length: rows }, (_, number) => number).filter(isIn)

function checkSSTable(t: Test, rows: number): void {
  const { live } = makeSSTable(rowsUpTo(rows))
  const { sstable } = live
  t.equal(sstable.rows, rows)
  t.equal(sstable.count(IDS), rows)
  t.equal(sstable.count(ROWS), rows)
  t.equal(sstable.count(EXPIRY), numbers(rows, (number) => number % 7 === 0).length)
  for (let number = 0; number < rows; number += rows > 300 ? 97 : 1) {
    t.equal(sstable.find(idOf(number)), number)
    const { keys: _, sealed, id, ...expected } = rowOf(number)
    const row = sstable.row(number)
    t.match(row, expected)
    t.ok(Buffer.from(row.id).equals(id))
    t.ok(Buffer.from(row.sealed).equals(sealed))
    t.strictSame(searchFor(live, { key: keyOf(`own ${number}`) }), [number])
  }
  t.equal(sstable.find(idOf(rows)), undefined)
  const [two, three, rare] = ['2', '3', '1000'].map((by) => ({ key: keyOf(by) })) as [Where, Where, Where]
  const cases: [Where | undefined, (number: number) => boolean][] = [
    [undefined, () => true],
    [three, (number) => number % 3 === 0],
    [{ and: [two, three] }, (number) => number % 6 === 0],
    [{ and: [two, rare] }, (number) => number % 1000 === 0],
    [{ and: [three, rare] }, (number) => number % 3000 === 0],
    [{ or: [rare, three] }, (number) => number % 1000 === 0 || number % 3 === 0],
    [{ not: { or: [two, three] } }, (number) => number % 2 !== 0 && number % 3 !== 0],
    [{ and: [two, { not: { ids: [idOf(4), idOf(rows)] } }] }, (number) => number % 2 === 0 && number !== 4],
    [{ range: 'created', from: 1_003, below: 1_000 + rows }, (number) => number >= 2 && number * 2 < rows],
    [{ range: 'modified', below: 100 }, (number) => number % 5 === 0 && number < 50],
    [
      { range: 'expires', from: 10_000_007, below: 10_000_701 },
      (number) => number % 7 === 0 && number >= 7 && number <= 700,
    ],
  ]
  const [now, soon, later] = [5, 10_000_014, 10_000_350]
  const dead = numbers(rows, (number) => number % 1999 === 6 || number === rows - 1)
  const holed = new LiveSSTable(sstable, Uint32Array.from(dead))
  for (const [where, isIn] of cases) {
    t.strictSame(searchFor(live, where, now), numbers(rows, isIn), JSON.stringify(where))
    const isLeft = (number: number) => isIn(number) && (number % 7 !== 0 || number > 350)
    t.strictSame(searchFor(live, where, later), numbers(rows, isLeft), `later, ${JSON.stringify(where)}`)
    const isWhole = (number: number) =>
      isIn(number) && !dead.includes(number) && (number % 7 !== 0 || number > 14)
    t.strictSame(
      searchFor(holed, where, soon),
      numbers(rows, isWhole),
      `without some, ${JSON.stringify(where)}`,
    )
  }
}

for (const rows of [1, 2, 31, 32, 33, 128, 129, 512, 513, 682, 683, 2048, 2049, 5000]) {
  t.test(`a table of ${rows} rows returns and counts every row`, (t) => {
    checkSSTable(t, rows)
    t.end()
  })
}

t.test('two ids with the same first half are distinguished, even at the border of a block of ids', (t) => {
  const twin = (number: number) => {
    const id = Buffer.alloc(16, 0x80)
    id.writeUInt32BE(number, 12)
    return id
  }
  const rows = Array.from({ length: 1500 }, (_, number) => ({
    ...rowOf(number),
    id: number < 600 ? Buffer.concat([Buffer.alloc(4), idOf(number).subarray(4)]) : twin(number),
  }))
  const { sstable } = makeSSTable(rows).live
  for (const number of [600, 681, 682, 683, 1363, 1364, 1365, 1499])
    t.equal(sstable.find(twin(number)), number)
  t.equal(sstable.find(twin(1500)), undefined)
  t.end()
})

t.test(
  'a damaged block of ids is reported only by reads that need this block, and rows of other blocks are not lost',
  (t) => {
    const { live, files } = makeSSTable(rowsUpTo(5000), 0)
    const { sstable } = live
    const { start } = sstable.footer.sections[IDS]!
    const file = files.open(sstable.path)!
    const byte = Buffer.alloc(1)
    files.read(file, byte, start + 50)
    files.write(file, Buffer.from([byte[0]! ^ 1]), start + 50)
    for (let round = 0; round < 2; round++) {
      const found = numbers(5000, () => true).filter((number) => {
        try {
          return sstable.find(idOf(number)) === number
        } catch (error) {
          if (!(error instanceof CofferError) || error.code !== 'vault_damaged') throw error
          return false
        }
      })
      t.equal(
        found.length,
        5000 - 683,
        'all rows are found except those of one block and the first id after that block',
      )
    }
    t.end()
  },
)

const SEALED = Buffer.from(repeatableRandom('footer').bytes(100))

/** Returns whether the search finds the footer in a file that ends with the bytes `tail`. */
const isFound = (tail: Buffer) => [...findCopies(tail)].some((found) => found.equals(SEALED))

t.test(
  'the footer of a table is found after any flipped bit, cut or addition at the end of the file',
  (t) => {
    const copies = encodeCopies(SEALED)
    const tail = Buffer.concat([repeatableRandom('blocks').bytes(300), copies])
    t.ok(isFound(tail))
    for (let bit = 0; bit < copies.length * 8; bit++) {
      const copy = Buffer.from(tail)
      copy[300 + (bit >> 3)]! ^= 1 << (bit & 7)
      if (!isFound(copy)) t.fail(`bit ${bit}`)
    }
    for (let bytes = 1; bytes <= copies.length / 2; bytes++) {
      if (!isFound(tail.subarray(0, -bytes))) t.fail(`${bytes} bytes cut`)
      for (const added of [
        Buffer.alloc(bytes),
        Buffer.alloc(bytes, 255),
        repeatableRandom('new').bytes(bytes),
      ])
        if (!isFound(Buffer.concat([tail, added]))) t.fail(`${bytes} bytes appended`)
    }
    t.notOk(isFound(tail.subarray(0, -copies.length / 2 - 1)), 'a cut of both copies')
    for (let length = 0; length < 60; length++)
      t.strictSame([...findCopies(Buffer.alloc(length))], [], `${length} bytes`)
    t.end()
  },
)

t.test(
  'the search for a footer ends after a limited number of finds, even if every place looks like a footer',
  async (t) => {
    const bytes = Buffer.alloc(4 * 1024 * 1024)
    for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(1024 * 1024, at)
    t.equal([...findCopies(bytes)].length, MAX_FOUND)
  },
)

t.test('a table of an older version, which has only one copy of its footer, can be opened and read', (t) => {
  const { live, files } = makeSSTable(rowsUpTo(300))
  const { sstable } = live
  const { copies: _, ...older } = sstable.footer
  const context = createContext(diskOptions(files))
  const id = Buffer.from(sstable.meta.id, 'hex')
  const sealed = context.keys.sstable.seal(encodeFooter(older), associateBlock(id, FOOTER, 0))
  const { start, count } = older.sections[EXPIRY]!
  const bytes = files.contents().get(sstable.path)!
  const end = encodeOnlyCopy(sealed)
  const file = Buffer.concat([bytes.subarray(0, start + count * 12 + BLOCK_SEAL), end])
  const tag = Buffer.from(sealed.subarray(-16)).toString('base64')
  for (const [added, damage] of [
    ['', undefined],
    ['12345', 'The file is 5 bytes too long.'],
  ] as const) {
    files.plant(sstable.path, Buffer.concat([file, Buffer.from(added)]))
    const opened = new SSTable(createContext(diskOptions(files)), {
      ...sstable.meta,
      tag,
      bytes: file.length,
    })
    t.equal(opened.find(idOf(299)), 299)
    t.equal(opened.checkEnd(), damage)
  }
  t.end()
})

t.test(
  'in a new process, a read of a row needs at most two reads of each table and two more reads',
  async (t) => {
    const files = new FakeFiles()
    const options = diskOptions(files)
    const first = await createFileEngine(options)
    const sstables = 5
    for (let round = 0; round < sstables; round++) {
      await first.write(async (writer) => {
        for (let index = 0; index < 800; index++) await writer.put(draftOf({ name: `${round}/${index}` }))
      })
      await first.flush()
    }
    t.equal((await first.status()).sstables, sstables)
    await first.close()
    for (const name of ['0/0', '2/799', '4/400', 'none']) {
      const engine = await openFileEngine(options)
      const before = files.reads
      const row = await engine.read((reader) => reader.get(3, 1, idOfName(name)))
      t.equal(row === undefined, name === 'none')
      // From each table, a search may read the footer and one block of ids. In addition, it may read one block of rows,
      // and the record.
      t.ok(files.reads - before <= 2 * sstables + 2, `${files.reads - before} reads`)
      await engine.close()
    }
  },
)
