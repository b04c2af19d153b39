/**
 * Runs the kill test of the program for a long time. The program prints the result of the test, and fails if an
 * acknowledged change was lost.
 */
import { killCommands } from '../../test/cli/kill.js'

const LIMIT_MS = 20 * 60 * 1000

const result = await killCommands(LIMIT_MS)
console.log(JSON.stringify(result, undefined, 2))
process.exitCode = result.faults.length === 0 ? 0 : 1
