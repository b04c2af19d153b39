/**
 * In the kill test, writers and a reader share a vault and are killed at random moments. After all kills, the vault
 * must have every acknowledged change exactly once. The caller decides how often processes are killed.
 */

import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { acquireLock, readProcessIdentity } from '../../src/storage/lock.js'
import { nodeFiles } from '../../src/storage/node-files.js'
import { waitFor } from '../support/process.js'
import {
  allOf,
  createFileEngine,
  type FileEngine,
  idOf,
  KIND,
  LOG_KIND,
  openFileEngine,
  textOf,
} from './engines.js'
import { engineKeys, repeatableRandom, testHeader } from './powers.js'

export interface KillResult {
  kills: number
  /** Number of acknowledged changes. */
  acknowledged: number
  reads: number
  notices: number
  longestWaitMs: number
  /** Violations of the guarantee that the vault has every acknowledged change exactly once. */
  faults: string[]
}

/**
 * `sure` is the text that a row must have. `maybe` is the text that the row may have instead, because its writer was
 * killed during the change.
 */
type Fate = { sure: string; maybe: string | undefined }

const CHILD = fileURLToPath(new URL('kill-child.js', import.meta.url))
const WRITERS = 4
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/**
 * Starts writers and a reader that share the vault in `directory`. Until the end, a new child replaces each killed
 * child.
 */
function startHerd(directory: string) {
  const result: KillResult = { kills: 0, acknowledged: 0, reads: 0, notices: 0, longestWaitMs: 0, faults: [] }
  const fates = new Map<string, Fate>()
  const children: ChildProcess[] = []
  const ended: Promise<unknown>[] = []
  let [isOver, runs, heard] = [false, 0, 0]
  const hearLine = (line: string) => {
    heard++
    const [word, what = '', name = ''] = line.split(' ')
    if (word === 'waited') result.longestWaitMs = Math.max(result.longestWaitMs, Number(what))
    else if (word === 'read') result.reads++
    else if (word === 'notice') result.notices++
    else if (word === 'try') fates.set(name, { sure: fates.get(name)?.sure ?? 'none', maybe: what })
    else if (word === 'ack') {
      result.acknowledged++
      fates.set(name, { sure: what, maybe: undefined })
    }
  }
  const start = (place: number): void => {
    const name = `${place}-${runs++}`
    const words = [CHILD, directory, name, place === WRITERS ? 'read' : 'write']
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] })
    children[place] = child
    createInterface({ input: child.stdout! }).on('line', hearLine)
    const end = waitFor(child).then(({ signal, stderr }) => {
      if (signal !== 'SIGKILL') result.faults.push(`${name} ended by itself: ${stderr.slice(0, 600)}`)
      if (!isOver) start(place)
    })
    ended.push(end)
  }
  for (let place = 0; place <= WRITERS; place++) start(place)
  return {
    result,
    fates,
    /** Resolves when the children have printed `lines` more lines, or after 2 s. */
    async hear(lines: number) {
      const wanted = heard + lines
      for (const deadline = Date.now() + 2_000; heard < wanted && Date.now() < deadline; ) await wait(2)
    },
    kill() {
      children[randomInt(WRITERS + 1)]!.kill('SIGKILL')
      result.kills++
    },
    async stop() {
      isOver = true
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(ended)
    },
  }
}

/**
 * Kills children `kills` times, or until `limitMs` milliseconds have passed. After the last kill, the function checks
 * the vault.
 */
export async function killRepeatedly(kills: number, limitMs: number): Promise<KillResult> {
  const deadline = Date.now() + limitMs
  const base = mkdtempSync(join(tmpdir(), 'coffer-kill-'))
  const directory = join(base, 'vault')
  const files = nodeFiles()
  const random = repeatableRandom()
  const shape = { files, directory, header: testHeader(), random, clock: Date.now, role: 'command' as const }
  const options = { ...shape, notice: () => undefined, keys: engineKeys(random) }
  try {
    await (await createFileEngine(options)).close()
    const herd = startHerd(directory)
    const { result } = herd
    while (result.kills < kills && result.faults.length === 0 && Date.now() < deadline) {
      // Waits until the children have taken some more steps, and then for a short random time, so that a kill can hit
      // the middle of a step.
      await herd.hear(randomInt(1, 30))
      await wait(randomInt(0, 8))
      herd.kill()
    }
    await herd.stop()
    const identity = readProcessIdentity(process.pid)
    const lock = await acquireLock({ ...options, identity, wait, timeoutMs: 10_000 })
    const left = files.list(directory).filter((name) => name.startsWith('lock'))
    if (left.length !== 1) result.faults.push(`left over: ${left.join(', ')}`)
    const engine = await openFileEngine(options)
    const { findings } = await engine.verify(() => ({}))
    for (const { place, problem } of findings) result.faults.push(`${place}: ${problem}`)
    await compare(engine, herd)
    await engine.close()
    lock.release()
    return result
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

async function compare(engine: FileEngine, { fates, result }: ReturnType<typeof startHerd>): Promise<void> {
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
    const query = { kind: 3, tenant: 1, all: allOf(KIND), page: 1, size: 1 } as const
    const { total } = await reader.find({ ...query })
    if (total !== present) result.faults.push(`${total} rows are counted and ${present} are known`)
    const logs = await reader.find({ ...query, kind: LOG_KIND, all: allOf(LOG_KIND) })
    const made = [...fates.values()].filter(({ sure }) => sure !== 'none').length
    const begun = [...fates.values()].filter(({ sure, maybe }) => sure === 'none' && maybe === 'put').length
    if (logs.total < made || logs.total > made + begun)
      result.faults.push(`${logs.total} log rows for ${made} rows made`)
  })
}
