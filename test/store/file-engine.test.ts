/** The embedded engine: every engine's promises, and what only a vault on disk can promise. */
import t from 'tap'
import { createFileEngine, type FileEngine, openFileEngine } from '../../src/store/file-engine.js'
import { engineSuite, type OpenedEngine } from './engine-suite.js'
import { FakeFiles } from './fake-files.js'
import { createClock, engineKeys, repeatableRandom, testHeader } from './powers.js'

function optionsFor(files: FakeFiles, role: 'command' | 'server' = 'command') {
  const random = repeatableRandom()
  const clock = createClock()
  const notices: string[] = []
  const notice = (text: string) => void notices.push(text)
  const keys = engineKeys(random)
  return { files, directory: '/vault', header: testHeader(), keys, clock, random, notice, notices, role }
}

async function openNew(role: 'command' | 'server'): Promise<OpenedEngine> {
  const options = optionsFor(new FakeFiles(), role)
  let current: FileEngine = await createFileEngine(options)
  let folds = 0
  return {
    engine: current,
    clock: options.clock,
    // Every third time what was folded is merged as well.
    fold: () => (++folds % 3 === 0 ? current.compact() : current.fold()),
    reopen: async () => {
      await current.close()
      current = await openFileEngine(options)
      return current
    },
  }
}

t.test('as a command', async (t) => engineSuite(t, () => openNew('command')))
t.test('as a server', async (t) => engineSuite(t, () => openNew('server')))
