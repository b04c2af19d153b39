/**
 * The same of the typed client, and of commands that a server answers: one that has the vault open, and one with `--url`.
 * Here for every second case; `soak/served.ts` has them all.
 */
import { compareDoors } from './compare.js'
import { openServedDoor } from './doors.js'
import { openUrlDoor } from './http-door.js'
import { openClientDoor } from './library-doors.js'

const each = process.env.COFFER_TEST_LONG === '1' ? 1 : 2
compareDoors([openClientDoor, openServedDoor, openUrlDoor], { each })
