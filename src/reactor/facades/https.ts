import http from 'node:http'
import { createFunctions } from './http-functions.js'

class Agent extends http.Agent {}

// The types of Node do not fit here. The module `http` is the facade beside this file, and its classes take other
// arguments than the classes of Node.
export default createFunctions('https:', { ...http, Agent } as unknown as Parameters<
  typeof createFunctions
>[1])
