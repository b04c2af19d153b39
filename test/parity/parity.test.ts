/** Every recorded case gives the same answers through `perform`, the library, HTTP, and on the command line. */
import { compareDoors } from './compare.js'
import { openCommandDoor, openPerformDoor } from './doors.js'
import { openHttpDoor } from './http-door.js'
import { openFetchDoor } from './library-doors.js'

compareDoors([openPerformDoor, openFetchDoor, openHttpDoor, openCommandDoor])
