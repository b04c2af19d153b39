/** Creates the functions of `http` or `https`. The facade of `http` has the classes of both modules. */
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
