/** The product, and all that engines promise, over PostgreSQL. */
import { runProductSuites } from '../product-suites.js'

const own = ['engine', 'units', 'vault', 'logs'].map((name) => `storage/postgres-${name}.test.js`)
process.exitCode = runProductSuites('postgres', own).length === 0 ? 0 : 1
