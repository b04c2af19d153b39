/**
 * A server as users start it, for the clients to call. The tenant of this server has the applications that the clients
 * need.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { createWorkplace, runCommand, startProcess } from '../http/process.js'

export interface Served {
  url: string
  /**
   * The address of a destination for proxies. The destination answers each request with the method and the body of the
   * request.
   */
  destination: string
  keys: Record<'private' | 'management' | 'public', string>
  /** Accepts the newest invitation as the invited person. */
  accept(): Promise<void>
  /** From now on, every 3-D Secure challenge is completed without an action of a person. */
  completeChallenges(): Promise<void>
}

export async function serveClients(t: Test): Promise<Served> {
  const place = createWorkplace()
  const echo = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ method: request.method, body }))
  })
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(echo.address() as AddressInfo).port}`
  const json = async (...words: string[]) => {
    const { code, stdout, stderr } = await runCommand(place, [...words, '--output', 'json'])
    if (code !== 0) throw new Error(`coffer ${words.join(' ')}: ${stderr}`)
    return JSON.parse(stdout)
  }
  await json('init', '--name', 'clients')
  const server = await startProcess(place, ['--prefix', 'bt', '--starter-apps', '--allow-net', host])
  t.teardown(async () => {
    server.child.kill('SIGTERM')
    await server.ended
    place.remove()
    echo.close()
  })
  const { url, applications } = server.announcement
  const keyOf = (type: 'private' | 'management' | 'public') => applications[type]?.key ?? ''
  return {
    url,
    destination: `http://${host}`,
    keys: { private: keyOf('private'), management: keyOf('management'), public: keyOf('public') },
    completeChallenges: async () => void (await json('config', 'set', 'threeds.challenges', 'complete')),
    accept: async () => {
      const { data } = await json('invite', 'outbox')
      await json('invite', 'accept', data[0].link)
    },
  }
}
