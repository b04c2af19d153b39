/**
 * The kill test: writers and a reader share a vault and are killed at random; afterwards every change that one of them
 * was told is done must be there, exactly once. Knows how to run it; how often is the caller's.
 */
import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { acquireLock, readProcessIdentity } from '../../src/storage/lock.js'
import { nodeFiles } from '../../src/storage/node-files.js'
import { startProgram } from '../start-program.js'
import { allOf, createFileEngine, idOf, KIND, LOG_KIND, openFileEngine, textOf } from './engines.js'
import { engineKeys, repeatableRandom, testHeader } from './powers.js'

export interface KillResult {
  kills: number
  /** Changes that were confirmed. */
  acknowledged: number
  reads: number
  notices: number
  longestWaitMs: number
  /** Whatever must not be. */
  faults: string[]
}

/** What may be in the vault for a name: confirmed, or under way when its writer was killed. */
type Fate = { sure: string; maybe: string | undefined }

const CHILD = fileURLToPath(new URL('kill-child.js', import.meta.url))
const WRITERS = 4

class Herd {
  readonly result: KillResult = {
    kills: 0,
    acknowledged: 0,
    reads: 0,
    notices: 0,
    longestWaitMs: 0,
    faults: [],
  }
  readonly fates = new Map<string, Fate>()
  readonly #directory: string
  readonly #children: (ChildProcess | undefined)[] = []
  readonly #ended: Promise<void>[] = []
  #isOver = false
  #runs = 0
  #heard = 0

  constructor(directory: string) {
    this.#directory = directory
    for (let place = 0; place <= WRITERS; place++) this.#start(place)
  }

  #start(place: number): void {
    const name = `${place}-${this.#runs++}`
    const task = place === WRITERS ? 'read' : 'write'
    const child = startProgram(process.execPath, [CHILD, this.#directory, name, task], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#children[place] = child
    createInterface({ input: child.stdout }).on('line', (line) => this.#hear(line))
    let complaint = ''
    child.stderr.on('data', (data) => {
      complaint += data
    })
    const end = new Promise<void>((resolve) => {
      child.on('close', (_code, signal) => {
        if (signal !== 'SIGKILL')
          this.result.faults.push(`${name} ended by itself: ${complaint.slice(0, 600)}`)
        if (!this.#isOver) this.#start(place)
        resolve()
      })
    })
    this.#ended.push(end)
  }

  #hear(line: string): void {
    this.#heard++
    const [word, what = '', name = ''] = line.split(' ')
    const { result } = this
    if (word === 'waited') result.longestWaitMs = Math.max(result.longestWaitMs, Number(what))
    else if (word === 'read') result.reads++
    else if (word === 'notice') result.notices++
    else if (word === 'try') this.fates.set(name, { sure: this.fates.get(name)?.sure ?? 'none', maybe: what })
    else if (word === 'ack') {
      result.acknowledged++
      this.fates.set(name, { sure: what, maybe: undefined })
    }
  }

  /** Resolves when the children said so many lines more, or two seconds went by. */
  async hear(lines: number): Promise<void> {
    const wanted = this.#heard + lines
    const deadline = Date.now() + 2_000
    while (this.#heard < wanted && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 2))
  }

  kill(): void {
    this.#children[randomInt(WRITERS + 1)]?.kill('SIGKILL')
    this.result.kills++
  }

  async stop(): Promise<void> {
    this.#isOver = true
    for (const child of this.#children) child?.kill('SIGKILL')
    await Promise.all(this.#ended)
  }
}

/** Kills `kills` times, or as often as `limitMs` allows, and looks at what is left. */
export async function killRepeatedly(kills: number, limitMs: number): Promise<KillResult> {
  const deadline = Date.now() + limitMs
  const base = mkdtempSync(join(tmpdir(), 'coffer-kill-'))
  const directory = join(base, 'vault')
  const files = nodeFiles()
  const random = repeatableRandom()
  const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
  const notice = () => undefined
  const options = {
    files,
    directory,
    header: testHeader(),
    random,
    clock: Date.now,
    notice,
    role: 'command' as const,
  }
  try {
    await (await createFileEngine({ ...options, keys: engineKeys(random) })).close()
    const herd = new Herd(directory)
    while (herd.result.kills < kills && herd.result.faults.length === 0 && Date.now() < deadline) {
      // After some more steps of theirs, and a moment that may fall into the middle of the next.
      await herd.hear(randomInt(1, 30))
      await wait(randomInt(0, 8))
      herd.kill()
    }
    await herd.stop()
    const facts = readProcessIdentity(process.pid)
    const lock = await acquireLock({ ...options, identity: facts, wait, timeoutMs: 10_000 })
    const left = files.list(directory).filter((name) => name.startsWith('lock'))
    if (left.length !== 1) herd.result.faults.push(`left over: ${left.join(', ')}`)
    const engine = await openFileEngine({ ...options, keys: engineKeys(random) })
    const { findings } = await engine.verify(() => ({}))
    for (const { place, problem } of findings) herd.result.faults.push(`${place}: ${problem}`)
    await compare(engine, herd)
    await engine.close()
    lock.release()
    return herd.result
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

const TEXTS: Record<string, (name: string) => string | undefined> = {
  none: () => undefined,
  put: (name) => `${name} first`,
  replace: (name) => `${name} second`,
  remove: () => undefined,
}

async function compare(
  engine: Awaited<ReturnType<typeof openFileEngine>>,
  { fates, result }: Herd,
): Promise<void> {
  const all = allOf(KIND)
  await engine.read(async (reader) => {
    let present = 0
    for (const [name, { sure, maybe }] of fates) {
      const row = await reader.get(3, 1, idOf(name))
      const text = row && textOf(row)
      if (text !== undefined) present++
      const allowed = [TEXTS[sure]?.(name), ...(maybe === undefined ? [] : [TEXTS[maybe]?.(name)])]
      if (!allowed.includes(text))
        result.faults.push(`${name}: found ${text}, confirmed ${sure}, under way ${maybe}`)
    }
    const query = { kind: 3, tenant: 1, all, page: 1, size: 1 } as const
    const { total } = await reader.find({ ...query })
    if (total !== present) result.faults.push(`${total} rows are counted and ${present} are known`)
    const logs = await reader.find({ ...query, kind: LOG_KIND, all: allOf(LOG_KIND) })
    const made = [...fates.values()].filter(({ sure }) => sure !== 'none').length
    const begun = [...fates.values()].filter(({ sure, maybe }) => sure === 'none' && maybe === 'put').length
    if (logs.total < made || logs.total > made + begun)
      result.faults.push(`${logs.total} log rows for ${made} rows made`)
  })
}
