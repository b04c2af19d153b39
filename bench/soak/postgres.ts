/**
 * Over PostgreSQL, runs the tests of the product, and the tests of the guarantees that all engines give. Afterwards
 * clients create, change, delete and read a few tokens through three servers, for a minute or for
 * COFFER_SOAK_SECONDS. There must be an order of these requests that explains all answers.
 */
import { randomInt } from 'node:crypto'
import { CofferError } from '../../src/errors.js'
import { createVault, openVault } from '../../src/vault/open.js'
import { isLinearizable, type Operation } from '../../test/storage/linearizability.js'
import { startPostgres } from '../../test/storage/postgres-server.js'
import { createKey, locate } from '../../test/support/vault.js'
import { runProductSuites } from '../product-suites.js'

const SECONDS = Number(process.env.COFFER_SOAK_SECONDS ?? 60)
const SERVERS = 3
const CLIENTS = 12
const TOKENS = 6
/**
 * After this number of requests for a token, the test uses a new token in its place. The check takes longer with each
 * request for the same token.
 */
const USES = 60

const own = ['engine', 'units', 'vault', 'logs'].map((name) => `storage/postgres-${name}.test.js`)
const failed = runProductSuites('postgres', own)
const { operations, unexplained } = await checkLinearizability()
console.log(
  `${operations} operations through ${SERVERS} servers: no order explains the answers about ${unexplained.length} tokens`,
)
for (const history of unexplained) console.log(JSON.stringify(history))
process.exitCode = failed.length + unexplained.length === 0 ? 0 : 1

async function checkLinearizability(): Promise<{ operations: number; unexplained: Operation[][] }> {
  const server = await startPostgres()
  const address = await server.createDatabase()
  const key = createKey()
  const apps = [await createVault(locate(address), 'first', key.create)]
  while (apps.length < SERVERS) apps.push(await openVault(locate(address), key.choose))
  const histories = new Map<string, Operation[]>()
  let count = 0
  const act = async (value: string) => {
    const id = `tok-${count++ % TOKENS}-${Math.floor(count / (TOKENS * USES))}`
    const history = histories.get(id) ?? []
    histories.set(id, history)
    const kind = (['create', 'update', 'delete', 'read', 'read'] as const)[randomInt(5)]!
    const metadata = { value }
    const input = {
      create: { id, type: 'token', data: 'x', metadata },
      update: { id, metadata },
      delete: { id },
      read: { id },
    }[kind]
    const operation: Operation = {
      ...{ kind, value, outcome: 'unknown', began: performance.now(), ended: Number.POSITIVE_INFINITY },
    }
    history.push(operation)
    try {
      const name = kind === 'read' ? 'token get' : `token ${kind}`
      const answer = await apps[randomInt(SERVERS)]!.ask({ operation: name, input, as: { reveal: true } })
      operation.outcome = 'done'
      if (kind === 'read') operation.value = (answer.result as { metadata: { value: string } }).metadata.value
    } catch (error) {
      const { code } = error as CofferError
      if (!(error instanceof CofferError) || !/^(conflict|not_found|unavailable)$/.test(code)) throw error
      if (code !== 'unavailable') operation.outcome = kind === 'read' ? 'done' : 'refused'
      if (kind === 'read') operation.value = undefined
    }
    operation.ended = performance.now()
  }
  const until = performance.now() + SECONDS * 1000
  const work = async (client: number) => {
    for (let turn = 0; performance.now() < until; turn++) await act(`${client}-${turn}`)
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, client) => work(client)))
  await Promise.all(apps.map((app) => app.close()))
  await server.stop()
  const unexplained = [...histories.values()].filter((history) => !isLinearizable(history))
  return { operations: count, unexplained }
}
