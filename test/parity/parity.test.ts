/** Every fixture case has the same answers through `perform`, over HTTP and on the command line. */
import { compareInterfaces } from './compare.js'
import { openHttpInterface } from './http-interface.js'
import { openCommandInterface, openPerformInterface } from './interfaces.js'

compareInterfaces([openPerformInterface, openHttpInterface, openCommandInterface])
