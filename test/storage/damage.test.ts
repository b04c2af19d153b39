/**
 * Damage to any byte of any file: what is read is then the truth, or (only a last frame that was never confirmed) the
 * truth before it with a notice, or a clear refusal. Never something else, never an empty vault.
 */
import t, { type Test } from 'tap'
import type { Cipher } from '../../src/crypto/ports.js'
import { CofferError } from '../../src/errors.js'
import type { Engine, EngineWriter, Row } from '../../src/storage/engine.js'
import { readHeader } from '../../src/storage/vault-file.js'
import { draftOf } from './engine-suite.js'
import { asLog, createFileEngine, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

const KIND = 3

/** Stands for the sealed store: what it does not open it refuses. */
const records: Cipher = engineKeys(repeatableRandom('records'), 'records').state

function associate(id: Uint8Array, rev: number): Uint8Array {
  return Buffer.concat([id, Buffer.from(String(rev))])
}

function openRow(row: Row): string {
  const plain = records.open(row.sealed, associate(row.id, row.rev))
  if (plain === undefined) throw new CofferError('vault_damaged', 'A record does not open.')
  return Buffer.from(plain).toString()
}

async function put(writer: EngineWriter, name: string, text: string, seq?: number): Promise<void> {
  const draft = draftOf({ name, keys: ['red'], expires: name === 'b' ? 9_000 : 0 })
  const seal = (rev: number) => records.seal(Buffer.from(text), associate(draft.id, rev))
  await writer.put(seq === undefined ? { ...draft, seal } : { ...draft, seal, seq, created: 1_000 })
}

async function log(writer: EngineWriter, text: string): Promise<void> {
  const id = digest(text, 16)
  const shape = { kind: 255, tenant: 1, id, modified: 0, expires: 0, keys: digest('key/1/logs', 8) }
  const seal = (rev: number) => records.seal(Buffer.from(text), associate(id, rev))
  await writer.append(asLog({ ...shape, seal }))
}

let seeds = 0

async function optionsFor(files: FakeFiles, notices: string[] = []) {
  const random = repeatableRandom(`damage ${seeds++}`)
  const notice = (text: string) => void notices.push(text)
  const shape = { files, directory: '/vault', random, notice, clock: createClock(), role: 'command' as const }
  const header = files.stat('/vault') === undefined ? testHeader() : await readHeader(files, '/vault')
  return { ...shape, header, keys: engineKeys(random) }
}

/** A small vault with tables of both kinds and three frames; `older` is the same one before its last two works. */
async function makeVault(): Promise<{
  files: FakeFiles
  older: FakeFiles
  truth: string
  before: string
  firstHead: Buffer
}> {
  const files = new FakeFiles()
  const engine = await createFileEngine(await optionsFor(files))
  await engine.write(async (writer) => {
    await put(writer, 'a', 'first')
    await put(writer, 'b', 'second')
    await log(writer, 'log 1')
  })
  await engine.compact()
  const older = files.afterCrash(false)
  await engine.write((writer) => put(writer, 'a', 'newer', 1))
  await engine.write((writer) => log(writer, 'log 2'))
  const before = await tell(engine)
  const firstHead = files.contents().get(headOf(files))!
  await engine.write((writer) => put(writer, 'c', 'third'))
  const truth = await tell(engine)
  await engine.close()
  return { files, older, truth, before, firstHead }
}

/** Everything the vault says, by every way of asking. */
async function tell(engine: Engine): Promise<string> {
  return engine.read(async (reader) => {
    const lines: string[] = []
    const shape = { tenant: 1, page: 1, size: 10 } as const
    const all = digest('key/1/all', 8)
    const asked = { ...shape, kind: KIND, all } as const
    const found = [
      await reader.find(asked),
      await reader.find({ ...asked, where: { key: digest('key/1/red', 8) } }),
      await reader.find({ ...asked, where: { range: 'expires' } }),
      await reader.find({ ...shape, kind: 255, all: digest('key/1/logs', 8) }),
    ]
    for (const { rows, total } of found) lines.push(`${total}: ${rows.map(openRow).join(', ')}`)
    for (const name of ['a', 'b', 'c', 'none']) {
      const row = await reader.get(KIND, 1, digest(`id/${KIND}/1/${name}`, 16))
      lines.push(`${name}: ${row && openRow(row)}`)
    }
    return lines.join('\n')
  })
}

type Outcome = { told: string; notices: string[] } | { code: string }

async function look(files: FakeFiles): Promise<Outcome> {
  const notices: string[] = []
  try {
    const engine = await openFileEngine(await optionsFor(files, notices))
    try {
      return { told: await tell(engine), notices }
    } finally {
      await engine.close()
    }
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    return { code: error.code }
  }
}

const REFUSALS = ['vault_damaged', 'vault_unsupported', 'vault_missing']

/** What is wrong with an outcome, if anything. `before` is given where a last frame may be lost. */
function wrong(outcome: Outcome, truth: string, before?: string): string | undefined {
  if ('code' in outcome) return REFUSALS.includes(outcome.code) ? undefined : outcome.code
  if (outcome.told === truth) return undefined
  if (outcome.told === before && outcome.notices.length > 0) return undefined
  return outcome.told
}

function damaged(files: FakeFiles, path: string, change: (bytes: Buffer) => Buffer | undefined): FakeFiles {
  const copy = files.afterCrash(false)
  copy.plant(path, change(Buffer.from(files.contents().get(path)!)))
  return copy
}

async function damageAll(t: Test, files: FakeFiles, truth: string, before?: string): Promise<void> {
  let refused = 0
  let intact = 0
  for (const [path, bytes] of files.contents()) {
    // Only a torn last frame may go: that is, damage to the log behind what `head` covers.
    const allowed = path.includes('/journal-') ? before : undefined
    for (let at = 0; at < bytes.length; at++) {
      const flipped = damaged(files, path, (copy) => {
        copy[at]! ^= 1 << (at % 8)
        return copy
      })
      const cut = damaged(files, path, (copy) => copy.subarray(0, at))
      for (const [how, copy] of [
        ['flipped', flipped],
        ['cut', cut],
      ] as const) {
        const outcome = await look(copy)
        const fault = wrong(outcome, truth, allowed)
        if (fault !== undefined) t.fail(`${path} ${how} at ${at} of ${bytes.length}: ${fault}`)
        if ('code' in outcome) refused++
        else intact++
      }
    }
  }
  t.comment(`${refused} refused, ${intact} read as the truth`)
  t.ok(refused > 1_000, `${refused} refused`)
}

t.test('every byte flipped and every file cut at every length', async (t) => {
  const { files, truth } = await makeVault()
  const size = [...files.contents().values()].reduce((sum, { length }) => sum + length, 0)
  t.ok(size < 6_000, `${size} bytes`)
  t.strictSame(await look(files.afterCrash(false)), { told: truth, notices: [] })
  await damageAll(t, files, truth)
})

t.test('the same where the last frame was never confirmed', async (t) => {
  const { files, truth, before, firstHead } = await makeVault()
  files.plant(headOf(files), firstHead)
  t.strictSame(
    await look(files.afterCrash(false)),
    { told: truth, notices: [] },
    'a whole frame counts all the same',
  )
  const path = walOf(files)
  const { length } = files.contents().get(path)!
  for (const cut of [1, 60, 100]) {
    const outcome = await look(damaged(files, path, (copy) => copy.subarray(0, length - cut)))
    t.match(outcome, { told: before, notices: [/never confirmed was cut off/] }, `cut by ${cut}`)
  }
  let dropped = 0
  const bytes = files.contents().get(path)!
  for (let at = 0; at < length; at++) {
    const outcome = await look(
      damaged(files, path, (copy) => {
        copy[at]! ^= 0xff
        return copy
      }),
    )
    const fault = wrong(outcome, truth, before)
    if (fault !== undefined) t.fail(`log flipped at ${at}: ${fault}`)
    if ('told' in outcome && outcome.told === before) dropped++
  }
  t.equal(dropped, lastFrameLength(bytes), 'exactly the bytes of the last frame cost it')
})

t.test('a broken frame before a whole one is damage, confirmed or not', async (t) => {
  const { files, firstHead } = await makeVault()
  files.plant(headOf(files), firstHead)
  const path = walOf(files)
  const [first, second] = framesOf(files.contents().get(path)!) as [Buffer, Buffer]
  for (const at of [8, 40, second.length - 17]) {
    const flipped = damaged(files, path, (copy) => {
      copy[64 + first.length + at]! ^= 1
      return copy
    })
    t.strictSame(await look(flipped), { code: 'vault_damaged' }, `byte ${at} of the second of three`)
  }
})

t.test('a missing file is refused, not started anew', async (t) => {
  const { files } = await makeVault()
  for (const path of files.contents().keys()) {
    const copy = files.afterCrash(false)
    copy.plant(path, undefined)
    const code = path === '/vault/vault.json' ? 'vault_missing' : 'vault_damaged'
    t.strictSame(await look(copy), { code }, path)
  }
})

t.test('frames swapped, repeated or left out are refused', async (t) => {
  const { files } = await makeVault()
  const path = walOf(files)
  const bytes = files.contents().get(path)!
  const start = bytes.subarray(0, 64)
  const [first, second, third] = framesOf(bytes) as [Buffer, Buffer, Buffer]
  const cases: [string, Buffer[]][] = [
    ['swapped', [second, first, third]],
    ['repeated', [first, first, second, third]],
    ['left out', [first, third]],
    ['the first left out', [second, third]],
    ['the last left out', [first, second]],
    ['added at the end', [first, second, third, second]],
    ['all left out', []],
  ]
  for (const [title, frames] of cases) {
    const outcome = await look(damaged(files, path, () => Buffer.concat([start, ...frames])))
    const isAdded = title === 'added at the end'
    if (isAdded) t.match(outcome, { notices: [/cut off/] }, title)
    else t.strictSame(outcome, { code: 'vault_damaged' }, title)
  }
})

t.test('files of an older copy of the same vault do not fit', async (t) => {
  const { files, older, truth } = await makeVault()
  for (const [path, bytes] of older.contents()) {
    const copy = files.afterCrash(false)
    copy.plant(path, bytes)
    const fault = wrong(await look(copy), truth)
    t.equal(fault, undefined, path)
  }
  const outcome = await look(older)
  t.ok('told' in outcome, 'a whole older copy is one that nobody can tell')
})

t.test('files of another vault with the same id do not fit', async (t) => {
  const { files, truth } = await makeVault()
  const other = (await makeVault()).files
  const own = files.contents()
  for (const [path, bytes] of other.contents()) {
    const kindOf = (name: string) => name.replace(/(segments\/|-).*/, '$1')
    const target = [...own.keys()].find((name) => kindOf(name) === kindOf(path))!
    const copy = files.afterCrash(false)
    copy.plant(target, bytes)
    t.equal(wrong(await look(copy), truth), undefined, path)
  }
})

t.test('an older version of a record copied over the newer one is refused', async (t) => {
  const files = new FakeFiles()
  const engine = await createFileEngine(await optionsFor(files))
  await engine.write((writer) => put(writer, 'a', 'poor'))
  await engine.compact()
  const path = () => [...files.contents().keys()].find((name) => name.includes('/segments/'))!
  const old = files.contents().get(path())!.subarray(0, 44)
  await engine.write((writer) => put(writer, 'a', 'rich', 1))
  await engine.compact()
  await engine.close()
  t.match(await look(files.afterCrash(false)), { told: /a: rich/ })
  const outcome = await look(
    damaged(files, path(), (copy) => {
      copy.set(old)
      return copy
    }),
  )
  t.strictSame(outcome, { code: 'vault_damaged' })
})

t.test('a header of a newer format, of another shape or too large is refused by name', async (t) => {
  const { files } = await makeVault()
  const header = JSON.parse(files.contents().get('/vault/vault.json')!.toString())
  const cases: [string, unknown, string][] = [
    ['newer', { ...header, format: 3 }, 'vault_unsupported'],
    ['older', { ...header, format: 0 }, 'vault_damaged'],
    ['no format', { ...header, format: '1' }, 'vault_damaged'],
    ['no slots', { ...header, slots: 1 }, 'vault_damaged'],
    ['no vault', { ...header, vault: 'x' }, 'vault_damaged'],
    ['an older header put back', { ...header, slots: [] }, 'vault_damaged'],
    ['nothing', null, 'vault_damaged'],
    ['too large', { ...header, slots: ['x'.repeat(70_000)] }, 'vault_damaged'],
  ]
  for (const [title, value, code] of cases) {
    const outcome = await look(damaged(files, '/vault/vault.json', () => Buffer.from(JSON.stringify(value))))
    t.strictSame(outcome, { code }, title)
  }
  const unsupported = damaged(files, '/vault/vault.json', () =>
    Buffer.from(JSON.stringify({ ...header, format: 7 })),
  )
  await t.rejects(readHeader(unsupported, '/vault'), { message: /format 7.*knows 1/ })
})

function headOf(files: FakeFiles): string {
  return walOf(files).replace('journal', 'head')
}

function walOf(files: FakeFiles): string {
  return [...files.contents().keys()].find((path) => path.includes('/journal-'))!
}

function framesOf(bytes: Buffer): Buffer[] {
  const frames: Buffer[] = []
  for (let at = 64; at < bytes.length; ) {
    const next = at + 8 + bytes.readUInt32LE(at)
    frames.push(bytes.subarray(at, next))
    at = next
  }
  return frames
}

function lastFrameLength(bytes: Buffer): number {
  return framesOf(bytes).at(-1)!.length
}
