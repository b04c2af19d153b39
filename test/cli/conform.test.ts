/**
 * `coffer conform` against Coffer, against a server with faults, against a hostile server, and after an
 * interrupt.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { main } from '../../src/cli/main.js'
import type { Fetch } from '../../src/client/http-client.js'
import { createSocketFetch } from '../../src/client/socket-fetch.js'
import { permissionsOf } from '../../src/domain/access/permissions.js'
import { type Seed, startServer } from '../../src/index.js'
import { type Run, runProcess } from './fake-process.js'

const MANAGEMENT = 'key_2222222222222222222222'
const EXISTING = { id: 'mine', type: 'card', data: { number: '4242424242424242' } }

async function serve(t: Test) {
  const permissions = permissionsOf('management', { withEffect: true })
  const server = await startServer({
    seed: {
      applications: [{ name: 'manager', type: 'management', permissions, key: MANAGEMENT }],
      tokens: [EXISTING],
    } as unknown as Seed,
  })
  t.teardown(() => server.stop())
  return server
}

function conform(url: string, words: readonly string[] = [], more: Partial<Run> = {}) {
  const env = { COFFER_API_KEY: MANAGEMENT, HOME: '/nonexistent' }
  return runProcess(main, { words: ['conform', '--url', url, '-o', 'json', ...words], env, ...more })
}

/** Returns the contents of the lists of the server. */
async function contentsOf(server: Awaited<ReturnType<typeof serve>>) {
  const lists = [
    'token list',
    'app list',
    'formula list',
    'reactor list',
    'proxy list',
    'webhook list',
  ] as const
  return Promise.all(lists.map(async (name) => (await server.ask(name)).data))
}

const sockets = createSocketFetch()
t.teardown(() => sockets.close())

t.test('a comparison of Coffer with itself finds no differences and leaves no records behind', async (t) => {
  const server = await serve(t)
  const before = await contentsOf(server)
  const { code, stdout, stderr } = await conform(server.url)
  const report = JSON.parse(stdout)
  t.same(report.differences, [])
  t.same(report.remaining, [])
  t.equal(code, 0, stderr)
  t.match(report.date, /^\d{4}-\d\d-\d\d$/)
  t.ok(report.areas.length > 8, 'many areas were compared')
  t.ok(report.left_out.length > 50, 'the cases that were left out have reasons')
  t.same(await contentsOf(server), before)
})

