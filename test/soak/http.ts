/** Long runs over HTTP, each of which prints what it saw. */
import { soakHttp } from '../http/soak.js'

const faults = await soakHttp()
for (const fault of faults) console.error(fault)
process.exitCode = faults.length === 0 ? 0 : 1
