/**
 * Idempotency keys on a disk that stops at every step, with torn writes or power cuts. After a restart of the server,
 * the client sends the same request again. The repeated request must create the token or return the first token. The
 * repeated request never creates a second token.
 */
import t from 'tap'
import { createKeyring } from '../../src/crypto/keyring.js'
import { loadSodium } from '../../src/crypto/sodium.js'
import { perform } from '../../src/framework/perform.js'
import { registry } from '../../src/operations/all.js'
import {
  createFileEngine,
  type FileEngineOptions,
  openFileEngine,
} from '../../src/storage/engines/file-engine.js'
import { type App, createApp, createFirstTenant } from '../../src/vault/app.js'
import { FakeFiles, type Fault } from './fake-files.js'
import { engineKeys, repeatableRandom, testHeader } from './powers.js'

const primitives = await loadSodium()
const rootKey = new Uint8Array(32).fill(7)
const create = registry.find('token create')!
const list = registry.find('token list')!

async function openApp(files: FakeFiles, make: typeof openFileEngine, seed: string): Promise<App> {
  const random = repeatableRandom(seed)
  const header = testHeader()
  const keys = engineKeys(repeatableRandom(`${seed} engine`))
  const shape = { files, directory: '/vault', header, keys, random, clock: () => 1_900_000_000_000 }
  // A server flushes when it closes. The flush adds steps at which the test can stop the disk.
  const options: FileEngineOptions = { ...shape, notice: () => {}, role: 'server' }
  const keyring = createKeyring(primitives, random, Uint8Array.from(rootKey))
  return createApp({ engine: await make(options), keyring, random, header, primitives })
}

async function createToken(app: App, key: string) {
  const caller = await app.owner({ reveal: true })
  const input = { type: 'token', data: key }
  const outcome = await perform(app, caller, create, input, 'trace', { idempotencyKey: key })
  return { ...outcome, id: (outcome.result as { id: string }).id }
}

async function countTokens(app: App): Promise<number> {
  const { result } = await perform(app, await app.owner({ reveal: true }), list, {}, 'trace')
  return (result as { pagination: { total_items: number } }).pagination.total_items
}

t.test('a request that is repeated after a crash at any step creates one token', async (t) => {
  const disk = new FakeFiles()
  const first = await openApp(disk, createFileEngine, 'first')
  await createFirstTenant(first, 'default')
  await createToken(first, 'before')
  await first.close()
  const whole = disk.afterCrash(false)
  const probe = await openApp(whole, openFileEngine, 'probe')
  const from = whole.steps
  await createToken(probe, 'key')
  await probe.close()
  const to = whole.steps
  t.ok(to - from > 3, `${to - from} steps, including those of closing`)
  let round = 0
  let acknowledged = 0
  let redone = 0
  for (let at = from + 1; at <= to; at++)
    for (const isTorn of [false, true])
      for (const isPowerCut of [false, true]) {
        const title = `step ${at}${isTorn ? ', torn' : ''}${isPowerCut ? ', power cut' : ''}`
        const files = disk.afterCrash(false)
        const app = await openApp(files, openFileEngine, `run ${round++}`)
        files.fault = { at, code: 'stop', isTorn } satisfies Fault
        const made = await createToken(app, 'key').catch(() => undefined)
        await app.close().catch(() => {})
        const left = files.afterCrash(isPowerCut)
        const next = await openApp(left, openFileEngine, `retry ${round}`)
        const again = await createToken(next, 'key')
        if (made !== undefined) {
          acknowledged++
          t.equal(again.id, made.id, `${title}: an acknowledged token is returned again`)
        }
        if (again.isReplayed !== true) redone++
        t.match(await createToken(next, 'key'), { isReplayed: true, id: again.id }, title)
        t.match(
          await createToken(next, 'before'),
          { isReplayed: true },
          `${title}: an earlier answer is still replayed`,
        )
        t.equal(await countTokens(next), 2, `${title}: there is one token`)
        await next.close()
      }
  t.ok(
    acknowledged > 0 && redone > 0,
    `${acknowledged} tokens were acknowledged, ${redone} tokens were created by the retry`,
  )
})
