/**
 * A child process of the kill test. The process repeatedly opens the vault, works, and closes the vault. The process
 * prints each change before the change begins, and again when the change is acknowledged. The arguments of the process
 * are a directory, a name, and `write` or `read`.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { writeSync } from 'node:fs'
import { acquireLock, readProcessIdentity } from '../../src/storage/lock.js'
import { nodeFiles } from '../../src/storage/node-files.js'
import { readHeader } from '../../src/storage/vault-file.js'
import { remove, replace } from './disk.js'
import { allOf, draftOf, type FileEngine, KIND, logOf, openFileEngine } from './engines.js'
import { engineKeys } from './powers.js'

const [directory = '', self = '', task = ''] = process.argv.slice(2)
const random = { bytes: (count: number) => new Uint8Array(randomBytes(count)) }
const files = nodeFiles()
const keys = engineKeys(random)
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
const say = (line: string) => writeSync(1, `${line}\n`)

async function work(engine: FileEngine, name: string): Promise<void> {
  const act = async (what: string, run: () => Promise<unknown>) => {
    say(`try ${what} ${name}`)
    await run()
    say(`ack ${what} ${name}`)
  }
  await act('put', () =>
    engine.write(async (writer) => {
      await writer.put(draftOf({ name, text: `${name} first` }))
      await writer.append(logOf(name))
    }),
  )
  const chance = randomInt(8)
  if (chance < 2) await act('replace', () => replace(engine, name, `${name} second`))
  if (chance === 2) await act('remove', () => remove(engine, name))
  if (chance === 3) await engine.flush()
  if (chance === 4) await engine.compact()
}

for (let turn = 0; ; turn++) {
  const asked = Date.now()
  const notice = (text: string) => say(`notice ${text}`)
  const shape = { files, directory, random, clock: Date.now, notice }
  const lock = await acquireLock({
    ...shape,
    identity: readProcessIdentity(process.pid),
    wait,
    timeoutMs: 10_000,
  })
  say(`waited ${Date.now() - asked}`)
  const header = await readHeader(files, directory)
  const engine = await openFileEngine({ ...shape, header, keys, role: 'command' })
  if (task === 'write') await work(engine, `${self}-${turn}`)
  else {
    const query = { kind: KIND, tenant: 1, all: allOf(KIND), page: 1, size: 5 }
    const { total } = await engine.read((reader) => reader.find(query))
    say(`read ${total}`)
  }
  await engine.close()
  lock.release()
}
