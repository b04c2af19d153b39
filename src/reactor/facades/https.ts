import http from 'node:http'
import { createFunctions } from './http-functions.js'

class Agent extends http.Agent {}

// The module is the facade beside this file, whose classes take other arguments than those of Node.
export default createFunctions('https:', { ...http, Agent } as unknown as Parameters<
  typeof createFunctions
>[1])
