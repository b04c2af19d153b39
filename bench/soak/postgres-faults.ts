/**
 * Tests servers over one PostgreSQL. While clients work, the database and its standby are killed repeatedly, for 30
 * minutes or for COFFER_SOAK_SECONDS. The test fails if an acknowledged write is lost or duplicated.
 */
import { disturb } from '../../test/storage/postgres-faults.js'

const SECONDS = Number(process.env.COFFER_SOAK_SECONDS ?? 30 * 60)

const report = await disturb(SECONDS * 1000)
console.log(JSON.stringify(report, undefined, 2))
process.exitCode = report.faults.length === 0 ? 0 : 1
