/** Every recorded case gives the same answers through `perform`, HTTP, and on the command line. */
import { compareDoors } from './compare.js'
import { openCommandDoor, openPerformDoor } from './doors.js'
import { openHttpDoor } from './http-door.js'

compareDoors([openPerformDoor, openHttpDoor, openCommandDoor])
