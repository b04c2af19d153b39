/** Engines on an in-memory disk: their options, changes of rows by name, and damage to files. */
import { allOf, draftOf, type FileEngine, idOf, KIND } from './engines.js'
import type { FakeFiles } from './fake-files.js'
import { createClock, engineKeys, repeatableRandom, testHeader } from './powers.js'

let opened = 0

/** Returns options whose random bytes differ at each opening. The argument `vault` selects the keys. */
export function diskOptions(files: FakeFiles, role: 'command' | 'server' = 'command', vault = 'vault') {
  const random = repeatableRandom(`opened ${opened++}`)
  const notices: string[] = []
  const notice = (text: string) => void notices.push(text)
  const shape = { files, directory: '/vault', header: testHeader(), random, clock: createClock(), role }
  return { ...shape, keys: engineKeys(random, vault), notices, notice }
}

export const put = (engine: FileEngine, name: string, text = name, keys = ['red']) =>
  engine.write((writer) => writer.put(draftOf({ name, text, keys })))

export const replace = (engine: FileEngine, name: string, text: string, keys = ['blue']) =>
  engine.write(async (writer) => {
    const row = await writer.get(KIND, 1, idOf(name))
    await writer.put({ ...draftOf({ name, text, keys }), seq: row!.seq, created: row!.created })
  })

export const remove = (engine: FileEngine, name: string) =>
  engine.write((writer) => writer.remove(KIND, 1, idOf(name)))

export const get = (engine: FileEngine, name: string) =>
  engine.read((reader) => reader.get(KIND, 1, idOf(name)))

/** Returns all rows of tenant 1 of a kind, newest first. */
export const rowsOf = (engine: FileEngine, kind = KIND) =>
  engine.read(async (reader) => {
    return (await reader.find({ kind, tenant: 1, all: allOf(kind), page: 1, size: 1000 })).rows
  })

export const pathsOf = (files: FakeFiles, part: string) =>
  [...files.contents().keys()].filter((path) => path.includes(part))

export const walsOf = (files: FakeFiles) => pathsOf(files, '/journal-')

/** Returns the paths of the files that contain the bytes of `text`. */
export const holds = (files: FakeFiles, text: string) =>
  [...files.contents()].filter(([, bytes]) => bytes.includes(text)).map(([path]) => path)

/** Copies the disk and changes one file of the copy. If `change` returns nothing, the function removes the file. */
export function damaged(
  files: FakeFiles,
  path: string,
  change: (bytes: Buffer) => Buffer | undefined,
): FakeFiles {
  const copy = files.afterCrash(false)
  copy.plant(path, change(Buffer.from(files.contents().get(path)!)))
  return copy
}

export const flipped =
  (at: number, bits = 1) =>
  (bytes: Buffer): Buffer => {
    if (at < bytes.length) bytes[at]! ^= bits
    return bytes
  }

/** Splits a write-ahead log into its frames. */
export function framesOf(bytes: Buffer): Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const next = at + 8 + bytes.readUInt32LE(at)
    frames.push(bytes.subarray(at, next))
    at = next
  }
  return frames
}

/** Resolves when `isDone` returns true, or after 10 s. */
export async function until(isDone: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!(await isDone()) && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 1))
}
