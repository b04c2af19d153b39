/** The product, and all that engines promise, over PostgreSQL. */
import { runProductSuites } from '../product-suites.js'

const own = ['storage/postgres-engine.test.js', 'storage/postgres-vault.test.js']
process.exitCode = runProductSuites('postgres', own).length === 0 ? 0 : 1
