/**
 * Runs the kill test of the engine for a long time. The program prints the result of the test, and fails if an
 * acknowledged change was lost.
 */
import { killRepeatedly } from '../../test/storage/kill.js'

const KILLS = 2000
const LIMIT_MS = 60 * 60 * 1000

const result = await killRepeatedly(KILLS, LIMIT_MS)
console.log(JSON.stringify(result, undefined, 2))
process.exitCode = result.faults.length === 0 && result.kills === KILLS ? 0 : 1
