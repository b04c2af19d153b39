/**
 * The tests damage each byte of each file of a vault. A damaged vault must either open with its true content or refuse
 * to open. If only the last, unconfirmed frame is damaged, the vault may also open with the content before that frame,
 * and then it sends a notice. The vault never shows other content, and is never empty. `vault verify` must find the
 * damage of every file. In a copy of a damaged vault, each row is either unchanged or missing.
 */
import t from 'tap'
import { CofferError } from '../../src/errors.js'
import type { CheckRow, Engine, EngineWriter, Finding, Row, Verification } from '../../src/storage/engine.js'
import { LOG_ROWS } from '../../src/storage/engine.js'
import { DamagedVault, verifyVault } from '../../src/storage/lsm/maintenance/verify.js'
import { readHeader } from '../../src/storage/vault-file.js'
import { damaged, diskOptions, flipped, framesOf, pathsOf, walsOf } from './disk.js'
import {
  allOf,
  createFileEngine,
  draftOf,
  idOf,
  KIND,
  keyOf,
  LOG_KIND,
  logOf,
  openFileEngine,
  textOf,
} from './engines.js'
import { FakeFiles } from './fake-files.js'
import { digest } from './powers.js'

/** Replaces encryption in this test: the seal shows whether the text was changed or was moved to another row. */
const seal = (text: string, id: Uint8Array, rev: number) => {
  const mac = digest(`${text}/${Buffer.from(id).toString('hex')}/${rev}`, 8)
  return Buffer.from(`${text}|${Buffer.from(mac).toString('hex')}`)
}
const plainOf = ({ sealed }: Pick<Row, 'sealed'>) => textOf({ sealed }).split('|')[0]!
const isSealed = ({ sealed, id, rev }: Row) => seal(plainOf({ sealed }), id, rev).equals(sealed)

function openRow(row: Row): string {
  if (!isSealed(row)) throw new CofferError('vault_damaged', 'A record does not open.')
  return plainOf(row)
}

async function put(writer: EngineWriter, name: string, text: string, seq?: number): Promise<void> {
  const draft = draftOf({ name, keys: ['red'], expires: name === 'b' ? 9_000 : 0 })
  const sealed = { ...draft, seal: (rev: number) => seal(text, draft.id, rev) }
  await writer.put(seq === undefined ? sealed : { ...sealed, seq, created: 1_000 })
}

async function log(writer: EngineWriter, text: string): Promise<void> {
  const entry = logOf(text)
  entry.draft.seal = (rev) => seal(text, entry.draft.id, rev)
  await writer.append(entry)
}

async function optionsFor(files: FakeFiles) {
  const options = diskOptions(files)
  if (files.stat('/vault') === undefined) return options
  return { ...options, header: await readHeader(files, '/vault') }
}

/**
 * Makes a vault with tables and three frames. In this vault, one row is replaced in a table, and another row is
 * replaced in the log. `older` is the state of the vault before the last two units of work.
 */
async function makeVault() {
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
  const [wal] = walsOf(files) as [string]
  const head = wal.replace('journal', 'head')
  const firstHead = files.contents().get(head)!
  await engine.write((writer) => put(writer, 'c', 'third'))
  const truth = await tell(engine)
  await engine.close()
  return { files, older, truth, before, wal, head, firstHead }
}

/** Reads the whole vault with every kind of read, and returns the results as one text. */
function tell(engine: Engine): Promise<string> {
  return engine.read(async (reader) => {
    const lines: string[] = []
    const shape = { kind: KIND, tenant: 1, page: 1, size: 10, all: keyOf('all') } as const
    for (const query of [
      shape,
      { ...shape, where: { key: keyOf('red') } },
      { ...shape, where: { range: 'expires' } as const },
      { ...shape, kind: LOG_KIND, all: allOf(LOG_KIND) },
    ]) {
      const { rows, total } = await reader.find(query)
      lines.push(`${total}: ${rows.map(openRow).join(', ')}`)
    }
    for (const name of ['a', 'b', 'c', 'none']) {
      const row = await reader.get(KIND, 1, idOf(name))
      lines.push(`${name}: ${row && openRow(row)}`)
    }
    return lines.join('\n')
  })
}

type Outcome = { told: string; notices: string[] } | { code: string }

async function look(files: FakeFiles): Promise<Outcome> {
  try {
    const options = await optionsFor(files)
    const engine = await openFileEngine(options)
    try {
      return { told: await tell(engine), notices: options.notices }
    } finally {
      await engine.close()
    }
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    return { code: error.code }
  }
}

const REFUSALS = ['vault_damaged', 'vault_unsupported', 'vault_missing']

