/**
 * Makes the functions that `http` and `https` have for their protocols. The module `http` has the classes of both
 * protocols.
 */
type Classes = Pick<typeof import('./http-client.js'), 'Agent' | 'ClientRequest' | 'Server'>

export function createFunctions(protocol: 'http:' | 'https:', { Agent, ClientRequest, Server }: Classes) {
  const request = (...given: unknown[]) => new ClientRequest(protocol, given)
  const get = (...given: unknown[]) => {
    const made = request(...given)
    made.end()
    return made
  }
  return { request, get, Agent, globalAgent: new Agent(), Server, createServer: () => new Server() }
}
