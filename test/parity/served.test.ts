/** The same of the typed client, and of commands that a server answers: one that has the vault open, and one with `--url`. */
import { compareDoors } from './compare.js'
import { openServedDoor } from './doors.js'
import { openUrlDoor } from './http-door.js'
import { openClientDoor } from './library-doors.js'

compareDoors([openClientDoor, openServedDoor, openUrlDoor])