/**
 * Returns a description of a wrong outcome, or undefined if the outcome is right. Pass `before`, the content without
 * the last frame, if the last frame may be lost.
 */
function wrong(outcome: Outcome, truth: string, before?: string): string | undefined {
  if ('code' in outcome) return REFUSALS.includes(outcome.code) ? undefined : outcome.code
  if (outcome.told === truth || (outcome.told === before && outcome.notices.length > 0)) return undefined
  return outcome.told
}

const check: CheckRow = (row) => {
  if (!isSealed(row)) return { problem: 'its seal is broken' }
  return row.kind === LOG_KIND || row.kind === LOG_ROWS ? { logs: 1 } : {}
}

const verify = (files: FakeFiles): Promise<Verification> => verifyVault(diskOptions(files), check)

/** Reads the rows that the copy of a damaged vault has, and asserts that reading changes no file. */
async function readAll(files: FakeFiles) {
  const before = files.contents()
  const findings: Finding[] = []
  const vault = new DamagedVault(diskOptions(files), findings)
  const texts: string[] = []
  let missing = vault.lostChanges
  for (const { row } of vault.rows(() => missing++))
    if (isSealed(row)) texts.push(plainOf(row))
    else missing++
  vault.close()
  for (const [path, bytes] of before)
    if (!files.contents().get(path)!.equals(bytes)) throw new Error(`${path} changed`)
  return { texts: texts.sort(), missing, findings }
}

const ROWS = ['log 1', 'log 2', 'newer', 'second', 'third']

t.test('a flipped byte in any file of a vault, or a truncated file, is detected', async (t) => {
  const { files, truth } = await makeVault()
  t.strictSame(await look(files.afterCrash(false)), { told: truth, notices: [] })
  t.strictSame(await readAll(files.afterCrash(false)), { texts: ROWS, missing: 0, findings: [] })
  const counts = { refused: 0, intact: 0, harmless: 0, copies: 0, lost: 0 }
  for (const [path, { length }] of files.contents())
    for (let at = 0; at < length; at++) {
      for (const change of [flipped(at, 1 << (at % 8)), (bytes: Buffer) => bytes.subarray(0, at)]) {
        const copy = damaged(files, path, change)
        const outcome = await look(copy.afterCrash(false))
        const fault = wrong(outcome, truth)
        if (fault !== undefined) t.fail(`${path} at ${at} of ${length}: ${fault}`)
        if ('code' in outcome) counts.refused++
        else counts.intact++
        // `vault verify` reads the header before it opens the vault.
        if (at % 5 !== 0 || path.endsWith('vault.json')) continue
        const { findings } = await verify(copy)
        if (findings.length === 0) counts.harmless++
        if (findings.length === 0 && 'code' in outcome) t.fail(`${path} at ${at}: refused, but not found`)
        const { texts, missing, findings: told } = await readAll(copy)
        // The lost frame had replaced the row `first`. Therefore the copy may contain the older text of the row
        // `first`.
        const strange = texts.filter((text) => !ROWS.includes(text) && text !== 'first')
        if (strange.length > 0) t.fail(`${path} at ${at}: ${strange}`)
        const lost = ROWS.filter((text) => !texts.includes(text)).length
        if (lost > 0 && missing === 0 && told.length === 0)
          t.fail(`${path} at ${at}: ${lost} rows lost without a report`)
        counts.copies++
        counts.lost += lost
      }
    }
  t.ok(counts.refused > 1_000, `${counts.refused} refused`)
  t.ok(counts.harmless < 60, `${counts.harmless} harmless`)
  t.ok(counts.lost / counts.copies < 2, 'damage costs at most two of five rows on average')
})

t.test(
  'if the footer or the end of a table is damaged, verification finds the damage and no row is lost',
  async (t) => {
    const { files, truth } = await makeVault()
    const [table] = pathsOf(files, '/segments/') as [string]
    const { length } = files.contents().get(table)!
    const footer =
      files
        .contents()
        .get(table)!
        .readUInt32LE(length - 4) + 8
    const damages: [string, (bytes: Buffer) => Buffer][] = []
    for (let back = 1; back <= 2 * footer; back++)
      damages.push([`flipped ${back} bytes before the end`, flipped(length - back, 1 << (back % 8))])
    for (let count = 1; count <= footer; count++) {
      damages.push([`${count} bytes cut`, (bytes) => bytes.subarray(0, -count)])
      damages.push([`${count} bytes appended`, (bytes) => Buffer.concat([bytes, Buffer.alloc(count, count)])])
    }
    for (const [title, change] of damages) {
      const copy = damaged(files, table, change)
      const outcome = await look(copy.afterCrash(false))
      if (!('told' in outcome) || outcome.told !== truth) t.fail(`${title}: ${JSON.stringify(outcome)}`)
      const { findings, readable } = await verify(copy)
      const [found, ...others] = findings
      if (others.length > 0 || !/footer is damaged|bytes? too (?:short|long)/.test(found?.problem ?? ''))
        t.fail(`${title}: ${JSON.stringify(findings)}`)
      if (readable.records !== 3 || readable.logs !== 2) t.fail(`${title}: ${JSON.stringify(readable)}`)
      copy.plant('/vault/state', undefined)
      const { texts } = await readAll(copy)
      if (!['first', 'second', 'log 1'].every((text) => texts.includes(text)))
        t.fail(`${title}, without state: ${texts}`)
    }
    t.ok(damages.length > 1_000, `${damages.length} damages`)
  },
)

