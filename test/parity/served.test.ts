/** The same of commands that a server answers: one that has the vault open, and one with `--url`. */
import { compareDoors } from './compare.js'
import { openPerformDoor, openServedDoor } from './doors.js'
import { openUrlDoor } from './http-door.js'

compareDoors([openPerformDoor, openServedDoor, openUrlDoor])
