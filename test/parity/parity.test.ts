/** Every fixture case has the same answers through `perform`, HTTP and the command line. */
import { compareInterfaces } from './compare.js'
import { openHttpInterface } from './http-interface.js'
import { openCommandInterface, openPerformInterface } from './interfaces.js'

compareInterfaces([openPerformInterface, openHttpInterface, openCommandInterface])
