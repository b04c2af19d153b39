import http from 'node:http'
import { createFunctions } from './http-functions.js'

class Agent extends http.Agent {}

// The type of `http` is the type of Node's module, but the object is the facade, whose classes take other arguments.
export default createFunctions('https:', { ...http, Agent } as unknown as Parameters<
  typeof createFunctions
>[1])
