/**
 * Servers over one PostgreSQL. The database and its standby are killed repeatedly while clients work, for 30 minutes
 * or COFFER_SOAK_SECONDS. Fails if anything acknowledged is lost or doubled.
 */
import { disturb } from '../../test/storage/postgres-faults.js'

const SECONDS = Number(process.env.COFFER_SOAK_SECONDS ?? 30 * 60)

const report = await disturb(SECONDS * 1000)
console.log(JSON.stringify(report, undefined, 2))
process.exitCode = report.faults.length === 0 ? 0 : 1
