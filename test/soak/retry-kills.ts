/** Servers killed under clients that retry by idempotency key, at length. Fails when a key made no token, or two. */
import { killUnderRetries } from '../cli/retry-kills.js'

const LIMIT_MS = 10 * 60 * 1000

const result = await killUnderRetries(LIMIT_MS)
console.log(JSON.stringify(result, undefined, 2))
process.exitCode = result.faults.length === 0 ? 0 : 1
