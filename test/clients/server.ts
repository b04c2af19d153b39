/** A server as its users start it, with the tenant's applications, for clients to call. */
import type { Test } from 'tap'
import { createWorkplace, runCommand, startProcess } from '../http/process.js'

export interface Served {
  url: string
  keys: Record<'private' | 'management' | 'public', string>
  /** Accepts the newest invitation, as the invited person; gives the id of the member. */
  accept(): Promise<void>
}

export async function serveClients(t: Test): Promise<Served> {
  const place = createWorkplace()
  const json = async (...words: string[]) => {
    const { code, stdout, stderr } = await runCommand(place, [...words, '--output', 'json'])
    if (code !== 0) throw new Error(`coffer ${words.join(' ')}: ${stderr}`)
    return JSON.parse(stdout)
  }
  await json('init', '--name', 'clients')
  const server = await startProcess(place, ['--prefix', 'bt', '--starter-apps'])
  t.teardown(async () => {
    server.child.kill('SIGTERM')
    await server.ended
    place.remove()
  })
  const { url, applications } = server.announcement
  const keyOf = (type: 'private' | 'management' | 'public') => applications[type]?.key ?? ''
  return {
    url,
    keys: { private: keyOf('private'), management: keyOf('management'), public: keyOf('public') },
    accept: async () => {
      const { data } = await json('invite', 'outbox')
      await json('invite', 'accept', data[0].link)
    },
  }
}
