/** Servers that have just started, for benchmarks of the first seconds: `coffer serve` and the SQLCipher peer. */
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PEERS } from './bulk.js'
import { firstMessage } from './figures.js'
import type { Ready } from './http-server.js'
import { asMasking } from './requests.js'
import { makeToken } from './token-body.js'

const PROGRAM = fileURLToPath(new URL('../../bin/coffer.js', import.meta.url))
/** The number of tokens of each server at its start. */
export const TOKENS = 1000

type Transform = 'reveal' | 'mask'

export interface FreshServer {
  child: ChildProcess
  ready: Pick<Ready, 'port' | 'key' | 'ids'>
}

/** Runs commands that create a vault. Each server in a benchmark then gets a copy of this vault. */
export function createVault(place: string) {
  const env = { ...process.env, XDG_CONFIG_HOME: place }
  const wordsOf = (directory: string) => ['--vault', join(place, directory), '--key-file', join(place, 'key')]
  const run = (...words: string[]) =>
    execFileSync(process.execPath, [PROGRAM, ...words, ...wordsOf('vault'), '-q', '-o', 'json'], { env })
  const ids = Array.from({ length: TOKENS }, (_, at) => `bench-${at}`)
  const rows = join(place, 'rows.ndjson')
  writeFileSync(rows, ids.map((id, at) => JSON.stringify({ ...makeToken(at), id })).join('\n'))
  run('init')
  run('token', 'import', rows)
  const createKey = (transform: Transform): string => {
    const permissions = ['token:read', 'token:create']
    const rule = JSON.stringify({ priority: 1, container: '/', transform, permissions })
    return JSON.parse(String(run('app', 'create', '--name', transform, '--type', 'private', '--rule', rule)))
      .key
  }
  const keys = { reveal: createKey('reveal'), mask: createKey('mask') }
  const serve = async (transform: Transform): Promise<FreshServer> => {
    rmSync(join(place, 'copy'), { recursive: true, force: true })
    cpSync(join(place, 'vault'), join(place, 'copy'), { recursive: true })
    const words = ['serve', ...wordsOf('copy'), '--port', '0', '--log', 'none', '-o', 'json']
    const child = spawn(process.execPath, [PROGRAM, ...words], { env, stdio: ['ignore', 'pipe', 'ignore'] })
    const [line] = await once(child.stdout, 'data')
    const { port } = new URL(JSON.parse(String(line)).url)
    return { child, ready: { port: Number(port), key: keys[transform], ids } }
  }
  return { serve }
}

export async function startPeer(transform: Transform): Promise<FreshServer> {
  const child = fork(join(PEERS, 'server.js'), ['sqlcipher', String(TOKENS), JSON.stringify(makeToken(1))])
  const ready = await firstMessage<Ready>(child)
  return { child, ready: transform === 'mask' ? asMasking(ready) : ready }
}

/** Stops the server and waits for the end of its process. */
export async function stop({ child }: FreshServer): Promise<void> {
  const ended = once(child, 'exit')
  // When the peer is disconnected, it removes its files.
  if (child.connected) child.disconnect()
  else child.kill()
  await ended
}