t.test(
  'a compaction repairs a table with a damaged end, because the compaction writes the table again',
  async (t) => {
    const { files, truth } = await makeVault()
    const [table] = pathsOf(files, '/segments/') as [string]
    const copy = damaged(files, table, (bytes) => bytes.subarray(0, -1))
    const engine = await openFileEngine(await optionsFor(copy))
    await engine.compact()
    t.equal(await tell(engine), truth)
    await engine.close()
    t.notOk(pathsOf(copy, table).length, 'the damaged file is gone')
    t.strictSame((await verify(copy)).findings, [])
  },
)

t.test(
  'a vault without one of its files does not open, but a copy can contain the rows of the other files',
  async (t) => {
    const { files, head } = await makeVault()
    for (const path of files.contents().keys()) {
      const copy = damaged(files, path, () => undefined)
      const isHeader = path === '/vault/vault.json'
      t.strictSame(await look(copy), { code: 'vault_damaged' }, path)
      if (isHeader) continue
      const { texts, findings, missing } = await readAll(copy)
      if (path === head) t.match([texts, findings.length], [ROWS, 1])
      else t.ok(texts.length >= 2 && (findings.length > 0 || missing > 0), `${path}: ${texts}`)
      t.ok((await verify(copy)).findings.length > 0, path)
    }
  },
)

