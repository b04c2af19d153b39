/** Upgrades that are killed, at length. Says what came of it, and fails when a vault was not whole. */
import { killUpgrades } from '../storage/upgrade-kill.js'

const KILLS = 200

const result = await killUpgrades(KILLS)
console.log(JSON.stringify(result, undefined, 2))
process.exitCode = result.faults.length === 0 && result.kills === KILLS ? 0 : 1
