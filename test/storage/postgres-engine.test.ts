import t from 'tap'
import { createRandom } from '../../src/crypto/random.js'
import { openPostgresEngine, type PostgresEngine } from '../../src/storage/postgres/engine.js'
import { ConnectionPool } from '../../src/storage/postgres/pool.js'
import { compareInterfaces } from '../parity/compare.js'
import { openHttpInterface } from '../parity/http-interface.js'
import { engineSuite } from './engine-suite.js'
import { attached } from './engines.js'
import { createTables, sharedDatabase } from './postgres-server.js'
import { createClock } from './powers.js'

/** `npm run test:soak postgres` sets this variable and runs all cases. */
const isLong = process.env.COFFER_TEST_LONG === '1'
const address = await sharedDatabase()

/**
 * The suite expects log entries as rows, but the engine over PostgreSQL turns entries into rows later. Therefore the
 * wrapped engine turns its log entries into rows after each write.
 */
function folding(engine: PostgresEngine): PostgresEngine {
  attached(engine)
  const write = engine.write.bind(engine)
  engine.write = async (...args) => {
    const result = await write(...args)
    await engine.logs.chainPending()
    return result
  }
  return engine
}

t.test('the engine over PostgreSQL gives the guarantees of every engine', async (t) =>
  engineSuite(
    t,
    async () => {
      const clock = createClock()
      const connection = await createTables(address)
      const options = { clock, random: createRandom(), cachedKinds: new Set([3]) }
      const open = async () =>
        folding(await openPostgresEngine({ ...options, pool: new ConnectionPool(connection) }))
      return { engine: await open(), clock, reopen: open }
    },
    { runs: isLong ? 120 : 12 },
  ),
)

process.env.COFFER_TEST_ENGINE = 'postgres'
compareInterfaces([openHttpInterface], { every: isLong ? 1 : 9 })