t.test('verification reports which rows are damaged and which can be read', async (t) => {
  const { files, wal } = await makeVault()
  const sound = await verify(files.afterCrash(false))
  t.strictSame(sound, { findings: [], readable: { records: 3, logs: 2 }, segments: 1 })
  t.match(await verify(damaged(files, '/vault/state', flipped(60))), {
    findings: [
      { place: 'state', problem: /does not open/ },
      { place: 'the write-ahead log', problem: /broken frame/ },
    ],
    readable: { records: 3, logs: 2 },
    segments: 1,
  })
  t.match(await verify(damaged(files, wal, flipped(100))), {
    findings: [{ problem: /broken/ }],
    readable: { records: 3 },
  })
  const [table] = pathsOf(files, '/segments/') as [string]
  t.match(await verify(damaged(files, table, flipped(22))), {
    findings: [{ place: /^segments\//, problem: 'Row 2: its seal is broken' }],
  })
  t.match(await verify(damaged(files, table, () => undefined)), { findings: [{ problem: /is missing/ }] })
})

t.test('a write-ahead log is refused if its frames are swapped, repeated, removed or broken', async (t) => {
  const { files, wal, head, firstHead } = await makeVault()
  const [first, second, third] = framesOf(files.contents().get(wal)!) as [Buffer, Buffer, Buffer]
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
    const outcome = await look(damaged(files, wal, () => Buffer.concat(frames)))
    if (title === 'added at the end') t.match(outcome, { notices: [/was removed/] }, title)
    else t.strictSame(outcome, { code: 'vault_damaged' }, title)
  }
  files.plant(head, firstHead)
  for (const at of [8, 40, second.length - 17])
    t.strictSame(
      await look(damaged(files, wal, flipped(first.length + at))),
      { code: 'vault_damaged' },
      `byte ${at}, in the second of three frames, is damaged, and the last frame was never confirmed`,
    )
})

t.test('files of an older copy, or of another vault with the same id, are refused', async (t) => {
  const { files, older, truth } = await makeVault()
  const other = (await makeVault()).files
  const kindOf = (name: string) => name.replace(/(segments\/|-).*/, '$1')
  for (const [disk, bytes] of [...older.contents()].concat([...other.contents()])) {
    const target = pathsOf(files, '').find((name) => name === disk || kindOf(name) === kindOf(disk))!
    t.equal(wrong(await look(damaged(files, target, () => bytes)), truth), undefined, disk)
  }
  t.ok('told' in (await look(older)), 'the vault cannot detect that all its files are an older copy')
})

t.test(
  'a vault header is refused if it has a newer format, an unknown shape or an excessive size, with the reason',
  async (t) => {
    const { files } = await makeVault()
    const header = JSON.parse(files.contents().get('/vault/vault.json')!.toString())
    const cases: [string, unknown, string][] = [
      ['newer', { ...header, format: 3 }, 'vault_unsupported'],
      ['no format', { ...header, format: '1' }, 'vault_damaged'],
      ['no slots', { ...header, slots: 1 }, 'vault_damaged'],
      ['an older header put back', { ...header, slots: [] }, 'vault_damaged'],
      ['nothing', null, 'vault_damaged'],
      ['too large', { ...header, slots: ['x'.repeat(70_000)] }, 'vault_damaged'],
    ]
    for (const [title, value, code] of cases) {
      const copy = damaged(files, '/vault/vault.json', () => Buffer.from(JSON.stringify(value)))
      t.strictSame(await look(copy), { code }, title)
      if (title === 'newer')
        await t.rejects(readHeader(copy, '/vault'), { message: /format 3.*reads format 1/ })
    }
  },
)

/** Opens the vault twice, and asserts that no byte of the log is lost. */
async function lookAtTail(files: FakeFiles, wal: string, truth: string) {
  const planted = files.contents().get(wal)!
  const first = await look(files)
  if ('code' in first) {
    if (!files.contents().get(wal)!.equals(planted)) throw new Error('a refused log was changed')
    return 'refused'
  }
  const second = await look(files)
  if (!('told' in second) || second.told !== first.told)
    throw new Error('the second opening shows other content')
  const [aside, ...others] = pathsOf(files, '/aside-')
  if (others.length > 0) throw new Error('more than one file is set aside')
  const kept = files.contents().get(aside ?? wal)!
  if (!kept.equals(planted)) throw new Error('bytes of the log are gone')
  if (aside !== undefined && !first.notices.some((text) => text.includes(aside))) throw new Error('untold')
  if (first.told === truth) return 'whole'
  return aside === undefined ? 'shorter' : 'set aside'
}

t.test(
  "damage at the end of the log is refused or set aside, depending on what the log's head confirms",
  async (t) => {
    const { files, wal, head, firstHead, truth } = await makeVault()
    const bytes = files.contents().get(wal)!
    const borders = [0]
    for (const frame of framesOf(bytes)) borders.push(borders.at(-1)! + frame.length)
    const places = borders.flatMap((border, index) => {
      const next = borders[index + 1]
      return next === undefined ? [border] : [border, border + 3, Math.floor((border + next) / 2), next - 1]
    })
    const heads: Record<string, Buffer | undefined> = {
      present: files.contents().get(head),
      older: firstHead,
      missing: undefined,
      empty: Buffer.alloc(0),
      zeroed: Buffer.alloc(68),
    }
    const damages: Record<string, (at: number) => Buffer> = {
      cut: (at) => bytes.subarray(0, at),
      zeroed: (at) => Buffer.concat([bytes.subarray(0, at), Buffer.alloc(bytes.length - at)]),
      flipped: (at) => flipped(at)(Buffer.from(bytes)),
    }
    for (const [which, planted] of Object.entries(heads))
      for (const [how, damage] of Object.entries(damages))
        for (const at of places) {
          const copy = damaged(files, wal, () => damage(at))
          copy.plant(head, planted)
          const outcome = await lookAtTail(copy, wal, truth)
          const isSound = at === bytes.length
          const isLast = at >= borders.at(-2)!
          let expected = 'refused'
          if (which === 'present' && isSound) expected = 'whole'
          if (which === 'older' && isLast)
            expected = how === 'cut' && borders.includes(at) ? 'shorter' : 'set aside'
          if (which === 'older' && isSound) expected = 'whole'
          if (outcome !== expected)
            t.fail(`head ${which}, log ${how} at ${at} of ${bytes.length}: ${outcome}`)
        }
    t.pass('as expected')
  },
)

t.test('if the disk has no room for a copy of a damaged log, the log is not changed', async (t) => {
  const { files, wal, head, firstHead, truth } = await makeVault()
  const torn = files.contents().get(wal)!.subarray(0, -5)
  files.plant(wal, torn)
  files.plant(head, firstHead)
  files.fault = { at: files.steps + 2, code: 'ENOSPC' }
  t.strictSame(await look(files), { code: 'storage_failed' })
  t.ok(files.contents().get(wal)!.equals(torn))
  files.fault = undefined
  t.equal(await lookAtTail(files, wal, truth), 'set aside')
})