t.test(
  'a comparison finds deliberate faults and prints them as a table, as Markdown and as JSON',
  async (t) => {
    const server = await serve(t)
    const before = await contentsOf(server)
    const fetch: Fetch = async (url, init) => {
      const answer = await sockets.fetch(url, init)
      if (init.method !== 'PATCH' || !url.includes('/tokens/')) return answer
      answer.body.resume()
      return {
        ...answer,
        status: 418,
        body: [Buffer.from(JSON.stringify({ title: '\u001b[31m| <b>tea</b>' }))] as never,
      }
    }
    const only = ['--only', 'token-updates']
    const { code, stdout, stderr } = await conform(server.url, only, { fetch })
    t.equal(code, 12)
    t.match(stderr, 'server-differs')
    const { differences } = JSON.parse(stdout)
    t.ok(differences.length > 0)
    t.match(differences[0], { area: 'Tokens', operation: 'token update', difference: /status is 418, not/ })
    t.notMatch(stdout, '\u001b')
    const markdown = await conform(server.url, [...only, '--markdown'], { fetch })
    t.match(markdown.stdout, /^# http.*\n\n\| Area \| Calls \| Equal \| Different \|\n/)
    t.match(markdown.stdout, '\\<b\\>tea')
    t.notMatch(markdown.stdout, /\u001b|<b>/)
    const table = await conform(server.url, [...only, '-o', 'table'], { fetch })
    t.match(table.stdout, /area +calls +equal +different/)
    t.notMatch(table.stdout, '\u001b[31m')
    t.notMatch(stdout + markdown.stdout + table.stdout, /key_[1-9A-HJ-NP-Za-km-z]{22}/)
    t.same(await contentsOf(server), before, 'nothing is left behind')
  },
)

t.test('after an interrupt, conform deletes its records before the command ends', async (t) => {
  const server = await serve(t)
  const before = await contentsOf(server)
  const interrupt = new AbortController()
  let created = 0
  const fetch: Fetch = async (url, init) => {
    const answer = await sockets.fetch(url, init)
    if (init.method === 'POST' && url.endsWith('/tokens') && ++created === 2) interrupt.abort()
    return answer
  }
  const { code, stderr } = await conform(server.url, ['--only', 'token-updates'], {
    fetch,
    interrupt: interrupt.signal,
  })
  t.equal(code, 130, stderr)
  t.match(stderr, 'deleting the records of this run')
  t.same(await contentsOf(server), before)
})

for (const signal of ['SIGINT', 'SIGHUP'] as const)
  t.test(`a creation that is in progress at ${signal} is completed and cleaned up`, async (t) => {
    const server = await serve(t)
    const before = await contentsOf(server)
    const interrupt = new AbortController()
    let isCreated = false
    const fetch: Fetch = async (url, init) => {
      if (isCreated || init.method !== 'POST' || !url.endsWith('/tokens')) return sockets.fetch(url, init)
      // The request reaches the server, and its answer arrives only after the signal.
      const answer = sockets.fetch(url, init)
      interrupt.abort()
      isCreated = (await answer).status === 201
      return answer
    }
    const { code, stderr } = await conform(server.url, ['--only', 'token-updates'], {
      fetch,
      interrupt: interrupt.signal,
      signal,
    })
    t.ok(isCreated, 'the server has created the token')
    t.equal(code, 130, stderr)
    t.same(await contentsOf(server), before)
  })

t.test('after an interrupt, the run deletes its records even if the server limits the rate', async (t) => {
  const server = await serve(t)
  const before = await contentsOf(server)
  const interrupt = new AbortController()
  const limited = new Set<string>()
  const fetch: Fetch = async (url, init) => {
    if (init.method === 'DELETE' && !limited.has(url)) {
      limited.add(url)
      return { status: 429, headers: new Map([['retry-after', '0.01']]), body: null }
    }
    const answer = await sockets.fetch(url, init)
    if (init.method === 'POST' && url.endsWith('/tokens')) interrupt.abort()
    return answer
  }
  const { code, stderr } = await conform(server.url, ['--only', 'token-updates'], {
    fetch,
    interrupt: interrupt.signal,
  })
  t.equal(code, 130, stderr)
  t.notMatch(stderr, 'could not be deleted')
  t.ok(limited.size >= 3, 'the token and the applications')
  t.same(await contentsOf(server), before)
})

t.test('conform deletes no existing token of the tenant if the tenant deduplicates tokens', async (t) => {
  const server = await serve(t)
  // The cases of conform create tokens with this data.
  const data = ['hello', 'x', 'a', { number: '4242424242424242' }, 'secret', 'data', 1, true]
  const values = [...data, ...(await dataOfCases(server.url))]
  for (const value of values) await server.ask('token create', { type: 'token', data: value } as never)
  await server.ask('tenant update', { name: 'mine', settings: { deduplicate_tokens: 'true' } })
  const before = await contentsOf(server)
  const { stdout, stderr } = await conform(server.url)
  const { areas, differences, reasons, remaining } = JSON.parse(stdout)
  t.same(remaining, [], stderr)
  t.same(differences, [])
  t.ok(areas.length > 5, 'cases without tokens were compared')
  t.ok(reasons.some(({ reason }: { reason: string }) => reason.startsWith('The tenant deduplicates')))
  t.same(await contentsOf(server), before)
})

/** Returns the distinct data that the cases send when they create tokens of the type `token`. */
async function dataOfCases(url: string): Promise<unknown[]> {
  const found = new Map<string, unknown>()
  const fetch: Fetch = async (target, init) => {
    if (init.method === 'POST' && target.endsWith('/tokens')) {
      const { type, data } = JSON.parse(String(init.body))
      if (type === 'token' && data !== undefined) found.set(JSON.stringify(data), data)
    }
    return sockets.fetch(target, init)
  }
  await conform(url, ['--only', 'token-updates'], { fetch })
  await conform(url, ['--only', 'tokens'], { fetch })
  return [...found.values()]
}

t.test('a report of conform shows no data, number or key from the answers of the server', async (t) => {
  const server = await serve(t)
  const secrets = ['4111111111111111', 'Ada Lovelace', 'key_3333333333333333333333']
  const [number, name, key] = secrets
  let patches = 0
  const fetch: Fetch = async (url, init) => {
    const answer = await sockets.fetch(url, init)
    if (init.method !== 'PATCH') return answer
    answer.body.resume()
    const problem = { title: 'Broken', detail: `${number} of ${key}`, errors: { data: [`not ${number}`] } }
    const token = { data: name, metadata: name, containers: [name], type: name, id: name }
    const isOdd = patches++ % 2 === 1
    const body = Buffer.from(JSON.stringify(isOdd ? problem : token))
    return { status: isOdd ? 500 : 200, headers: new Map(), body: [body] as never }
  }
  const outputs: string[] = []
  for (const words of [[], ['--markdown'], ['-o', 'table']]) {
    const { stdout, stderr } = await conform(server.url, ['--only', 'token-updates', ...words], { fetch })
    outputs.push(stdout + stderr)
  }
  for (const output of outputs) for (const secret of secrets) t.notMatch(output, secret)
  t.match(outputs[0], / is a text of 12 characters/)
  t.match(outputs[0], '<number> of <key>')
})

t.test('conform compares 3-D Secure answers, and reports a server without its permissions', async (t) => {
  const server = await serve(t)
  const { stdout } = await conform(server.url, ['--only', 'threeds'])
  t.match(JSON.parse(stdout).areas, [{ area: '3-D Secure', calls: 4, equal: 4 }])
  const fetch: Fetch = async (url, init) =>
    String(init.body).includes('3ds:')
      ? { status: 400, headers: new Map(), body: [Buffer.from('{}')] as never }
      : sockets.fetch(url, init)
  const lacking = await conform(server.url, ['--only', 'threeds'], { fetch })
  t.equal(lacking.code, 12)
  t.match(JSON.parse(lacking.stdout).differences, [{ difference: /the server gave no key/ }])
})

t.test('conform neither changes nor deletes a token that existed before the run', async (t) => {
  const server = await serve(t)
  const sent: string[] = []
  let created = 0
  const fetch: Fetch = async (url, init) => {
    sent.push(`${init.method} ${new URL(url).pathname}`)
    if (init.method !== 'POST' || !url.endsWith('/tokens')) return sockets.fetch(url, init)
    // Acts like a server that deduplicates: it answers a creation with a token that somebody else has created.
    const body = { ...EXISTING, id: `mine${++created}`, created_by: '7d3e1f0a-4b1c-4d55-8e0f-0b7a3f0c1d2e' }
    return { status: 201, headers: new Map(), body: [Buffer.from(JSON.stringify(body))] as never }
  }
  const { code, stdout } = await conform(server.url, ['--only', 'tokens'], { fetch })
  t.equal(code, 12)
  t.match(stdout, 'a token that this run did not create')
  t.same(
    sent.filter((each) => each.includes('/tokens/mine')),
    [],
  )
  t.equal((await server.ask('token get', { id: 'mine' })).id, 'mine')
})

t.test('for a record that cannot be deleted, conform prints the command that deletes it', async (t) => {
  const server = await serve(t)
  const fetch: Fetch = async (url, init) => {
    if (init.method !== 'DELETE' || !url.includes('/applications/')) return sockets.fetch(url, init)
    return { status: 500, headers: new Map(), body: [Buffer.from('{}')] as never }
  }
  const { stdout, stderr } = await conform(server.url, ['--only', 'tokens'], { fetch })
  const { remaining } = JSON.parse(stdout)
  t.equal(remaining.length, 2)
  t.match(stderr, `coffer app delete ${remaining[0].id}`)
})

async function hostile(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('conform stops reading an answer that is too large', async (t) => {
  const url = await hostile(t, (_, answer) => {
    const more = () => {
      while (!answer.destroyed && answer.write(' '.repeat(65_536)));
    }
    answer.on('drain', more)
    more()
  })
  const { code, stderr } = await conform(url)
  t.equal(code, 2)
  t.match(stderr, 'larger than 4 MiB')
})

t.test('a server that does not answer ends the run', async (t) => {
  const url = await hostile(t, () => undefined)
  const { code, stderr } = await conform(url, ['--timeout', '1'])
  t.equal(code, 9)
  t.match(stderr, 'no complete answer within 1 s')
})

t.test(
  'conform does not follow a redirect, because a redirect would send the key to another server',
  async (t) => {
    let reached = 0
    const other = await hostile(t, (_, answer) => {
      reached++
      answer.end()
    })
    const url = await hostile(t, (_, answer) => answer.writeHead(307, { location: other }).end())
    const { code, stderr } = await conform(url)
    t.equal(code, 9)
    t.match(stderr, 'status 307')
    t.equal(reached, 0)
  },
)

t.test('before conform sends the key to another machine, a person must confirm with --yes', async (t) => {
  let sent = 0
  const fetch: Fetch = async () => {
    sent++
    return { status: 401, headers: new Map(), body: null }
  }
  const { code, stderr } = await conform('https://vault.example.com', [], { fetch })
  t.not(code, 0)
  t.match(stderr, /--yes/)
  t.equal(sent, 0)
  const agreed = await conform('https://vault.example.com', ['--yes'], { fetch })
  t.equal(agreed.code, 4)
  t.match(agreed.stderr, 'may not create applications')
})

t.test('a dry run lists the cases and the reasons for skipped cases, and sends nothing', async (t) => {
  const { code, stdout, stderr } = await runProcess(main, {
    words: ['conform', '--dry-run', '-o', 'json'],
    env: { HOME: '/nonexistent' },
  })
  t.equal(code, 0, stderr)
  const rows = JSON.parse(stdout) as { state: string; reason?: string }[]
  t.ok(rows.some(({ state }) => state === 'runs'))
  t.ok(rows.filter(({ state }) => state === 'left out').every(({ reason }) => reason?.endsWith('.')))
  const unknown = await runProcess(main, {
    words: ['conform', '--dry-run', '--only', 'no-such-file'],
    env: { HOME: '/nonexistent' },
  })
  t.equal(unknown.code, 2)
  t.match(unknown.stderr, 'There are no cases')
})
