/**
 * The end of the log, damaged at every border of a frame and inside every frame, under a head that is right, missing,
 * empty, zeroed or older: what was acknowledged is there, or the vault refuses, or the log is set aside whole with a notice.
 * No byte of it is ever deleted.
 */
import t from 'tap'
import { draftOf } from './engine-suite.js'
import { createFileEngine, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

const FRAMES = 5
let seeds = 0

function optionsFor(files: FakeFiles, notices: string[] = []) {
  const random = repeatableRandom(`tails ${seeds++}`)
  const notice = (text: string) => void notices.push(text)
  const shape = { files, directory: '/vault', header: testHeader(), random, notice }
  return { ...shape, keys: engineKeys(random), clock: createClock(), role: 'command' as const }
}

const nameOf = (frame: number) => `row ${frame}`

/** A vault of frames with a row each, and what `head` was before each of them. */
async function makeVault() {
  const files = new FakeFiles()
  const engine = await createFileEngine(optionsFor(files))
  const path = [...files.contents().keys()].find((name) => name.includes('/journal-'))!
  const headPath = path.replace('journal', 'head')
  const heads: Buffer[] = []
  for (let frame = 1; frame <= FRAMES; frame++) {
    heads.push(files.contents().get(headPath)!)
    await engine.write((writer) => writer.put(draftOf({ name: nameOf(frame), text: nameOf(frame) })))
  }
  await engine.close()
  const wal = files.contents().get(path)!
  const borders = [64]
  while (borders.at(-1)! < wal.length) borders.push(borders.at(-1)! + 8 + wal.readUInt32LE(borders.at(-1)!))
  return { files, path, wal, borders, headPath, heads }
}

type Outcome = 'refused' | 'whole' | 'shorter' | 'set aside'

/** Opens the vault, and again, and says what came of it; no byte of the log may be gone. */
async function look(files: FakeFiles, path: string): Promise<Outcome> {
  const planted = files.contents().get(path)!
  const notices: string[] = []
  let rows = 0
  try {
    for (let time = 0; time < 2; time++) {
      const engine = await openFileEngine(optionsFor(files, notices))
      rows = 0
      for (let frame = 1; frame <= FRAMES; frame++) {
        const row = await engine.read((reader) => reader.get(3, 1, digest(`id/3/1/${nameOf(frame)}`, 16)))
        if (row !== undefined) rows++
      }
      await engine.close()
    }
  } catch (error) {
    if ((error as { code?: string }).code !== 'vault_damaged') throw error
    if (!files.contents().get(path)!.equals(planted)) throw new Error('a refused log was changed')
    return 'refused'
  }
  const aside = [...files.contents()].filter(([name]) => name.includes('/aside-'))
  const isTold = notices.some((text) => aside.some(([name]) => text.includes(name)))
  if (aside.length === 1 && aside[0]![1].equals(planted) && isTold)
    return rows === FRAMES ? 'whole' : 'set aside'
  if (aside.length > 0) throw new Error(`${aside.length} files set aside, or not whole`)
  if (!files.contents().get(path)!.equals(planted)) throw new Error('bytes of the log are gone')
  return rows === FRAMES ? 'whole' : 'shorter'
}

t.test('whatever is damaged at the end of the log, and whatever head says', async (t) => {
  const { files, path, wal, borders, headPath, heads } = await makeVault()
  const variants: [string, Buffer | undefined][] = [
    ['present', files.contents().get(headPath)],
    ['missing', undefined],
    ['empty', Buffer.alloc(0)],
    ['zeroed', Buffer.alloc(84)],
    ...heads.map((head, frame): [string, Buffer] => [`older by ${FRAMES - frame}`, head]),
  ]
  const places = borders.flatMap((border, index) => {
    const next = borders[index + 1]
    return next === undefined ? [border] : [border, border + 3, Math.floor((border + next) / 2), next - 1]
  })
  const damages: [string, (at: number) => Buffer][] = [
    ['cut', (at) => wal.subarray(0, at)],
    ['zeroed', (at) => Buffer.concat([wal.subarray(0, at), Buffer.alloc(wal.length - at)])],
    [
      'flipped',
      (at) => {
        const bytes = Buffer.from(wal)
        if (at < bytes.length) bytes[at]! ^= 1
        return bytes
      },
    ],
  ]
  for (const [which, head] of variants) {
    const counts: Record<Outcome, number> = { refused: 0, whole: 0, shorter: 0, 'set aside': 0 }
    for (const [how, damage] of damages) {
      for (const at of places) {
        const copy = files.afterCrash(false)
        copy.plant(path, damage(at))
        copy.plant(headPath, head)
        const outcome = await look(copy, path)
        counts[outcome]++
        const isSound = at === wal.length
        const isHeadGone = ['missing', 'empty', 'zeroed'].includes(which)
        const title = `head ${which}, log ${how} at ${at} of ${wal.length}`
        if (isHeadGone) {
          if (outcome !== 'refused') t.fail(`${title}: ${outcome}`)
          continue
        }
        if (isSound !== (outcome === 'whole')) t.fail(`${title}: ${outcome}`)
        if (which === 'present' && !isSound && outcome !== 'refused') t.fail(`${title}: ${outcome}`)
        // A log that ends between two frames, under a head that does not know the later one, is what it was once.
        const isOnceTrue = how === 'cut' && borders.includes(at)
        if (outcome === 'shorter' && !isOnceTrue) t.fail(`${title}: ${outcome}`)
        // What goes on behind the damage was not torn by a crash; a broken tag breaks the frame behind it too.
        if (how === 'flipped' && at < borders.at(-2)! - 16 && outcome !== 'refused')
          t.fail(`${title}: ${outcome}`)
      }
    }
    t.comment(`head ${which}: ${JSON.stringify(counts)}`)
    t.ok(counts.refused > 0, `head ${which}`)
  }
})

t.test('a disk that has no room for the log set aside loses nothing', async (t) => {
  const { files, path, wal, headPath, heads } = await makeVault()
  const torn = wal.subarray(0, wal.length - 5)
  files.plant(path, torn)
  files.plant(headPath, heads.at(-1))
  files.fault = { at: files.steps + 2, code: 'ENOSPC' }
  await t.rejects(openFileEngine(optionsFor(files)), { code: 'storage_failed' })
  t.ok(files.contents().get(path)!.equals(torn))
  files.fault = undefined
  t.equal(await look(files, path), 'set aside')
})
