/** Every command, alone and with each of its flags, in a pipe and on terminals. */
import { transcribe } from '../cli/transcripts.js'

const { lines, faults } = await transcribe(() => true)
console.log(`${lines} command lines, ${faults.length} faults`)
for (const fault of faults) console.log(fault)
process.exitCode = faults.length === 0 && lines > 400 ? 0 : 1
