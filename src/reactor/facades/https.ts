import http from 'node:http'
import { createFunctions } from './http-functions.js'

class Agent extends http.Agent {}

// The types of Node do not fit this call. The module `http` is the facade beside this file, and its classes do not take
// the arguments that the classes of Node take.
export default createFunctions('https:', { ...http, Agent } as unknown as Parameters<
  typeof createFunctions
>[1])
